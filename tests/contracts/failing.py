"""When the storage fails."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.contracts.harness import FailingHarness
from tests.contracts.samples import Contract


class FailingQueueContract(Contract):
    """What a provider guarantees when its storage fails."""

    @pytest.fixture
    def failing(self, harness: FailingHarness) -> FailingHarness:
        return harness

    def test_a_commit_that_fails_leaves_nothing_that_can_be_taken(self, bench: Bench, failing: FailingHarness) -> None:
        submission = bench.submission()
        failing.break_down(bench.queue)
        with pytest.raises(Unavailable):
            bench.commit([submission])
        assert bench.take() == []
        failing.mend(bench.queue)
        assert bench.take() == []
        assert bench.search() == []
        spool_id = bench.put()
        assert spool_id != submission.draft.spool_id
        assert bench.take_ids() == [QueueId(spool_id, 1)]

    def test_a_sick_queue_refuses_drafts_or_their_commit(self, bench: Bench, failing: FailingHarness) -> None:
        failing.break_down(bench.queue)
        for _ in range(3):
            with pytest.raises(Unavailable):
                bench.commit([bench.submission()])

    def test_settlements_wait_for_better_times_and_are_never_forgotten(self, bench: Bench, failing: FailingHarness) -> None:
        spool_id = bench.put(addresses(3))
        first, second, third = bench.take_ids()
        failing.break_down(bench.queue)
        done = [
            bench.queue.commit([], [Settlement(first, None)]),
            bench.queue.commit([], [Settlement(second, Area.DEFERRED, bench.now(), 1, LATER_REPLY)]),
        ]
        assert bench.take(Area.INCOMING) == []
        assert bench.take(Area.DEFERRED) == []
        assert not any(one.called for one in done)
        failing.mend(bench.queue)
        for one in done:
            assert bench.gone(one) == []
        assert ids(bench.take_until(Area.DEFERRED, 1)) == [second]
        assert bench.remove([second, third]) == [spool_id]

    def test_bytes_stay_while_the_last_settlement_is_not_durable(self, bench: Bench, failing: FailingHarness) -> None:
        spool_id = bench.put()
        taken = bench.take_ids()
        failing.break_down(bench.queue)
        done = bench.queue.commit([], [Settlement(taken[0], None)])
        assert bench.read(spool_id) == CONTENT
        failing.mend(bench.queue)
        assert bench.gone(done) == [spool_id]

    def test_a_report_that_fails_leaves_its_bounces(self, bench: Bench, failing: FailingHarness) -> None:
        bench.put()
        (bounce,) = bench.take_ids()
        bench.commit((), [Settlement(bounce, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
        assert bench.take_ids(Area.BOUNCES) == [bounce]
        report = bench.submission([b"a@b.example"], sender=b"")
        failing.break_down(bench.queue)
        with pytest.raises(Unavailable):
            bench.commit([report], [Settlement(bounce, None)])
        failing.mend(bench.queue)
        assert [(message.spool_id, entry.number) for message, entry in bench.search()] == [bounce]
