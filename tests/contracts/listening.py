"""How the end of commits is told to a listener (`IQueue.begin_commit`)."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from tests.contracts.bench import LATER_REPLY, Bench, addresses
from tests.contracts.harness import FailingHarness
from tests.contracts.samples import Contract


class Told:
    """A `CommitListener` that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[object, list[SpoolId]]]] = []
        """Successes: for each call the marks, and the messages that ended."""
        self.failures: list[tuple[list[object], StorageError]] = []

    def on_durable(self, marks: Sequence[object], gone: Sequence[Sequence[SpoolId]]) -> None:
        self.calls.append([(mark, list(over)) for mark, over in zip(marks, gone, strict=True)])

    def on_failed(self, marks: Sequence[object], error: StorageError) -> None:
        self.failures.append((list(marks), error))

    @property
    def all(self) -> list[tuple[object, list[SpoolId]]]:
        """All successes in their order."""
        return [one for call in self.calls for one in call]


def pass_time(bench: Bench) -> None:
    """Let everything that is under way end."""
    for _ in range(100):
        bench.harness.advance(0.01)


class ListeningContract(Contract):
    """Listeners of commits."""

    def test_a_listener_is_told_of_its_commits_in_order_and_never_within_the_call(self, bench: Bench) -> None:
        told, other = Told(), Told()
        for number in range(6):
            bench.queue.begin_commit([bench.submission()], (), (), told if number % 2 else other, number)
        assert not told.calls
        assert not other.calls
        pass_time(bench)
        assert told.all == [(1, []), (3, []), (5, [])]
        assert other.all == [(0, []), (2, []), (4, [])]
        assert len(bench.take()) == 6

    def test_commits_of_one_batch_are_told_by_one_call(self, bench: Bench) -> None:
        told = Told()
        for _ in range(2):  # the first commit may have a batch of its own
            for number in range(5):
                bench.queue.begin_commit([bench.submission()], (), (), told, number)
            pass_time(bench)
        assert [mark for mark, _ in told.all] == [*range(5), *range(5)]
        assert len(told.calls) <= 4

    def test_removed_entries_come_by_message_and_the_last_ones_end_it(self, bench: Bench) -> None:
        told = Told()
        large, small = bench.put(addresses(50)), bench.put()
        bench.take()
        bench.queue.begin_commit((), (), [(large, range(1, 40)), (small, (1,))], told, "both")
        bench.queue.begin_commit((), (), [(large, [*range(40, 51)])], told, "rest")
        pass_time(bench)
        assert told.all == [("both", [small]), ("rest", [large])]
        assert bench.entry_count() == 0

    def test_to_remove_entries_again_or_unknown_ones_is_ignored(self, bench: Bench) -> None:
        told = Told()
        spool_id = bench.put(addresses(3))
        bench.take()
        bench.queue.begin_commit((), (), [(spool_id, (1, 2)), (spool_id, (2, 1)), (SpoolId(1), (1,))], told, "first")
        bench.queue.begin_commit((), (), [(spool_id, (1, 7))], told, "second")
        pass_time(bench)
        bench.queue.begin_commit((), (), [(spool_id, (2,)), (spool_id, (3,))], told, "third")
        pass_time(bench)
        assert dict(told.all) == {"first": [], "second": [], "third": [spool_id]}
        bench.queue.begin_commit((), (), [(spool_id, (3,))], told, "fourth")
        pass_time(bench)
        assert told.all[-1] == ("fourth", [])
        assert bench.entry_count() == 0

    def test_removals_and_replacements_may_be_one_commit(self, bench: Bench) -> None:
        told = Told()
        spool_id = bench.put(addresses(3))
        bench.take()
        later = Settlement(QueueId(spool_id, 2), Area.DEFERRED, bench.now() + 60, 1, LATER_REPLY)
        bench.queue.begin_commit((), [later], [(spool_id, (1, 3))], told, None)
        pass_time(bench)
        assert told.all == [(None, [])]
        assert [entry.number for _, entry in bench.search()] == [2]


class FailingListeningContract(Contract):
    """Listeners of commits whose storage fails."""

    def test_a_listener_is_told_of_a_failure_once(self, bench: Bench, harness: FailingHarness) -> None:
        told = Told()
        submissions = [bench.submission() for _ in range(3)]
        harness.break_down(bench.queue)
        for number, submission in enumerate(submissions):
            bench.queue.begin_commit([submission], (), (), told, number)
        pass_time(bench)
        assert sorted(mark for marks, _ in told.failures for mark in marks) == [0, 1, 2]  # type: ignore[type-var]  # numbers
        assert all(isinstance(error, Unavailable) for _, error in told.failures)
        assert not told.calls
        harness.mend(bench.queue)
        assert bench.take() == []
