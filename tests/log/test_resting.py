"""Entries that rest in the log alone, and envelopes that are written again."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.control import claiming, ledger, loading, piece_reading, rounds
from mailismus.queue.providers.log.control.learning import Learning
from mailismus.queue.providers.log.index import resting
from tests.contracts.bench import addresses
from tests.contracts.claiming import claimed_by_page
from tests.fakes.shares import Most
from tests.fakes.worker import ACT_S
from tests.log.story import Story


@pytest.fixture
def story() -> Story:
    return Story()


def test_what_is_deferred_for_long_is_not_in_memory_and_comes_in_time(story: Story) -> None:
    spool_id = story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 3600)
    assert story.loaded == 0
    assert story.queue.next_due(Area.DEFERRED) == pytest.approx(story.bench.now() + 3600, abs=5)
    assert story.bench.take_ids(Area.DEFERRED) == []
    story.harness.advance(3601)
    assert story.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 1)]


def test_a_flush_does_not_hold_for_what_is_deferred_behind_it(story: Story) -> None:
    spool_id = story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 3600)
    assert story.bench.wait(story.queue.visit_all(Filter(), story.bench.now())).entries == 1
    taken = story.bench.take_ids(Area.DEFERRED)
    assert taken == [QueueId(spool_id, 1)]
    story.bench.defer(taken, story.bench.now() + 3600, attempts=2)
    assert story.bench.take_ids(Area.DEFERRED) == []
    assert story.loaded == 0


def test_new_mail_rests_when_memory_is_full_and_goes_out_all_the_same(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_NEW", 2)
    spool_ids = [story.bench.put() for _ in range(10)]
    assert story.loaded == 2
    taken = [queue_id for _ in range(5) for queue_id in story.bench.take_ids()]
    assert sorted(taken) == [QueueId(spool_id, 1) for spool_id in spool_ids]
    assert story.bench.remove(taken) == spool_ids


def test_memory_is_bounded_while_much_is_due(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_LOADED", 10)
    monkeypatch.setattr(loading, "MOST_NEAR", 5)
    due_at = story.bench.now() + 100
    for _ in range(40):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), due_at)
    story.harness.advance(101)
    seen = 0
    for _ in range(200):
        taken = story.bench.take_ids(Area.DEFERRED, limit=3)
        assert story.loaded <= 13
        story.bench.remove(taken)
        seen += len(taken)
        story.harness.advance(0.1)
    assert seen == 40


def test_an_envelope_that_hangs_is_written_again_and_the_suffix_goes_on(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SUFFIX_BYTES", 2 << 20)
    spool_id = story.bench.put(addresses(3))
    taken = story.bench.take_ids()
    story.bench.remove(taken[:1])
    (envelope,) = story.queue.ledger.working
    pin = envelope.pin
    for _ in range(5):
        story.complete_segment()
        story.harness.settle_down()
        story.harness.round(story.queue)
    assert envelope.pin > pin
    story.bench.remove(taken[1:2])
    story.crash()
    assert story.bench.take_ids() == [QueueId(spool_id, 3)]
    assert story.bench.read(spool_id).startswith(b"Received")


def test_what_hangs_and_was_written_again_is_not_lost(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records before the move have left the suffix, and what waits lies behind it: a record beside the move tells that
    work is going on."""
    monkeypatch.setattr(rounds, "SUFFIX_BYTES", 2 << 20)
    spool_id = story.bench.put()
    taken = story.bench.take_ids()
    for _ in range(2):
        story.harness.round(story.queue)
    story.bench.put()
    story.bench.remove(story.bench.take_ids())  # its batches take the start record along
    (envelope,) = story.queue.ledger.working
    former = envelope.place
    while envelope.place == former:
        story.complete_segment()
        story.harness.settle_down()
        story.harness.round(story.queue)
    story.complete_segment()
    story.harness.settle_down()
    story.harness.round(story.queue)
    story.crash()
    assert story.bench.take_ids() == taken == [QueueId(spool_id, 1)]
    assert story.bench.read(spool_id).startswith(b"Received")


