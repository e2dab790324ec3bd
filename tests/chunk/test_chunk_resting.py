"""Messages that wait are in their files alone, and do all that others do."""

from __future__ import annotations

import errno

import pytest

import mailismus.queue.providers.chunk.control.ledger as ledger_module
import mailismus.queue.providers.chunk.read.looking as looking_module
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.chunk.control.loading import UNREADABLE_S
from mailismus.queue.providers.chunk.provider import ChunkQueue
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import CONTENT, LATER_REPLY, Bench, addresses, ids
from tests.contracts.claiming import claimed_by_page
from tests.fakes.shares import Most


def queue_of(bench: Bench) -> ChunkQueue:
    assert isinstance(bench.queue, ChunkQueue)
    return bench.queue


def in_memory(bench: Bench) -> int:
    """Messages that are in memory."""
    return len(queue_of(bench).parts.ledger.index.messages)


def defer_all(bench: Bench, delay_s: float = 600) -> list[QueueId]:
    """What may be taken waits."""
    taken = bench.take_ids() + bench.take_ids(Area.DEFERRED)
    bench.defer(taken, bench.now() + delay_s)
    return taken


def test_nothing_of_a_message_that_waits_is_in_memory(bench: Bench) -> None:
    for _ in range(200):
        bench.put(addresses(2))
    defer_all(bench)
    parts = queue_of(bench).parts
    assert in_memory(bench) == 0
    assert parts.ledger.index.entry_count == 0
    assert all(parts.ledger.index.next_due(area) is None for area in Area)
    assert not parts.contents._at_hand
    assert len(parts.ledger.resting) == 200
    assert bench.entry_count() == 400


def test_it_is_taken_when_it_is_due_as_it_was(bench: Bench) -> None:
    spool_id = bench.put(addresses(2))
    defer_all(bench)
    assert bench.take(Area.DEFERRED) == []
    next_due = bench.queue.next_due(Area.DEFERRED)
    assert next_due is not None
    assert bench.now() + 500 <= next_due <= bench.now() + 600
    bench.harness.advance(601)
    bench.wait(bench.queue.ready(Area.DEFERRED))
    (message,) = bench.take(Area.DEFERRED)
    assert ids([message]) == [QueueId(spool_id, 1), QueueId(spool_id, 2)]
    assert [(entry.attempts, entry.reply) for entry in message.entries] == [(1, LATER_REPLY)] * 2
    assert bench.take(Area.DEFERRED) == []
    assert bench.read(spool_id) == CONTENT


def test_its_content_can_be_read_and_it_can_be_removed(bench: Bench) -> None:
    spool_id = bench.put(addresses(2))
    taken = defer_all(bench)
    assert bench.read(spool_id) == CONTENT
    assert bench.remove(taken[:1]) == []
    assert [entry.number for _, entry in bench.search()] == [2]
    assert in_memory(bench) == 0, "it rests again"
    assert bench.remove(taken) == [spool_id]
    assert bench.entry_count() == 0


def test_settlements_and_a_take_read_it_once(bench: Bench, harness: ChunkHarness) -> None:
    bench.put(addresses(3))
    first, second, third = defer_all(bench)
    bench.harness.advance(601)
    opened: list[str] = []

    def note(act: str, path: str) -> None:
        if act == "open" and "/remote/" in path:
            opened.append(path)

    harness.disk.fault = note
    taking = bench.queue.take(Area.DEFERRED, 9, bench.now(), None)
    done = [bench.queue.commit((), [Settlement(one, None)]) for one in (first, second)]
    taken = bench.wait(taking)
    assert third in ids(taken)
    assert len(opened) == 1, "one file was read, by one of them"
    for one in done:
        bench.wait(one)
    assert [entry.number for _, entry in bench.search()] == [3]


def opened_for(harness: ChunkHarness) -> list[str]:
    """Files of recipients that are opened from now on."""
    opened: list[str] = []

    def note(act: str, path: str) -> None:
        if act == "open" and ("/remote/" in path or "/local/" in path):
            opened.append(path)

    harness.disk.fault = note
    return opened


def test_a_claim_reads_what_it_looks_at_once(bench: Bench, harness: ChunkHarness) -> None:
    spool_ids = [bench.put([b"r@d.example"]) for _ in range(3)]
    defer_all(bench)
    opened = opened_for(harness)
    wanted = Filter(matches=lambda message, entry: message.spool_id != spool_ids[1])
    assert claimed_by_page(bench, wanted, 10) == [[QueueId(spool_ids[0], 1), QueueId(spool_ids[2], 1)]]
    assert len(opened) == 3
    assert in_memory(bench) == 2, "what does not match rests"
    assert bench.remove([QueueId(spool_ids[0], 1), QueueId(spool_ids[2], 1)]) == [spool_ids[0], spool_ids[2]]
    assert bench.entry_count() == 1


def test_a_claim_has_a_flush_that_came_while_it_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking_module, "SLICE", 1)
    spool_ids = [bench.put([b"r@d.example"]) for _ in range(20)]
    defer_all(bench)
    claiming = bench.queue.claim(Filter(), None, 100)
    bench.harness.advance(0.01)
    bench.harness.advance(0.01)
    flushing = bench.queue.visit_all(Filter(), bench.now())
    claimed = [entry for message in bench.wait(claiming).messages for entry in message.entries]
    assert len(claimed) == len(spool_ids)
    assert all(entry.due_at <= bench.now() for entry in claimed)
    bench.wait(flushing)


