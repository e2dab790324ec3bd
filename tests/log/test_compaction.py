"""Compaction: the log stays short beside what lives in it, and nothing is lost or doubled by it."""

from __future__ import annotations

import random

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.control import compaction, rounds
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.index.garbage import LogUse, SegmentUse, choose_segments
from tests.contracts.bench import addresses
from tests.log.test_resting import Rest

MIB = 1 << 20


@pytest.fixture
def rest() -> Rest:
    return Rest()


def excess_bytes(rest: Rest) -> float:
    """Bytes of all files, free ones too, beyond twice what lives and four files."""
    use = rest.queue.parts.segments.use()
    return use.used_bytes + len(rest.queue.parts.opened.pool) * MIB - 2 * use.live_bytes - 4 * MIB


def compact(rest: Rest, rounds: int = 60) -> None:
    """Rounds until nothing is being emptied."""
    for _ in range(rounds):
        rest.harness.round(rest.queue)
        if not rest.queue.parts.compaction.is_active:
            return
    raise AssertionError("compaction never ends")


def scattered(rest: Rest, *, segments: int, size: int = 5000) -> list[QueueId]:
    """One message in fifty stays, deferred; the others are delivered. Return those that stay."""
    kept = []
    writer = rest.queue.parts.opened.writer
    first = writer.current
    number = first.number if first is not None else 0
    at = 0
    while writer.current is None or writer.current.number < number + segments:
        rest.bench.put(content=b"%d " % at + b"x" * size)
        (taken,) = rest.bench.take_ids()
        if at % 50 == 0:
            rest.bench.defer([taken], rest.bench.now() + 36_000)
            kept.append(taken)
        else:
            rest.bench.remove([taken])
        at += 1
    return kept


def all_deferred(rest: Rest) -> list[QueueId]:
    rest.harness.advance(40_000)
    found: list[QueueId] = []
    while taken := rest.bench.take_ids(Area.DEFERRED):
        found += taken
    return found


def test_few_old_messages_do_not_keep_their_segments(rest: Rest) -> None:
    kept = scattered(rest, segments=12)
    compact(rest)
    assert len(rest.queue.parts.opened.writer.segments) <= 4
    assert excess_bytes(rest) <= 3 * MIB  # the reserve, and the segment that is being written
    assert rest.loaded == 0, "what was moved rests again"
    assert not rest.queue.ledger.working
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert sorted(all_deferred(rest)) == kept
    assert all(b"x" * 5000 in rest.bench.read(spool_id) for spool_id, _ in kept)


@pytest.mark.parametrize("cut_after", range(0, 40, 3))
def test_a_power_cut_in_the_midst_of_it_loses_and_doubles_nothing(rest: Rest, cut_after: int) -> None:
    kept = scattered(rest, segments=8)
    rest.queue.rounds.run()
    for _ in range(cut_after):
        rest.harness.advance(0.02)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.harness.wait(rest.queue.parts.loading.learn())
    compact(rest)
    assert sorted(all_deferred(rest)) == kept
    assert all(b"x" * 5000 in rest.bench.read(spool_id) for spool_id, _ in kept)


def test_what_is_settled_while_it_is_moved_is_gone_and_stays_so(rest: Rest) -> None:
    kept = scattered(rest, segments=8)
    rest.harness.advance(36_000 - 30)  # nearly due: they are in memory soon
    rest.queue.rounds.run()
    gone = []
    for _ in range(len(kept)):
        rest.harness.advance(0.5)
        taken = rest.bench.take_ids(Area.DEFERRED, limit=1)
        gone += taken
        rest.queue.rounds.run()
        rest.bench.remove(taken)
    compact(rest)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert sorted(gone + all_deferred(rest)) == kept


