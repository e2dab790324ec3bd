"""When a segment of the log may be freed, or removed."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Unavailable
from mailismus.journal.batch import BLOCK, SegmentHeader
from mailismus.journal.segment import make_segment
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.log.control.compaction import Compaction
from mailismus.queue.providers.log.control.rounds import name_free
from mailismus.queue.providers.log.format.record import GARBAGE, mark_offset
from mailismus.queue.providers.log.recovery.opening import read_positions
from tests.contracts.bench import addresses
from tests.log.story import Story
from tests.log.test_denied import no_turn
from tests.log.test_rounds import disk_of

LAST = 1 << 60


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue that is not compacted."""
    monkeypatch.setattr(Compaction, "turn", no_turn)
    return Story()


def test_names_of_free_segments_are_durable() -> None:
    disk = disk_of()
    segment = make_segment(disk, "/q/log", "00000007.mqj", 2 * BLOCK)
    segment.begin(SegmentHeader(7, 1, 0, 1, 0, bytes(16)))
    name_free(disk, "/q/log", [segment])
    disk.power_cut()
    assert disk.list_directory("/q/log") == ["ready-00000007.mqj"]


def test_a_free_segment_does_not_count_at_a_start(story: Story) -> None:
    story.complete_segment()
    story.complete_segment()
    for _ in range(2):
        story.harness.round(story.queue)
    assert story.harness.disk.exists("/q/log/ready-00000001.mqj")
    story.crash()
    assert 1 not in story.queue.parts.segments.in_use()


def test_a_segment_counts_under_the_name_that_it_had_before_its_first_use(story: Story) -> None:
    """A power cut may leave that name. The number in it is not one of a use, though it may be the same."""
    story.bench.put()
    disk = story.harness.disk
    disk.rename("/q/log/00000001.mqj", "/q/log/ready-1.mqj")
    disk.sync_directory("/q/log")
    story.crash()
    assert len(story.bench.take_ids()) == 1


def fill(story: Story, count: int) -> None:
    """So many segments, which no round frees."""
    story.queue.rounds.stop()
    for _ in range(count):
        story.complete_segment()
        story.queue.parts.segments.top_up()
        story.harness.settle_down()


def over(story: Story, *unmarked: int) -> list[int]:
    """Numbers of the segments that may be freed if positions begin behind all of them."""
    return [segment.number for segment in story.queue.parts.segments.over(LAST, unmarked)]


def test_a_segment_may_be_freed_when_nothing_holds_it(story: Story) -> None:
    fill(story, 3)
    assert over(story) == [1, 2, 3]
    assert over(story, 2) == [1, 3]  # a mark in it is not durable


def test_a_segment_that_may_deny_batches_of_a_failed_one_is_kept(story: Story) -> None:
    fill(story, 3)
    story.queue.parts.segments.fail(1)
    assert over(story) == [3]


def test_a_failed_segment_stays_while_a_start_needs_its_records(story: Story) -> None:
    """One of two recipients is delivered, and the record of that is in a segment that fails: nothing lives there."""
    story.bench.put(addresses(2))
    first, second = story.bench.take_ids()
    story.complete_segment()
    story.bench.remove([first])
    story.complete_segment()
    segments = story.queue.parts.segments
    assert [segment.number for segment in segments.unneeded()] == [2]
    segments.fail(2)
    for _ in range(3):
        story.harness.round(story.queue)
    assert 2 in segments.in_use()
    story.crash()
    assert story.bench.take_ids() == [second]


def test_the_content_of_an_envelope_that_is_moved_keeps_its_segment(story: Story) -> None:
    story.bench.put()
    (queue_id,) = story.bench.take_ids()
    story.complete_segment()
    story.bench.defer([queue_id], story.bench.now() + 10)  # its envelope is in the second segment, its content in the first
    story.complete_segment()
    story.harness.advance(11)
    assert story.bench.take_ids(Area.DEFERRED) == [queue_id]
    moves = story.queue.parts.moves
    assert story.harness.wait(Deferred.fromCoroutine(moves.prepare([2], 1 << 20, 10))) == 1
    moves.push()
    story.harness.settle_down()
    assert over(story) == [2]
    assert story.bench.read(queue_id.spool_id).startswith(b"Received")


def test_a_segment_that_is_to_be_removed_counts_for_nothing(story: Story) -> None:
    """Its marks could not be written, and the records that tell what is garbage there have left the suffix: positions say
    that it is to go, before it goes."""
    story.queue.rounds.stop()
    story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 36_000)  # it rests, so a start reads from here on
    story.complete_segment()
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.complete_segment()
    story.queue.parts.segments.top_up()
    story.harness.settle_down()
    story.complete_segment()
    story.queue.parts.segments.fail(2)
    story.queue.rounds._is_stopped = False
    story.harness.disk.fault = lambda act, path: OSError(5, "bad disk") if act == "unlink" else None
    for _ in range(2):
        story.queue.rounds.run()
        story.harness.settle_down()
    story.harness.disk.fault = None
    positions = read_positions(story.harness.disk, "/q")
    assert positions is not None
    assert positions.ignored == (2,)
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    assert story.bench.take_ids() == []