def test_a_claim_reads_again_what_was_changed_while_it_read(
    bench: Bench, harness: ChunkHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_module, "SLICE", 1)
    spool_ids = [bench.put(addresses(2)) for _ in range(200)]
    defer_all(bench)
    opened = opened_for(harness)
    claiming = bench.queue.claim(Filter(), None, 1000)
    while not opened:
        bench.harness.advance(0.001)
    assert bench.remove([QueueId(spool_ids[0], 1)]) == []
    assert not claiming.called
    assert in_memory(bench) == 0, "it rests again"
    page = bench.wait(claiming)
    assert ids(page.messages) == [QueueId(one, at) for one in spool_ids for at in (1, 2)][1:]
    bench.queue.give_back(ids(page.messages), bench.now())
    harness.disk.fault = None
    again = Bench(harness, harness.restart(bench.queue))
    assert again.entry_count() == 2 * len(spool_ids) - 1


def test_a_flush_finds_it(bench: Bench) -> None:
    spool_ids = [bench.put(addresses(3)) for _ in range(4)]
    defer_all(bench)
    wanted = Filter(matches=lambda message, entry: message.spool_id == spool_ids[1] and entry.number != 2)
    flushed = bench.wait(bench.queue.visit_all(wanted, bench.now()))
    assert (flushed.entries, flushed.gaps) == (2, ())
    bench.wait(bench.queue.ready(Area.DEFERRED))
    assert bench.take_ids(Area.DEFERRED) == [QueueId(spool_ids[1], 1), QueueId(spool_ids[1], 3)]
    assert bench.wait(bench.queue.visit_all(Filter(spool_id=spool_ids[2]), bench.now())).entries == 3
    assert len(bench.take_ids(Area.DEFERRED)) == 3


def test_a_search_reads_it_page_by_page(bench: Bench) -> None:
    spool_ids = [bench.put(addresses(3)) for _ in range(30)]
    defer_all(bench)
    fresh = bench.put()
    found = [QueueId(message.spool_id, entry.number) for message, entry in bench.search(limit=7)]
    assert found == [QueueId(one, number) for one in spool_ids for number in (1, 2, 3)] + [QueueId(fresh, 1)]
    assert [message.spool_id for message, _ in bench.search(Filter(area=Area.INCOMING))] == [fresh]


def test_a_message_that_can_not_be_read_is_a_gap_and_is_tried_again(bench: Bench, harness: ChunkHarness) -> None:
    sick, well = bench.put([b"r@d.example"]), bench.put([b"r@d.example"])
    defer_all(bench)
    assert isinstance(bench.queue, ChunkQueue)
    place = bench.queue.parts.ledger.place_of(sick)
    assert place is not None
    harness.disk.fault = lambda act, path: (
        OSError(errno.EIO, "EIO") if act == "open" and path.endswith(f"/{place[0]}") else None
    )
    page = bench.wait(bench.queue.search(Filter(), None, 100))
    assert [message.spool_id for message in page.messages] == [well]
    assert [gap.count for gap in page.gaps] == [1]
    assert bench.entry_count() == 2
    bench.harness.advance(601)
    assert [one.spool_id for one in bench.take_ids(Area.DEFERRED)] == [well]
    assert bench.take(Area.DEFERRED) == []
    harness.disk.fault = None
    assert bench.take(Area.DEFERRED) == []
    bench.harness.advance(UNREADABLE_S + 1)
    assert [one.spool_id for one in bench.take_ids(Area.DEFERRED)] == [sick]


def test_new_mail_rests_while_too_many_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "MOST_WAITING", 10)
    spool_ids = [bench.put() for _ in range(30)]
    assert in_memory(bench) <= 10
    assert bench.entry_count() == 30
    taken: list[SpoolId] = []
    while some := bench.take_ids(limit=7):
        taken += [one.spool_id for one in some]
        assert len({*taken}) == len(taken)
        bench.remove(some)
        bench.harness.advance(0.1)
    assert sorted(taken) == spool_ids


def test_one_sender_fills_no_memory_and_hides_nobody(bench: Bench) -> None:
    big = [bench.put(sender=b"big@b.example") for _ in range(300)]
    small = bench.put(sender=b"small@b.example")
    defer_all(bench)
    bench.harness.advance(601)
    taken = bench.take(Area.DEFERRED, 50, Most(5))
    assert in_memory(bench) <= 110
    assert small in {message.spool_id for message in taken}
    seen = {message.spool_id for message in taken}
    bench.remove(ids(taken))
    for _ in range(200):
        bench.queue.room_again()
        taken = bench.take(Area.DEFERRED, 50, Most(5))
        assert not seen & {message.spool_id for message in taken}
        seen |= {message.spool_id for message in taken}
        bench.remove(ids(taken))
    assert seen == {*big, small}


def test_files_do_not_grow_with_each_attempt(bench: Bench, harness: ChunkHarness) -> None:
    bench.put([b"r@d.example"])
    for _ in range(200):
        defer_all(bench)
        bench.harness.advance(601)
    (path,) = (path for path in harness.disk.names if path.startswith("/q/remote/"))
    assert len(harness.disk.content_of(path)) < 40_000


def test_a_close_waits_for_what_is_being_read(bench: Bench, harness: ChunkHarness) -> None:
    bench.put([b"r@d.example"])
    defer_all(bench)
    bench.harness.advance(601)
    taking = bench.queue.take(Area.DEFERRED, 9, bench.now(), None)
    bench.wait(bench.queue.close())
    assert taking.called


def test_a_page_of_a_claim_ends_after_some_messages(bench: Bench) -> None:
    last = [bench.put(addresses(1)) for _ in range(5)][-1]
    assert claimed_by_page(bench, Filter(matches=lambda message, entry: False), 2) == [[]] * 3
    wanted = Filter(matches=lambda message, entry: message.spool_id == last)
    assert claimed_by_page(bench, wanted, 2) == [[], [], [QueueId(last, 1)]]
