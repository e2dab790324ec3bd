"""Counting a log by a plan while files of it are damaged or gone: what is not counted is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mailismus.journal.batch import BLOCK
from mailismus.queue.interface import Summary
from mailismus.queue.providers.log.control import ledger, loading
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.planned_count import LogPlanCounter
from tests.contracts.bench import Bench, addresses
from tests.log.harness import LogHarness


class Resting:
    """A queue of two segments, with three messages that rest in the first and two in the second."""

    def __init__(self) -> None:
        self.harness = LogHarness()
        self.bench = Bench(self.harness, self.harness.open())
        self._defer(3)
        self._defer(1)
        self.bench.queue = self.harness.restart(self.bench.queue)  # the last batch is written again
        self._defer(1)
        self.first, self.second = (path for path in sorted(self.harness.disk.names) if path.startswith("/q/log/0"))

    def _defer(self, messages: int) -> None:
        for _ in range(messages):
            self.bench.put(addresses(1))
        self.bench.defer(self.bench.take_ids(), self.bench.now() + 7200)

    def parts(self) -> list[Mapping[str, object]]:
        assert isinstance(self.bench.queue, LogQueue)
        plan = self.bench.queue.counting_plan()
        return list(iter(plan.next, None))

    def overwrite(self, path: str, size: int) -> None:
        file = self.harness.disk.open(path)
        file.write_at(0, [bytes(size)])
        file.close()

    def count(self, between: Callable[[], None] = lambda: None) -> Summary:
        """Count as a client does: with a second plan where the first one leaves it unsure."""
        counter = LogPlanCounter(self.harness.disk)
        for part in self.parts():
            counter.add(part)
        if counter.is_unsure:
            between()
            for part in self.parts():
                counter.check(part)
        return counter.summary()


def entries_of(summary: Summary) -> int:
    return sum(count.entries for count in summary.areas.values())


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> Resting:
    monkeypatch.setattr(ledger, "MOST_NEW", 0)
    monkeypatch.setattr(ledger, "NEAR_S", 0.0)
    monkeypatch.setattr(loading, "AHEAD_S", 0.0)
    return Resting()


def test_all_are_counted(resting: Resting) -> None:
    assert (entries_of(resting.count()), resting.count().exact) == (5, True)


def test_a_segment_whose_header_does_not_check_is_counted(resting: Resting) -> None:
    resting.overwrite(resting.first, BLOCK)
    assert (entries_of(resting.count()), resting.count().exact) == (5, True)


def test_a_segment_without_header_and_first_batch_is_a_gap(resting: Resting) -> None:
    resting.overwrite(resting.first, 2 * BLOCK)
    summary = resting.count()
    assert (entries_of(summary), summary.exact) == (2, False)
    assert [(gap.what, gap.path) for gap in summary.gaps] == [("segment", resting.first)]


def test_a_segment_that_is_lost_is_a_gap(resting: Resting) -> None:
    resting.harness.disk.unlink(resting.first)
    summary = resting.count()
    assert (entries_of(summary), summary.exact) == (2, False)
    assert [(gap.what, gap.path) for gap in summary.gaps] == [("segment", resting.first)]


def test_a_segment_that_is_here_again_counts(resting: Resting) -> None:
    names = resting.harness.disk.names
    moved = names.pop(resting.first)
    summary = resting.count(lambda: names.update({resting.first: moved}))
    assert (entries_of(summary), summary.exact) == (5, True)
