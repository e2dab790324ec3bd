"""Compaction: the log stays short beside what lives in it, and nothing is lost or doubled by it."""

from __future__ import annotations

import random

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.control import compaction, piece_reading, rounds
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.index.garbage import LogUse, SegmentUse, choose_segments
from mailismus.queue.providers.log.index.search_holds import HOLD_S
from tests.contracts.bench import addresses
from tests.log.story import Story

MIB = 1 << 20


@pytest.fixture
def story() -> Story:
    return Story()


def excess_bytes(story: Story) -> float:
    """Bytes of all files, free ones too, beyond twice what lives and four files."""
    use = story.queue.parts.segments.use()
    return use.used_bytes + len(story.queue.parts.opened.pool) * MIB - 2 * use.live_bytes - 4 * MIB


def compact(story: Story, rounds: int = 60) -> None:
    """Rounds until nothing is being emptied."""
    for _ in range(rounds):
        story.harness.round(story.queue)
        if not story.queue.parts.compaction.is_active:
            return
    raise AssertionError("compaction never ends")


def scattered(story: Story, *, segments: int, size: int = 5000) -> list[QueueId]:
    """One message in fifty stays, deferred; the others are delivered. Return those that stay."""
    kept = []
    writer = story.queue.parts.opened.writer
    first = writer.current
    number = first.number if first is not None else 0
    at = 0
    while writer.current is None or writer.current.number < number + segments:
        story.bench.put(content=b"%d " % at + b"x" * size)
        (taken,) = story.bench.take_ids()
        if at % 50 == 0:
            story.bench.defer([taken], story.bench.now() + 36_000)
            kept.append(taken)
        else:
            story.bench.remove([taken])
        at += 1
    return kept


def all_deferred(story: Story) -> list[QueueId]:
    story.harness.advance(40_000)
    found: list[QueueId] = []
    while taken := story.bench.take_ids(Area.DEFERRED):
        found += taken
    return found


def test_few_old_messages_do_not_keep_their_segments(story: Story) -> None:
    kept = scattered(story, segments=12)
    compact(story)
    assert len(story.queue.parts.opened.writer.segments) <= 4
    assert excess_bytes(story) <= 3 * MIB  # the reserve, and the segment that is being written
    assert story.loaded == 0, "what was moved rests again"
    assert not story.queue.ledger.working
    story.crash()
    assert sorted(all_deferred(story)) == kept
    assert all(b"x" * 5000 in story.bench.read(spool_id) for spool_id, _ in kept)


@pytest.mark.parametrize("cut_after", range(0, 40, 3))
def test_a_power_cut_in_the_midst_of_it_loses_and_doubles_nothing(story: Story, cut_after: int) -> None:
    kept = scattered(story, segments=8)
    story.queue.rounds.run()
    for _ in range(cut_after):
        story.harness.advance(0.02)
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    compact(story)
    assert sorted(all_deferred(story)) == kept
    assert all(b"x" * 5000 in story.bench.read(spool_id) for spool_id, _ in kept)


def test_what_is_settled_while_it_is_moved_is_gone_and_stays_so(story: Story) -> None:
    kept = scattered(story, segments=8)
    story.harness.advance(36_000 - 30)  # nearly due: they are in memory soon
    story.queue.rounds.run()
    gone = []
    for _ in range(len(kept)):
        story.harness.advance(0.5)
        taken = story.bench.take_ids(Area.DEFERRED, limit=1)
        gone += taken
        story.queue.rounds.run()
        story.bench.remove(taken)
    compact(story)
    story.crash()
    assert sorted(gone + all_deferred(story)) == kept


