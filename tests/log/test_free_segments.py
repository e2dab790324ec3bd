"""A segment that is free, or was being begun anew at a crash, is no damage, and nothing of its earlier use comes back."""

from __future__ import annotations

import pytest

from mailismus.journal.batch import BLOCK
from mailismus.queue.providers.log.control.compaction import Compaction
from mailismus.queue.providers.log.format.positions import NAME
from tests.log.story import Story
from tests.log.test_denied import no_turn

USED, FREED = "/q/log/00000001.mqj", "/q/log/ready-00000001.mqj"
RENAMED = "/q/log/00000099.mqj"


@pytest.fixture
def story() -> Story:
    """The first segment is complete, and has been freed; nothing lives."""
    story = Story()
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.complete_segment()
    story.complete_segment()
    story.rounds()
    assert 1 not in story.queue.parts.segments.in_use()
    return story


def begin_anew(story: Story, *blocks: int) -> None:
    """Rename the first segment as the writer does, and leave these blocks of it as zeros."""
    disk = story.harness.disk
    disk.rename(FREED if disk.exists(FREED) else USED, RENAMED)
    disk.sync_directory("/q/log")
    for block in blocks:
        disk.damage(RENAMED, block * BLOCK, bytes(BLOCK))


def set_aside(story: Story) -> list[str]:
    return story.harness.disk.list_directory("/q/corrupt")


@pytest.mark.parametrize("blocks", [(0,), (1,), (0, 1), (1, 2, 3)], ids=str)
def test_what_is_left_of_its_earlier_use_is_over(story: Story, blocks: tuple[int, ...]) -> None:
    begin_anew(story, *blocks)
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    assert set_aside(story) == []
    assert story.bench.take_ids() == []
    assert story.queue.parts.opened.writer.segments.keys().isdisjoint((1, 99))


def test_the_name_of_a_free_segment_is_durable_before_a_start_uses_it(story: Story) -> None:
    """Its maker may have been killed before its sync: a power cut would take the segment, and marks elsewhere stay."""
    disk = story.harness.disk
    del disk.acts[:]
    story.crash()
    acts = [act for act, path in disk.acts if path == "/q/log" or path.startswith("/q/log/")]
    assert acts.index("sync directory") < acts.index("rename")


def test_a_free_segment_has_a_name_that_says_so_and_counts_for_nothing(story: Story) -> None:
    """A crash may undo the next rename and write the first batch of the next use over those of the earlier one."""
    disk = story.harness.disk
    assert disk.exists(FREED)
    assert not disk.exists(USED)
    disk.damage(FREED, BLOCK, b"\xa5" * 2 * BLOCK)
    story.crash()
    story.harness.wait(story.queue.parts.learning.learn())
    assert set_aside(story) == []
    assert story.bench.take_ids() == []


@pytest.mark.parametrize("block", [0, 1], ids=["header", "first batch"])
def test_one_with_mail_in_it_counts_whatever_its_name(block: int) -> None:
    story = Story()
    for _ in range(2):
        story.bench.put(content=b"x" * 10_000)
    kept = story.bench.take_ids()[1:]
    story.complete_segment()
    story.rounds()
    begin_anew(story, block)
    story.crash()
    assert set(kept) <= set(story.bench.take_ids(limit=100))


def test_one_that_is_whole_counts_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone has renamed it: a content is in it, though its envelope is garbage."""
    monkeypatch.setattr(Compaction, "turn", no_turn)
    story = Story()
    spool_id = story.bench.put(content=b"x" * 10_000)
    (queue_id,) = story.bench.take_ids()
    story.complete_segment()
    story.bench.defer([queue_id], story.bench.now() + 3600)
    for _ in range(2):
        story.complete_segment()
        story.rounds()
    assert 1 in story.queue.parts.segments.in_use()
    begin_anew(story)
    story.crash()
    assert b"x" * 10_000 in story.bench.read(spool_id)


def test_without_positions_segments_that_were_freed_are_no_gap() -> None:
    story = Story()
    story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 36_000)
    for _ in range(3):
        story.complete_segment()
    story.rounds()
    numbers = sorted(story.queue.parts.segments.in_use())
    assert numbers[-1] - numbers[0] >= len(numbers)
    disk = story.harness.disk
    disk.unlink(f"/q/{NAME}")
    disk.sync_directory("/q")
    story.crash()
    assert [name.partition("-")[0] for name in disk.list_directory("/q/corrupt")] == ["positions"]