def test_a_message_with_several_envelopes_survives_failed_segments(story: Story) -> None:
    spool_id = story.bench.put(addresses(3))
    first, second, third = story.bench.take_ids()
    story.bench.defer([second], story.bench.now() + 10)
    story.harness.disk.fault = lambda act, path: OSError(5, "bad disk") if act == "sync" and "/q/log/" in path else None
    done = story.queue.commit([story.bench.submission()], [])
    done.addErrback(lambda failure: None)
    story.harness.settle_down()
    story.harness.mend(story.queue)
    story.harness.advance(20)
    story.bench.remove([first])
    for _ in range(3):
        story.harness.round(story.queue)
    assert story.bench.read(spool_id).startswith(b"Received")
    story.bench.defer([third], story.bench.now() + 10, attempts=2)
    assert not story.queue.parts.segments.failed
    story.crash()
    story.harness.advance(30)
    assert story.bench.take_ids(Area.DEFERRED) == [second, third]
    assert story.bench.read(spool_id).startswith(b"Received")


def test_what_was_held_back_for_its_sender_is_read_as_soon_as_there_is_room(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 4096)
    monkeypatch.setattr(loading, "MOST_LOADED", 20)
    monkeypatch.setattr(loading, "MOST_NEAR", 10)
    due_at = story.bench.now() + 100
    for _ in range(100):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), due_at)
    story.harness.advance(101)
    began_s, seen = story.bench.now(), 0
    for _ in range(200):
        taken = story.bench.take_ids(Area.DEFERRED, limit=10, shares=Most(2))
        assert story.loaded <= 23
        story.bench.remove(taken)
        seen += len(taken)
        story.queue.room_again()
        if seen == 100:
            break
    assert seen == 100
    assert story.bench.now() - began_s < 2
    assert story.queue.parts.reading.pieces_read <= 500  # of 100


def test_each_piece_of_a_backlog_is_read_once(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (resting, piece_reading):
        monkeypatch.setattr(module, "PIECE_BYTES", 26 << 10)  # behind them lies a batch in which nothing rests
    due_at = story.bench.now() + 3600
    for _ in range(100):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), due_at)
    pieces = len(list(story.queue.parts.resting.all()))
    assert pieces > 10
    story.harness.advance(3601)
    taken = [queue_id for _ in range(pieces) for queue_id in story.bench.take_ids(Area.DEFERRED, limit=200)]
    assert len(set(taken)) == len(taken) == 100
    assert story.queue.parts.reading.pieces_read == pieces


def test_a_piece_that_was_read_in_part_says_what_rests_behind(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    due_at = story.bench.now() + 3600
    for _ in range(100):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), due_at)
    assert len(list(story.queue.parts.resting.all())) == 1
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 32 << 10)
    story.harness.advance(3601)
    taken = [queue_id for _ in range(100) for queue_id in story.bench.take_ids(Area.DEFERRED, limit=3)]
    assert len(set(taken)) == len(taken) == 100
    assert story.queue.parts.resting.is_empty


def test_what_is_durable_and_not_told_yet_is_not_read(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes into the segment that a start has begun, of which nothing is known yet. Else it would rest twice: as it is
    read, and as it is told."""
    monkeypatch.setattr(ledger, "MOST_NEW", 0)
    monkeypatch.setattr(Learning, "start", lambda *_: None)
    story.bench.put()
    story.crash()
    parts = story.queue.parts
    piece = list(parts.resting.all())[-1]
    done = story.queue.commit([story.bench.submission()], [])
    while parts.opened.writer.sequence == parts.commits.applied_sequence:
        story.harness.advance(ACT_S)
    story.bench.wait(Deferred.fromCoroutine(parts.reading.outline(piece)))
    story.bench.wait(done)
    assert parts.resting.amounts[Area.INCOMING].entries == 2


def test_a_page_of_a_claim_ends_after_some_messages_in_memory(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "CLAIM_MESSAGES", 2)
    last = [story.bench.put() for _ in range(5)][-1]
    assert claimed_by_page(story.bench, Filter(matches=lambda message, entry: False)) == [[]] * 3
    wanted = Filter(matches=lambda message, entry: message.spool_id == last)
    assert claimed_by_page(story.bench, wanted)[2] == [QueueId(last, 1)]


def test_a_page_of_a_claim_ends_after_a_piece_of_what_rests(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "PIECE_BYTES", 1)
    for _ in range(4):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), story.bench.now() + 3600)
        story.harness.advance(1)
    assert story.loaded == 0
    before = story.queue.parts.reading.pieces_read
    pages = claimed_by_page(story.bench, Filter(matches=lambda message, entry: False))
    assert len(pages) == story.queue.parts.reading.pieces_read - before > 1
