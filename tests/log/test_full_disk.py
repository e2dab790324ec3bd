"""A start on a full disk."""

from __future__ import annotations

import pytest

from mailismus.journal.writer import Claim, NoSegment
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from tests.contracts.bench import ids
from tests.journal.test_opening import Capacity
from tests.log.story import Story


def full(story: Story) -> None:
    """The disk is full, and settlements have left one segment."""
    pool, disk = story.queue.parts.opened.pool, story.harness.disk
    while len(pool) > 1:
        disk.unlink(pool.take(Claim.ANY).path)  # in place of deferrals that fill it
    disk.sync_directory("/q/log")
    Capacity(disk)


def test_settlements_leave_a_segment_to_the_next_start() -> None:
    story = Story()
    spool_ids = [story.bench.put() for _ in range(3)]
    story.harness.settle_down()
    story.harness.round(story.queue)
    full(story)
    with pytest.raises(NoSegment):
        story.queue.parts.opened.pool.take(Claim.ANY)
    story.crash()
    assert len(story.queue.parts.opened.pool) == 0
    assert [queue_id.spool_id for queue_id in ids(story.bench.take_until(Area.INCOMING, 3))] == spool_ids


def test_start_after_start_needs_no_free_segment() -> None:
    """The first one uses the segment that was left; the next ones get theirs by cutting that one. Mail goes out between
    them."""
    story = Story()
    spool_ids = [story.bench.put() for _ in range(5)]
    story.harness.settle_down()
    story.harness.round(story.queue)
    full(story)
    for start in range(5):
        story.crash()
        assert len(story.queue.parts.opened.pool) == 0
        assert {message.spool_id for message, _ in story.bench.search()} == set(spool_ids[start:])
        (message,) = story.bench.take(limit=1)
        story.bench.remove([QueueId(message.spool_id, 1)])
    story.harness.disk.fault = None
    story.bench.queue = story.harness.restart(story.queue)
    assert story.bench.search() == []


def test_rounds_free_segments_on_a_full_disk_after_a_start() -> None:
    """Their positions need no file beside the one that is there."""
    story = Story()
    story.bench.put()
    story.complete_segment()
    story.harness.settle_down()
    story.harness.round(story.queue)
    full(story)
    for _ in range(2):
        story.crash()
    assert len(story.queue.parts.opened.pool) == 0
    story.bench.remove(story.bench.take_ids())
    story.harness.settle_down()
    story.harness.wait(story.queue.parts.learning.learn())
    story.harness.round(story.queue)
    assert len(story.queue.parts.opened.pool) > 0
    assert not story.harness.disk.exists("/q/positions.new")