def test_positions_by_which_a_start_ignores_a_segment_are_durable_before_it_goes_on(story: Story) -> None:
    """The server is killed before it has synced them, and a power cut follows the start."""
    story.bench.put()
    story.harness.round(story.queue)
    taken = story.bench.take_ids()
    story.complete_segment()
    story.queue.parts.segments.fail(1)
    story.bench.remove(taken)
    disk = story.harness.disk
    disk.fault = lambda act, path: OSError(5, "bad disk") if act == "sync" and "/q/positions" in path else None
    story.queue.rounds.run()
    story.harness.settle_down()
    disk.fault = None
    positions = read_positions(disk, "/q")
    assert positions is not None
    assert positions.ignored == (1,)
    story.harness.clock.calls.clear()
    disk.kill()
    story.bench.queue = story.harness.open()
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    assert story.bench.take_ids() == []


def test_what_is_over_is_not_missing_at_a_start(story: Story) -> None:
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.crash()
    assert story.queue.parts.opened.found.missing == set()


def test_a_start_reads_no_segment_before_the_positions(story: Story) -> None:
    """The first one holds the content of a message alone, whose envelope is in the third one."""
    story.bench.put()
    taken = story.bench.take_ids()
    story.complete_segment()
    story.complete_segment()
    story.bench.defer(taken, story.bench.now() + 36_000)
    story.complete_segment()
    for _ in range(2):
        story.harness.round(story.queue)
    assert 1 in story.queue.parts.segments.in_use()
    story.crash()
    assert 1 not in dict(story.queue.parts.opened.found.unread)
    assert 3 in dict(story.queue.parts.opened.found.unread)


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["before it in its segment", "at a higher offset of another"])
def test_a_content_stays_where_it_is_when_a_start_writes_its_replacement_again(story: Story, is_elsewhere: bool) -> None:
    for _ in range(2):
        story.bench.put(content=b"y" * 120_000)
        story.bench.remove(story.bench.take_ids())
    story.bench.put(content=b"x" * 100)
    taken = story.bench.take_ids()
    if is_elsewhere:
        story.complete_segment()
    for _ in range(2):
        story.harness.round(story.queue)
    story.bench.put()
    story.bench.remove(story.bench.take_ids())  # the start record goes along
    story.queue.parts.moves.move_on(list(story.queue.ledger.working))
    story.bench.put()
    story.crash()
    assert taken[0] in story.bench.take_ids()
    assert story.bench.read(taken[0].spool_id).endswith(b"x" * 100)


def test_what_no_entry_is_left_of_is_garbage_at_a_start(story: Story) -> None:
    """No record says that it is over: while one of its entries went, it was not sure that the other one would."""
    story.bench.put(addresses(2))
    first, second = story.bench.take_ids()
    with_mail = story.queue.commit([story.bench.submission()], [Settlement(first, None)])
    alone = story.queue.commit([], [Settlement(second, None)])
    story.bench.wait(with_mail)
    story.bench.wait(alone)
    story.crash()
    assert first.spool_id not in {queue_id.spool_id for queue_id in story.bench.take_ids()}
    (one,) = story.queue.ledger.unmarked
    path = story.queue.parts.segments.in_use()[one.segment].path
    story.harness.disk.names[path].data[mark_offset(one.offset)] = GARBAGE[0]  # written, and not synced
    story.harness.clock.calls.clear()
    story.harness.disk.kill()
    story.bench.queue = story.harness.open()
    assert [(again.segment, again.offset) for again in story.queue.ledger.unmarked] == [(one.segment, one.offset)]


def test_an_envelope_is_not_over_while_a_part_of_it_may_fail(story: Story) -> None:
    """A commit with mail fails, and with it a settlement; the one that was asked for behind it does not."""
    story.bench.put(addresses(2))
    first, second = story.bench.take_ids()
    faults = [OSError(5, "bad disk")]
    story.harness.disk.fault = lambda act, path: faults.pop() if faults and act == "sync" and "/q/log/" in path else None
    with_mail = story.queue.commit([story.bench.submission()], [Settlement(first, None)])
    alone = story.queue.commit([], [Settlement(second, None)])
    with pytest.raises(Unavailable):
        story.bench.wait(with_mail)
    story.bench.wait(alone)
    story.crash()
    assert first in story.bench.take_ids()


def test_what_a_start_wrote_again_lies_where_it_wrote_it(story: Story) -> None:
    story.bench.put()
    (taken,) = story.bench.take_ids()
    for _ in range(2):
        story.harness.round(story.queue)
    story.bench.put()
    story.bench.remove(story.bench.take_ids())  # the start record goes along
    story.queue.parts.moves.move_on(list(story.queue.ledger.working))
    story.bench.put()
    story.crash()
    lying = [envelope.segment for envelope in story.queue.ledger.working]
    assert lying == [max(story.queue.parts.segments.in_use())]
    assert taken in story.bench.take_ids()
