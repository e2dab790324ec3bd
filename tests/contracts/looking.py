"""How a queue is looked at and flushed."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Message, Settlement
from tests.contracts.bench import LATER_REPLY, NO_REPLY, Bench, addresses, beyond, ids
from tests.contracts.samples import Contract


class LookingContract(Contract):
    """Summary, search, flush."""

    def test_the_summary_counts_entries_messages_and_bytes_of_each_area(self, bench: Bench) -> None:
        empty = bench.summary()
        assert set(empty.areas) == set(Area)
        assert all(count == AreaCount() for count in empty.areas.values())
        bench.put(addresses(3), b"x" * 100)
        bench.put(addresses(1), b"x" * 1000)
        first, second, third, *_ = bench.take_ids()
        assert bench.summary().areas[Area.INCOMING] == AreaCount(4, 2, 1100)
        bench.remove([first])
        bench.defer([second], bench.now() + 60)
        bench.commit((), [Settlement(third, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
        assert bench.summary().areas == {
            Area.INCOMING: AreaCount(1, 1, 1000),
            Area.DEFERRED: AreaCount(1, 1, 100),
            Area.BOUNCES: AreaCount(1, 1, 100),
            Area.HELD: AreaCount(),
            Area.DELETED: AreaCount(),
        }

    def test_a_search_finds_all_taken_or_not(self, bench: Bench) -> None:
        for _ in range(3):
            bench.put(addresses(4))
        bench.defer(bench.take_ids(limit=5), bench.now() + 60)
        bench.take(limit=3)
        found = bench.search()
        assert len({QueueId(message.spool_id, entry.number) for message, entry in found}) == len(found) == 12
        assert sum(entry.area is Area.DEFERRED for _, entry in found) == 5
        for message, entry in found:
            assert (message.sender, message.recipient_count) == (b"a@b.example", 4)
            assert entry.recipient == b"r%d@d.example" % entry.number
            if entry.area is Area.DEFERRED:
                assert (entry.attempts, entry.reply) == (1, LATER_REPLY)

    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    def test_pages_of_any_length_give_each_entry_once(self, bench: Bench, limit: int) -> None:
        for number in (1, 5, 2, 9):
            bench.put(addresses(number))
        found = bench.search(limit=limit)
        assert len({QueueId(message.spool_id, entry.number) for message, entry in found}) == len(found) == 17

    def test_a_search_gives_what_matches(self, bench: Bench) -> None:
        spool_ids = [bench.put(addresses(2)) for _ in range(3)]
        bench.defer(bench.take_ids(limit=2), bench.now() + 60)

        def second(_: Message, entry: Entry) -> bool:
            return entry.number == 2

        assert [entry.area for _, entry in bench.search(Filter(area=Area.DEFERRED))] == [Area.DEFERRED] * 2
        assert [message.spool_id for message, _ in bench.search(Filter(spool_id=spool_ids[1]))] == [spool_ids[1]] * 2
        assert sorted(message.spool_id for message, _ in bench.search(Filter(matches=second), limit=1)) == spool_ids
        assert bench.search(Filter(area=Area.BOUNCES)) == []
        assert bench.search(Filter(spool_id=SpoolId(1 << 60))) == []
        found = bench.search(Filter(spool_ids[0], Area.DEFERRED, second))
        assert [(message.spool_id, entry.number) for message, entry in found] == [(spool_ids[0], 2)]

    def test_what_changes_between_pages_is_never_seen_twice(self, bench: Bench) -> None:
        for _ in range(10):
            bench.put(addresses(3))
        quiet = set(bench.take_ids(limit=15))
        moving = bench.take_ids()
        seen: list[QueueId] = []
        cursor: object | None = None
        at = 0
        while True:
            page = bench.wait(bench.queue.search(Filter(), cursor, 4))
            seen += ids(page.messages)
            cursor = page.cursor
            if cursor is None:
                break
            if at + 1 < len(moving):
                bench.defer([moving[at]], bench.now() + 60)
                bench.remove([moving[at + 1]])
                bench.put(addresses(2))
                at += 2
        assert len(set(seen)) == len(seen)
        assert quiet <= set(seen)

    def test_a_search_does_not_run_after_new_mail(self, bench: Bench) -> None:
        present = {bench.put() for _ in range(4)}
        found: list[QueueId] = []
        page = bench.wait(bench.queue.search(Filter(), None, 1))
        for _ in range(20):
            found += ids(page.messages)
            if page.cursor is None:
                break
            bench.put()
            page = bench.wait(bench.queue.search(Filter(), page.cursor, 1))
        assert page.cursor is None
        assert {queue_id.spool_id for queue_id in found} == present

    def test_a_search_disturbs_no_taking(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(4))
        bench.wait(bench.queue.search(Filter(), None, 2))
        assert bench.take_ids(limit=2) == [QueueId(spool_id, 1), QueueId(spool_id, 2)]
        assert len(bench.search()) == 4
        assert bench.take_ids() == [QueueId(spool_id, 3), QueueId(spool_id, 4)]

    def test_a_flush_makes_what_matches_due_now(self, bench: Bench) -> None:
        bench.put(addresses(4))
        queue_ids = bench.take_ids()
        bench.defer(queue_ids, bench.now() + 3600)
        ready = bench.queue.ready(Area.DEFERRED)
        assert bench.take(Area.DEFERRED) == []

        def odd(_: Message, entry: Entry) -> bool:
            return entry.number % 2 == 1

        assert bench.wait(bench.queue.visit_all(Filter(matches=odd), bench.now())).entries == 2
        bench.wait(ready)
        (message,) = bench.take_until(Area.DEFERRED, 2)
        assert ids([message]) == [queue_ids[0], queue_ids[2]]
        assert {entry.attempts for entry in message.entries} == {1}
        assert bench.wait(bench.queue.visit_all(Filter(), bench.now())).entries >= 2
        assert ids(bench.take_until(Area.DEFERRED, 2)) == [queue_ids[1], queue_ids[3]]

    def test_a_flush_makes_due_what_it_names_and_nothing_else(self, bench: Bench) -> None:
        for _ in range(2):
            bench.put()
        first, second = bench.take_ids()
        bench.defer([first, second], bench.now() + 5000)
        assert bench.wait(bench.queue.visit_all(Filter(area=Area.INCOMING), bench.now())).entries == 0
        assert bench.wait(bench.queue.visit_all(Filter(second.spool_id), bench.now())).entries == 1
        assert bench.take_ids(Area.DEFERRED) == [second]
        assert bench.wait(bench.queue.visit_all(Filter(first.spool_id, Area.DEFERRED), bench.now())).entries == 1
        assert bench.take_ids(Area.DEFERRED) == [first]

    def test_a_flush_recalls_nothing_that_is_out(self, bench: Bench) -> None:
        bench.put()
        bench.defer(bench.take_ids(), bench.now())
        assert len(bench.take_ids(Area.DEFERRED)) == 1
        bench.wait(bench.queue.visit_all(Filter(), bench.now()))
        assert bench.take(Area.DEFERRED) == []

    def test_what_waits_too_long_is_hastened_in_every_area(self, bench: Bench) -> None:
        now, soon, late = bench.now(), bench.now() + 100, bench.now() + 1_000_000
        first = bench.put(addresses(3))
        bounce, deferred, sooner = bench.take_ids()
        settlements = [
            Settlement(bounce, Area.BOUNCES, late, 1, NO_REPLY),
            Settlement(deferred, Area.DEFERRED, late, 1, LATER_REPLY),
            Settlement(sooner, Area.DEFERRED, soon, 1, LATER_REPLY),
        ]
        bench.commit((), settlements)
        second = bench.put()
        bench.queue.give_back(bench.take_ids(), late)
        for _ in range(10):
            bench.harness.advance(0.01)
        assert [bench.take(area) for area in Area] == [[]] * len(Area)
        bench.queue.hasten(beyond(soon, now), now)
        assert ids(bench.take_until(Area.BOUNCES, 1)) == [QueueId(first, 1)]
        assert ids(bench.take_until(Area.DEFERRED, 1)) == [QueueId(first, 2)]
        assert ids(bench.take_until(Area.INCOMING, 1)) == [QueueId(second, 1)]
        assert bench.take(Area.DEFERRED) == []

    def test_who_waits_is_told_of_what_was_hastened(self, bench: Bench) -> None:
        bench.put()
        bench.defer(bench.take_ids(), bench.now() + 1_000_000)
        told: list[None] = []
        bench.queue.ready(Area.DEFERRED).addCallback(told.append)
        bench.queue.hasten(beyond(bench.now() + 100, bench.now()), bench.now())
        for _ in range(10):
            bench.harness.advance(0.01)
        assert told == [None]
