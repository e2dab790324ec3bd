"""What a header denies stays denied when that header is gone."""

from __future__ import annotations

import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.control.compaction import Compaction
from tests.log.story import Story


async def no_turn(compaction: Compaction) -> None:
    """In place of one."""


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """With a message that keeps the first segment for a month: nothing is compacted."""
    monkeypatch.setattr(Compaction, "turn", no_turn)
    story = Story()
    story.bench.put([b"kept@d.example"])
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 30 * 86400)
    return story


def turn_over(story: Story, kept: int = 1) -> None:
    """Mail comes and goes until the segments behind the first ones, which deny something, are others."""
    for _ in range(12):
        story.complete_segment()
        story.rounds()
    headers = [segment.header for segment in story.queue.parts.segments.in_use().values()]
    numbers = {header.number for header in headers if header is not None}
    assert numbers >= set(range(1, kept + 1))
    assert not numbers & {kept + 1, kept + 2}


def is_over(story: Story, spool_id: SpoolId, kept: int = 1) -> None:
    story.bench.wait(story.queue.parts.learning.learn())
    taken = story.bench.take_ids()
    assert QueueId(spool_id, 1) in taken
    for _ in range(3):
        story.complete_segment()
    story.bench.remove([QueueId(spool_id, 1)])
    others = [queue_id for queue_id in taken if queue_id.spool_id != spool_id]
    story.bench.defer(others, story.bench.now() + 30 * 86400)
    turn_over(story, kept)
    story.crash()
    assert QueueId(spool_id, 1) not in story.bench.take_ids()


def test_the_former_copy_of_the_last_batch_does_not_come_back(story: Story) -> None:
    spool_id = story.bench.put()
    story.crash()
    is_over(story, spool_id)


def stop_a_start(story: Story, act: str, name: str) -> None:
    """After a power cut, behind its own barrier."""
    disk = story.harness.disk
    disk.power_cut()
    story.harness.clock.calls.clear()
    disk.fault = lambda one, path: OSError(5, "stopped") if one == act and path.endswith(name) else None
    with pytest.raises(StartError, match="stopped"):
        story.harness.open()
    disk.fault = None
    story.crash()


@pytest.mark.parametrize("act", ["write", "sync"])
def test_no_copy_comes_back_when_the_start_was_stopped_too(story: Story, act: str) -> None:
    """At the first mark, or at the sync of all of them."""
    spool_id = story.bench.put()
    stop_a_start(story, act, "/00000001.mqj")
    is_over(story, spool_id)


def test_nor_does_one_below_the_working_suffix(story: Story) -> None:
    while story.queue.parts.opened.writer.current is story.queue.parts.segments.in_use()[1]:
        story.bench.put([b"waits@d.example"], b"x" * 100_000)
    story.rounds()
    spool_id = story.bench.put()
    stop_a_start(story, "write", story.queue.parts.segments.in_use()[2].path)
    is_over(story, spool_id, kept=2)


def test_what_a_barrier_failed_for_does_not_come_back(story: Story) -> None:
    """It was refused; its segment holds other mail, and is not removed yet when the server is killed."""
    disk = story.harness.disk
    failed: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if act == "sync" and path.endswith(".mqj") and not failed:
            failed.append(path)
            return OSError(5, "bad disk")
        return None

    disk.fault = fault
    refused: list[object] = []
    story.queue.commit([story.bench.submission()], []).addBoth(refused.append)
    while not refused or story.queue.commits.trouble is not None:
        story.harness.advance(0.001)
    story.bench.put()
    story.harness.clock.calls.clear()
    disk.kill()
    story.bench.queue = story.harness.open()
    turn_over(story)
    story.crash()
    assert story.bench.take_ids() == []


def test_an_envelope_in_the_batch_that_denies_what_failed_ends_with_its_last_entry(story: Story) -> None:
    """Nothing lives in the failed segment: the new one begins with a record of its own, before the kept settlement."""
    bench = story.bench
    bench.put()
    (queue_id,) = bench.take_ids()
    story.complete_segment()
    failed: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if act == "sync" and path.endswith(".mqj") and not failed:
            failed.append(path)
            return OSError(5, "bad disk")
        return None

    story.harness.disk.fault = fault
    bench.defer([queue_id], bench.now())
    assert failed
    assert bench.take_ids(Area.DEFERRED) == [queue_id]
    bench.remove([queue_id])
    story.crash()
    bench.wait(story.queue.parts.learning.learn())
    assert bench.take_ids(Area.DEFERRED) == []
