"""What the log does by choice, and not by a setting."""

from __future__ import annotations

import pytest

from mailismus.disk.interface import IDisk
from mailismus.journal.commit import COMPANY_S
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.log.control.choices import LogChoices
from mailismus.queue.providers.log.format.positions import Positions
from mailismus.queue.providers.log.provider import LogQueue
from tests.contracts.bench import Bench
from tests.fakes.worker import ACT_S
from tests.log.harness import LogHarness


class Chosen:
    """A queue with these choices."""

    def __init__(self, choices: LogChoices) -> None:
        self.harness = LogHarness()
        self.harness.choices = choices
        self.bench = Bench(self.harness, self.harness.open())

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    def settle_s(self) -> float:
        """How long a lone delivery waits until it is durable."""
        self.bench.put()
        (queue_id,) = self.bench.take_ids()
        done = self.queue.commit((), [Settlement(queue_id, None)])
        began_s = self.harness.now()
        while not done.called:
            self.harness.advance(ACT_S)
        return self.harness.now() - began_s


def test_a_lone_delivery_waits_for_others_as_long_as_is_chosen() -> None:
    assert Chosen(LogChoices(company_s=0.0)).settle_s() < COMPANY_S
    assert Chosen(LogChoices()).settle_s() >= COMPANY_S


def test_positions_go_where_is_chosen() -> None:
    written: list[Positions] = []

    class Elsewhere:
        def __init__(self, disk: IDisk, root: str) -> None:
            assert root == "/q"

        def write(self, positions: Positions) -> None:
            written.append(positions)

    chosen = Chosen(LogChoices(positions=Elsewhere))
    chosen.bench.put()
    chosen.harness.round(chosen.queue)
    assert written
    assert not chosen.harness.disk.exists("/q/positions")


@pytest.mark.parametrize(("ahead_s", "loaded"), [(0.0, 1), (None, 2)])
def test_what_is_due_soon_is_loaded_with_what_is_due(ahead_s: float | None, loaded: int) -> None:
    chosen = Chosen(LogChoices(ahead_s=ahead_s))
    bench = chosen.bench
    ids: list[QueueId] = []
    for minutes in (60, 65):
        bench.put()
        taken = bench.take_ids()
        bench.defer(taken, bench.now() + minutes * 60)
        ids += taken
    chosen.harness.advance(3601)
    assert bench.take_ids(Area.DEFERRED) == ids[:1]
    assert chosen.queue.parts.working_set.entry_count == loaded
