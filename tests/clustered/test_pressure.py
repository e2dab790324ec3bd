"""A slow disk: mail is refused before clients run out of patience, and taken again as soon as it need not be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.logger import LogEvent, globalLogPublisher
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.journal.pressure import LOOK_S, MOST_WAIT_S, PAUSE_S, STALL_S, Pace
from mailismus.queue.interface import Settlement
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench


class Clients:
    """One comes every so often. `waits`: seconds that those waited who got a 250; `refused`: the same of the others."""

    def __init__(self, *, largemsgsize: int = 131072, size: int = 200) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=largemsgsize))
        self.bench = Bench(self.harness, self.harness.open())
        self.size = size
        self.begun: list[float] = []
        self.waits: list[float] = []
        self.refused: list[float] = []
        self.full: list[bool] = []
        self.lines: list[str] = []

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue

    def come(self, count: int, every_s: float) -> None:
        for _ in range(count):
            self._one()
            for _ in range(5):
                self.harness.clock.advance(every_s / 5)

    def _one(self) -> None:
        begun = self.harness.now()
        self.begun.append(begun)

        def refused(failure: Failure) -> None:
            assert isinstance(failure.value, Unavailable)
            self.full.append(failure.value.full)
            self.refused.append(self.harness.now() - begun)

        try:
            submission = self.bench.submission(content=b"x" * self.size)
        except Unavailable as error:
            self.full.append(error.full)
            self.refused.append(0.0)
            return
        done = self.queue.commit((submission,), ())
        done.addCallbacks(lambda _: self.waits.append(self.harness.now() - begun), refused)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.harness.clock.advance(0.1)


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        lines.append(str(event.get("log_format")))

    globalLogPublisher.addObserver(observe)  # type: ignore[arg-type]  # a callable is one
    yield lines
    globalLogPublisher.removeObserver(observe)  # type: ignore[arg-type]  # as above


def test_a_quick_disk_refuses_nobody() -> None:
    clients = Clients()
    clients.come(400, 0.005)
    clients.wait(1)
    assert (len(clients.waits), clients.refused) == (400, [])


def test_a_barrier_of_two_seconds_is_no_reason_to_refuse_anybody() -> None:
    clients = Clients()
    clients.harness.journal.quick = ("check",)
    clients.harness.journal.slow_s = 2.0
    clients.come(100, 0.5)
    clients.wait(20)
    assert (len(clients.waits), clients.refused) == (100, [])
    assert max(clients.waits) < MOST_WAIT_S


def test_slow_barriers_refuse_early_and_nobody_waits_for_long(logged: list[str]) -> None:
    clients = Clients()
    clients.harness.journal.quick = ("check",)
    clients.harness.journal.slow_s = 15.0
    clients.come(300, 1.0)
    clients.wait(60)
    assert len(clients.waits) + len(clients.refused) == 300
    assert clients.waits
    assert len(clients.refused) > 100
    assert max(clients.waits) <= 2 * 15.0 + 1
    assert max(clients.refused) == 0.0
    assert not any(clients.full)
    assert [line for line in logged if line.startswith("The disk is slow")]


def test_mail_is_accepted_again_as_soon_as_the_disk_is_quick(logged: list[str]) -> None:
    clients = Clients()
    clients.harness.journal.quick = ("check",)
    clients.harness.journal.slow_s = 30.0
    clients.come(40, 1.0)
    assert clients.queue.parts.pressure.is_shedding
    clients.harness.journal.slow_s = 0.0
    clients.wait(40)
    assert not clients.queue.parts.pressure.is_shedding
    refused = len(clients.refused)
    clients.come(20, 0.1)
    assert len(clients.refused) == refused
    assert [line for line in logged if line.startswith("The disk is quick enough again")]


def test_what_waits_behind_a_barrier_that_hangs_is_refused_and_what_it_runs_for_is_not(logged: list[str]) -> None:
    clients = Clients()
    clients.harness.journal.quick = ("check",)
    clients.harness.journal.slow_s = 300.0
    clients.come(1, 1.0)
    clients.harness.journal.slow_s = 0.0
    clients.come(3, 1.0)
    taken = clients.bench.take()
    assert taken == []
    clients.wait(STALL_S * 1.3)  # looks come late on this clock
    assert (len(clients.waits), len(clients.refused)) == (0, 3)
    assert STALL_S <= max(clients.refused) + 4 <= STALL_S * 1.3 + 4
    clients.wait(300)
    assert len(clients.waits) == 1
    assert [line for line in logged if "messages that wait are refused" in line]
    clients.come(1, 1.0)
    assert len(clients.waits) == 2
    assert clients.bench.entry_count() == 2


def test_outcomes_are_never_refused() -> None:
    clients = Clients()
    clients.come(2, 1.0)
    ids = [queue_id for message in clients.bench.take() for queue_id in message.queue_ids()]
    clients.harness.journal.slow_s = 100.0
    done = [clients.queue.commit((), [Settlement(queue_id, None)]) for queue_id in ids]
    clients.wait(50)
    done.append(clients.queue.commit((), [Settlement(ids[0], None)]))
    clients.wait(250)
    assert all(one.called for one in done)
    assert clients.bench.entry_count() == 0


def test_large_messages_that_queue_for_slow_files_are_refused_early() -> None:
    clients = Clients(largemsgsize=1000, size=20_000)
    clients.harness.files.slow_s = 5.0
    clients.come(100, 1.0)
    clients.wait(300)
    assert len(clients.waits) + len(clients.refused) == 100
    assert clients.waits
    assert len(clients.refused) > 30
    clients.harness.files.slow_s = 0.0
    clients.wait(20)
    refused = len(clients.refused)
    clients.come(5, 1.0)
    assert len(clients.refused) == refused


def test_the_pace_forgets_what_nobody_waits_for() -> None:
    pace = Pace()
    for _ in range(40):
        pace.look(0, 1)
    assert pace.expected_s == 40 * LOOK_S * 2
    pace.look(1, 0)
    assert pace.expected_s == 41 * LOOK_S
    for _ in range(10):
        pace.look(1, 0)
    assert pace.expected_s < 0.1


def test_a_clock_that_jumps_is_no_pressure() -> None:
    clients = Clients()
    clients.come(10, 0.1)
    for jump in (86400.0 * 365, -2 * 86400.0 * 365):
        clients.harness.clock.rightNow += jump
        for call in clients.harness.clock.calls:
            call.time += jump  # timers of a reactor do not jump
        clients.come(10, 0.1)
    assert (len(clients.waits), clients.refused) == (30, [])


def test_a_moment_in_which_none_of_many_large_messages_is_done_is_no_slow_disk() -> None:
    pace = Pace()
    pace.look(100, 50)
    for _ in range(int(PAUSE_S / LOOK_S) - 1):
        pace.look(100, 50)
        assert pace.expected_s == 0.0
    pace.look(100, 50)
    assert pace.expected_s > MOST_WAIT_S
    pace.look(150, 50)
    assert pace.expected_s < MOST_WAIT_S