@pytest.mark.parametrize("is_replaced", [False, True], ids=["delivered", "deferred"])
def test_what_is_over_before_its_copy_is_durable_does_not_come_back(
    story: Story, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    """The copy waits for a batch; meanwhile the message is over, its garbage is marked, and positions are written."""
    monkeypatch.setattr(Moves, "push", lambda moves: None)
    story.bench.put(content=b"x" * 5000)
    (queue_id,) = story.bench.take_ids()
    while len(story.queue.parts.opened.writer.segments) < 2:
        story.bench.put(content=b"y" * 100_000)  # it waits: the suffix may begin behind it
    moves = story.queue.parts.moves
    story.harness.wait(Deferred.fromCoroutine(moves.prepare([1], MIB, 10)))
    if is_replaced:
        story.bench.defer([queue_id], story.bench.now() + 10)
    else:
        story.bench.remove([queue_id])
    for _ in range(3):
        story.harness.round(story.queue)
    story.bench.put()
    story.crash()
    assert queue_id not in story.bench.take_ids(limit=100)
    story.harness.advance(20)
    assert story.bench.take_ids(Area.DEFERRED) == [queue_id] * is_replaced


def test_one_recipient_that_hangs_does_not_keep_a_segment(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SUFFIX_BYTES", 2 * MIB)
    spool_id = story.bench.put(addresses(3), b"y" * 5000)
    taken = story.bench.take_ids()
    story.bench.remove(taken[:1])
    scattered(story, segments=8)
    first = min(story.queue.parts.opened.writer.segments)
    for _ in range(3):
        compact(story)
    assert first not in story.queue.parts.opened.writer.segments
    story.bench.remove(taken[1:2])
    story.crash()
    assert story.bench.take_ids() == taken[2:]
    assert b"y" * 5000 in story.bench.read(spool_id)


def test_several_envelopes_of_a_message_have_one_content_afterwards(story: Story) -> None:
    spool_id = story.bench.put(addresses(4), b"z" * 100_000)
    taken = story.bench.take_ids()
    for at, queue_id in enumerate(taken):
        story.bench.defer([queue_id], story.bench.now() + 36_000 + at)
    scattered(story, segments=8)
    compact(story)
    use = story.queue.parts.segments.use()
    assert use.used_bytes <= 5 * MIB
    story.crash()
    found = all_deferred(story)
    assert set(taken) <= set(found)
    assert b"z" * 100_000 in story.bench.read(spool_id)


def test_a_turn_is_bounded(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "TURN_COUNT", 5)
    scattered(story, segments=8)
    first = before = story.queue.parts.compaction.moved
    for _ in range(20):
        story.harness.round(story.queue)
        moved = story.queue.parts.compaction.moved
        assert moved - before <= 2 * 5  # a round has one turn, and may be followed by the next one
        before = moved
    assert before > first


def test_disk_use_is_bounded_through_many_retries(story: Story) -> None:
    random.seed(7)
    for _ in range(150):
        story.bench.put(content=b"w" * 20_000)
    queue_ids = []
    while taken := story.bench.take_ids(limit=50):
        queue_ids += taken
        story.bench.defer(taken, story.bench.now() + 600)
    for attempt in range(2, 8):
        story.harness.advance(700)
        due = story.bench.take_ids(Area.DEFERRED, limit=1000)
        assert len(due) > 100 - attempt * 10
        story.bench.remove(due[:10])
        for queue_id in due[10:]:
            story.bench.defer([queue_id], story.bench.now() + 600, attempts=attempt)
        compact(story)
        assert excess_bytes(story) <= 3 * MIB


def test_the_emptiest_segments_are_chosen_and_no_more_than_needed() -> None:
    log = LogUse(40 * MIB, 10 * MIB, MIB)
    segments = [SegmentUse(number, MIB, number * 10_000) for number in range(1, 40)]
    chosen = choose_segments(log, segments, 64 * MIB)
    assert chosen == list(range(1, len(chosen) + 1))
    won = sum(MIB - segments[number - 1].live_bytes for number in chosen)
    assert 40 * MIB - won <= 1.75 * 10 * MIB + 2 * MIB
    assert choose_segments(log, segments, MIB // 2) == list(range(1, 10))


def test_a_short_log_is_left_alone_and_full_segments_are() -> None:
    assert choose_segments(LogUse(18 * MIB, 10 * MIB, MIB), [SegmentUse(1, MIB, 0)], 64 * MIB) == []
    assert choose_segments(LogUse(40 * MIB, 10 * MIB, MIB), [SegmentUse(1, MIB, 900_000)], 64 * MIB) == []


def test_a_batch_that_a_start_wrote_again_is_not_found_where_it_was(story: Story) -> None:
    old = story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 36_000)
    last = story.bench.put()
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    denier = max(story.queue.parts.opened.writer.segments)
    assert story.bench.take_ids() == [QueueId(last, 1)]
    story.bench.remove([QueueId(last, 1)])
    for _ in range(10):  # until its file is used again
        story.complete_segment()
        story.harness.round(story.queue)
    assert denier not in story.queue.parts.opened.writer.segments
    story.crash()
    assert story.bench.take_ids() == []
    assert all_deferred(story) == [QueueId(old, 1)]


def at_rest(story: Story, segments: int) -> set[QueueId]:
    """Messages that stay in segments that are to be emptied, but were not yet. Return them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "choose_segments", lambda *_: [])
        return set(scattered(story, segments=segments))


def test_a_search_misses_nothing_that_would_be_moved_meanwhile(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_reading, "SLICE_ENTRIES", 1)
    kept, found = at_rest(story, 8), set[QueueId]()
    page = story.bench.wait(story.queue.search(Filter(), None, 3))
    while True:
        found.update(queue_id for message in page.messages for queue_id in message.queue_ids())
        if page.cursor is None:
            break
        story.harness.round(story.queue)
        page = story.bench.wait(story.queue.search(Filter(), page.cursor, 3))
    assert found == kept
    compact(story)
    assert story.queue.parts.compaction.emptied > 5
    assert set(all_deferred(story)) == kept


def test_a_search_that_is_not_gone_on_with_holds_nothing_for_long(story: Story) -> None:
    at_rest(story, 8)
    assert story.bench.wait(story.queue.search(Filter(), None, 1)).cursor is not None
    held = story.queue.parts.search_holds.segments()
    assert len(held) > 5
    story.harness.advance(HOLD_S + 1)
    compact(story)
    assert story.queue.parts.compaction.emptied > 5


def test_moves_ride_with_the_next_batch_and_need_none_of_their_own(story: Story) -> None:
    scattered(story, segments=8)
    parts = story.queue.parts
    for _ in range(20):
        turn = Deferred.fromCoroutine(parts.compaction.turn())
        story.harness.wait(turn)
        before = parts.commits.applied_sequence
        story.harness.advance(0.05)  # what was written would be durable now
        if parts.moves.under_way:
            break
    prepared = parts.moves.under_way
    assert parts.commits.applied_sequence == before
    assert prepared > 1
    story.bench.put()
    assert parts.commits.applied_sequence == before + 1
    assert parts.moves.under_way < prepared
