"""How entries are handed out and given back."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from tests.contracts.bench import LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.contracts.samples import Contract
from tests.fakes.shares import Most

BIG = b"big@b.example"


def put_in_each_area(bench: Bench) -> dict[Area, list[QueueId]]:
    """A message with due entries in each area, none of them out."""
    bench.put(addresses(6))
    taken = bench.take_ids()
    now, found = bench.now(), {area: taken[2 * at : 2 * at + 2] for at, area in enumerate(Area)}
    bench.queue.give_back(found[Area.INCOMING], now)
    bench.defer(found[Area.DEFERRED], now)
    bounces = [Settlement(one, Area.BOUNCES, now, 1, NO_REPLY, b"mx[192.0.2.9]:25") for one in found[Area.BOUNCES]]
    bench.commit((), bounces)
    return found


class LeavingContract(Contract):
    """Take, give back, ready, next due."""

    def test_what_is_out_is_not_handed_out_again(self, bench: Bench) -> None:
        bench.put(addresses(3))
        assert len(bench.take_ids()) == 3
        assert bench.take_ids() == []

    def test_a_take_gives_at_most_limit_entries(self, bench: Bench) -> None:
        for _ in range(4):
            bench.put(addresses(3))
        taken: list[QueueId] = []
        for limit in (1, 4, 2, 1, 4):
            some = bench.take_ids(limit=limit)
            assert len(some) == limit
            taken += some
        assert len(set(taken)) == 12
        assert bench.take_ids(limit=0) == []

    def test_oldest_first(self, bench: Bench) -> None:
        spool_ids = []
        for _ in range(5):
            spool_ids.append(bench.put())
            bench.harness.advance(0.01)
        assert [bench.take(limit=1)[0].spool_id for _ in range(3)] == spool_ids[:3]
        assert [message.spool_id for message in bench.take()] == spool_ids[3:]

    def test_of_each_sender_go_out_as_many_as_its_share_allows(self, bench: Bench) -> None:
        big = bench.put(addresses(10), sender=BIG)
        small = bench.put(addresses(2))
        taken = bench.take(shares=Most(4))
        assert sorted((message.spool_id, len(message.entries)) for message in taken) == [(big, 4), (small, 2)]
        served = ids(taken)
        bench.remove(served)
        bench.queue.room_again()
        while some := bench.take_ids(shares=Most(4)):
            assert len(some) <= 4
            served += some
            bench.remove(some)
            bench.queue.room_again()
        assert sorted(served) == sorted(
            [QueueId(big, number) for number in range(1, 11)] + [QueueId(small, number) for number in (1, 2)]
        )

    def test_a_sender_has_one_share_for_all_its_messages(self, bench: Bench) -> None:
        for _ in range(5):
            bench.put(addresses(2))
        assert len(bench.take_ids(shares=Most(7))) == 7
        bench.queue.room_again()
        assert len(bench.take_ids(shares=Most(7))) == 3

    def test_a_sender_that_was_passed_over_goes_on_when_there_is_room_again(self, bench: Bench) -> None:
        bench.put(addresses(5))
        assert len(bench.take_ids(limit=2, shares=Most(2))) == 2
        assert bench.take(shares=Most(0)) == []
        bench.queue.room_again()
        assert len(bench.take_ids(shares=Most(2))) == 2
        bench.queue.room_again()
        assert bench.take(shares=Most(0)) == []
        bench.queue.room_again()
        assert len(bench.take_ids(shares=Most(5))) == 1

    def test_what_comes_of_a_sender_that_was_passed_over_is_not_lost(self, bench: Bench) -> None:
        first = bench.put(addresses(2))
        assert bench.take(shares=Most(0)) == []
        second = bench.put(addresses(2))
        other = bench.put(sender=BIG)
        some = Most(5, {b"a@b.example": 0})
        assert ids(bench.take(shares=some)) == [QueueId(other, 1)]
        bench.queue.room_again()
        taken = bench.take_ids(shares=Most(5))
        assert sorted(taken) == [QueueId(spool_id, number) for spool_id in (first, second) for number in (1, 2)]
        assert bench.take() == []

    def test_what_is_gone_meanwhile_is_not_handed_out_to_a_sender_with_room_again(self, bench: Bench) -> None:
        spool_ids = [bench.put(addresses(2)) for _ in range(3)]
        first, *_ = bench.take_ids(limit=1)
        assert bench.take(shares=Most(0)) == []
        bench.queue.give_back([first], bench.now())
        bench.remove([QueueId(spool_id, number) for spool_id in spool_ids[:2] for number in (1, 2)])
        bench.queue.room_again()
        left = bench.take_ids(shares=Most(10))
        assert {queue_id.spool_id for queue_id in left} <= set(spool_ids)
        assert [queue_id for queue_id in left if queue_id.spool_id == spool_ids[2]] == [
            QueueId(spool_ids[2], 1),
            QueueId(spool_ids[2], 2),
        ]

    def test_a_take_without_shares_passes_nobody_over(self, bench: Bench) -> None:
        bench.put(addresses(4))
        assert bench.take(shares=Most(0)) == []
        bench.queue.room_again()
        assert len(bench.take_ids()) == 4

    def test_a_big_envelope_does_not_hide_what_comes_behind_it(self, bench: Bench) -> None:
        big = bench.put(addresses(500), sender=BIG)
        small = bench.put()
        taken = bench.take(limit=50, shares=Most(20))
        assert {message.spool_id: len(message.entries) for message in taken} == {big: 20, small: 1}

    def test_many_messages_of_one_sender_do_not_hide_what_comes_behind_them(self, bench: Bench) -> None:
        for _ in range(50):
            bench.put(sender=BIG)
        small = bench.put()
        taken = bench.take(limit=50, shares=Most(20))
        assert len(ids(taken)) == 21
        assert taken[-1].spool_id == small

    def test_who_is_passed_over_is_not_asked_about_for_each_entry(self, bench: Bench) -> None:
        bench.put(addresses(300), sender=BIG)
        for _ in range(50):
            bench.put(sender=BIG)
        shares = Most(10)
        for _ in range(20):
            bench.put()
            taken = bench.take_ids(limit=100, shares=shares)
            bench.remove(taken)
        assert len([sender for sender, _ in shares.asked if sender == BIG]) <= 20 + 2

    def test_both_go_on_the_senders_with_room_again_and_the_others(self, bench: Bench) -> None:
        big = bench.put(addresses(100), sender=BIG)
        small = [bench.put() for _ in range(10)]
        assert bench.take(shares=Most(0, {b"a@b.example": 0})) == []
        for _ in range(100):
            small.append(bench.put(sender=b"c@d.example"))
        bench.queue.room_again()
        taken = bench.take(limit=20, shares=Most(1000))
        assert big in {message.spool_id for message in taken}
        count = len(ids(taken))
        for _ in range(50):
            taken = bench.take(limit=20, shares=Most(1000))
            count += len(ids(taken))
        assert count == 210

    def test_areas_are_taken_apart(self, bench: Bench) -> None:
        bench.put()
        assert bench.take(Area.DEFERRED) == []
        assert bench.take(Area.BOUNCES) == []
        (queue_id,) = bench.take_ids()
        bench.commit((), [Settlement(queue_id, Area.BOUNCES, bench.now(), 1, NO_REPLY, b"mx[192.0.2.9]:25")])
        assert bench.take(Area.INCOMING) == []
        assert bench.take(Area.DEFERRED) == []
        (message,) = bench.take(Area.BOUNCES)
        (entry,) = message.entries
        assert (entry.area, entry.attempts, entry.reply) == (Area.BOUNCES, 1, NO_REPLY)

    def test_takes_of_different_areas_overlap(self, bench: Bench) -> None:
        found = put_in_each_area(bench)
        assert bench.take_overlapping() == found
        assert bench.take_overlapping() == {area: [] for area in Area}

    def test_nothing_is_taken_before_its_time(self, bench: Bench) -> None:
        bench.put()
        due_at = bench.now() + 5
        bench.defer(bench.take_ids(), due_at)
        assert bench.take(Area.DEFERRED) == []
        bench.harness.advance(4.9)
        assert bench.take(Area.DEFERRED) == []
        bench.harness.advance(0.2)
        (message,) = bench.take_until(Area.DEFERRED, 1)
        (entry,) = message.entries
        assert entry.due_at == pytest.approx(due_at, abs=0.001)
        assert (entry.attempts, entry.reply, entry.host) == (1, LATER_REPLY, b"mx[192.0.2.9]:25")

    def test_given_back_is_untried_and_waits_until_it_may_be_taken(self, bench: Bench) -> None:
        bench.put(addresses(2))
        first, second = bench.take_ids()
        bench.queue.give_back([first], bench.now() + 2)
        assert bench.take() == []
        bench.harness.advance(1.9)
        assert bench.take() == []
        bench.harness.advance(0.2)
        (message,) = bench.take_until(Area.INCOMING, 1)
        assert ids([message]) == [first]
        (entry,) = message.entries
        assert (entry.area, entry.attempts, entry.reply) == (Area.INCOMING, 0, None)
        bench.queue.give_back([first, second], bench.now())
        assert sorted(ids(bench.take_until(Area.INCOMING, 2))) == [first, second]

    def test_to_give_back_a_retry_changes_nothing_of_it(self, bench: Bench) -> None:
        bench.put()
        bench.defer(bench.take_ids(), bench.now(), attempts=2)
        taken = bench.take_ids(Area.DEFERRED)
        bench.queue.give_back(taken, bench.now())
        (message,) = bench.take_until(Area.DEFERRED, 1)
        (entry,) = message.entries
        assert (entry.attempts, entry.reply) == (2, LATER_REPLY)

    def test_to_give_back_what_is_not_out_is_ignored(self, bench: Bench) -> None:
        spool_id = bench.put()
        bench.queue.give_back([QueueId(spool_id, 1)], bench.now() + 1000)
        bench.queue.give_back([QueueId(SpoolId(1 << 60), 1), QueueId(spool_id, 2)], bench.now())
        (queue_id,) = bench.take_ids()
        done = bench.queue.commit([], [Settlement(queue_id, None)])
        bench.queue.give_back([queue_id], bench.now())
        bench.wait(done)
        bench.queue.give_back([queue_id], bench.now())
        assert bench.take() == []
        assert bench.entry_count() == 0

    def test_ready_is_at_once_when_something_may_be_taken(self, bench: Bench) -> None:
        bench.put()
        bench.wait(bench.queue.ready(Area.INCOMING))
        assert len(bench.take_ids()) == 1

    def test_ready_comes_with_a_commit(self, bench: Bench) -> None:
        ready = [bench.queue.ready(Area.INCOMING), bench.queue.ready(Area.INCOMING)]
        bench.take()
        assert not any(one.called for one in ready)
        bench.put()
        for one in ready:
            bench.wait(one)
        assert len(bench.take_ids()) == 1

    def test_ready_comes_with_what_is_given_back(self, bench: Bench) -> None:
        bench.put()
        taken = bench.take_ids()
        ready = bench.queue.ready(Area.INCOMING)
        bench.queue.give_back(taken, bench.now())
        bench.wait(ready)
        assert ids(bench.take_until(Area.INCOMING, 1)) == taken

    def test_ready_comes_with_a_settlement_into_the_area(self, bench: Bench) -> None:
        bench.put()
        ready = bench.queue.ready(Area.DEFERRED)
        bench.defer(bench.take_ids(), bench.now())
        bench.wait(ready)
        assert len(bench.take_ids(Area.DEFERRED)) == 1

    def test_ready_comes_when_a_sender_has_room_again(self, bench: Bench) -> None:
        bench.put(addresses(3))
        assert len(bench.take_ids(shares=Most(2))) == 2
        ready = bench.queue.ready(Area.INCOMING)
        assert not ready.called
        bench.queue.room_again()
        bench.wait(ready)
        bench.wait(bench.queue.ready(Area.INCOMING))
        assert len(bench.take_ids(shares=Most(2))) == 1

    def test_room_again_is_nothing_where_nobody_was_passed_over(self, bench: Bench) -> None:
        bench.queue.room_again()
        ready = bench.queue.ready(Area.INCOMING)
        bench.queue.room_again()
        assert not ready.called
        bench.put()
        bench.wait(ready)

    def test_next_due_is_never_late(self, bench: Bench) -> None:
        assert bench.queue.next_due(Area.DEFERRED) is None
        bench.put(addresses(2))
        first, second = bench.take_ids()
        now = bench.now()
        bench.defer([first], now + 60)
        bench.defer([second], now + 30)
        next_due = bench.queue.next_due(Area.DEFERRED)
        assert next_due is not None
        assert next_due <= now + 33
        assert bench.queue.next_due(Area.BOUNCES) is None
        bench.harness.advance(35)
        assert ids(bench.take_until(Area.DEFERRED, 1)) == [second]
        next_due = bench.queue.next_due(Area.DEFERRED)
        assert next_due is not None
        assert next_due <= now + 63

    def test_next_due_tells_of_what_was_given_back(self, bench: Bench) -> None:
        bench.put()
        bench.queue.give_back(bench.take_ids(), bench.now() + 7)
        next_due = bench.queue.next_due(Area.INCOMING)
        assert next_due is not None
        assert next_due <= bench.now() + 10