@pytest.mark.parametrize("is_replaced", [False, True], ids=["delivered", "deferred"])
def test_what_is_over_before_its_copy_is_durable_does_not_come_back(
    rest: Rest, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    """The copy waits for a batch; meanwhile the message is over, its garbage is marked, and positions are written."""
    monkeypatch.setattr(Moves, "push", lambda moves: None)
    rest.bench.put(content=b"x" * 5000)
    (queue_id,) = rest.bench.take_ids()
    while len(rest.queue.parts.opened.writer.segments) < 2:
        rest.bench.put(content=b"y" * 100_000)  # it waits: the suffix may begin behind it
    moves = rest.queue.parts.moves
    rest.harness.wait(Deferred.fromCoroutine(moves.prepare([1], MIB, 10)))
    if is_replaced:
        rest.bench.defer([queue_id], rest.bench.now() + 10)
    else:
        rest.bench.remove([queue_id])
    for _ in range(3):
        rest.harness.round(rest.queue)
    rest.bench.put()
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert queue_id not in rest.bench.take_ids(limit=100)
    rest.harness.advance(20)
    assert rest.bench.take_ids(Area.DEFERRED) == [queue_id] * is_replaced


def test_one_recipient_that_hangs_does_not_keep_a_segment(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SUFFIX_BYTES", 2 * MIB)
    spool_id = rest.bench.put(addresses(3), b"y" * 5000)
    taken = rest.bench.take_ids()
    rest.bench.remove(taken[:1])
    scattered(rest, segments=8)
    first = min(rest.queue.parts.opened.writer.segments)
    for _ in range(3):
        compact(rest)
    assert first not in rest.queue.parts.opened.writer.segments
    rest.bench.remove(taken[1:2])
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert rest.bench.take_ids() == taken[2:]
    assert b"y" * 5000 in rest.bench.read(spool_id)


def test_several_envelopes_of_a_message_have_one_content_afterwards(rest: Rest) -> None:
    spool_id = rest.bench.put(addresses(4), b"z" * 100_000)
    taken = rest.bench.take_ids()
    for at, queue_id in enumerate(taken):
        rest.bench.defer([queue_id], rest.bench.now() + 36_000 + at)
    scattered(rest, segments=8)
    compact(rest)
    use = rest.queue.parts.segments.use()
    assert use.used_bytes <= 5 * MIB
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    found = all_deferred(rest)
    assert set(taken) <= set(found)
    assert b"z" * 100_000 in rest.bench.read(spool_id)


def test_a_turn_is_bounded(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "TURN_COUNT", 5)
    scattered(rest, segments=8)
    first = before = rest.queue.parts.compaction.moved
    for _ in range(20):
        rest.harness.round(rest.queue)
        moved = rest.queue.parts.compaction.moved
        assert moved - before <= 2 * 5  # a round has one turn, and may be followed by the next one
        before = moved
    assert before > first


def test_disk_use_is_bounded_through_many_retries(rest: Rest) -> None:
    random.seed(7)
    for _ in range(150):
        rest.bench.put(content=b"w" * 20_000)
    queue_ids = []
    while taken := rest.bench.take_ids(limit=50):
        queue_ids += taken
        rest.bench.defer(taken, rest.bench.now() + 600)
    for attempt in range(2, 8):
        rest.harness.advance(700)
        due = rest.bench.take_ids(Area.DEFERRED, limit=1000)
        assert len(due) > 100 - attempt * 10
        rest.bench.remove(due[:10])
        for queue_id in due[10:]:
            rest.bench.defer([queue_id], rest.bench.now() + 600, attempts=attempt)
        compact(rest)
        assert excess_bytes(rest) <= 3 * MIB


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


def test_a_batch_that_a_start_wrote_again_is_not_found_where_it_was(rest: Rest) -> None:
    old = rest.bench.put()
    rest.bench.defer(rest.bench.take_ids(), rest.bench.now() + 36_000)
    last = rest.bench.put()
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.harness.wait(rest.queue.parts.loading.learn())
    denier = max(rest.queue.parts.opened.writer.segments)
    assert rest.bench.take_ids() == [QueueId(last, 1)]
    rest.bench.remove([QueueId(last, 1)])
    for _ in range(10):  # until its file is used again
        rest.fill_segment()
        rest.harness.round(rest.queue)
    assert denier not in rest.queue.parts.opened.writer.segments
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert rest.bench.take_ids() == []
    assert all_deferred(rest) == [QueueId(old, 1)]
