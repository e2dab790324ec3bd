"""Which segments a checkpoint frees, and when."""

from __future__ import annotations

import pytest

from mailismus.journal.writer import JournalWriter
from tests.durability.crash.clustered_operations import queue_of, reuse_segment
from tests.durability.crash.world import World
from tests.durability.subjects.clustered import ClusteredRunning
from tests.durability.subjects.interface import LARGE


@pytest.fixture
def world() -> World:
    """With two segments in use, all of whose messages live."""
    world = World()
    fill(world, 2)
    return world


def writer_of(world: World) -> JournalWriter:
    running = world.server.running
    assert isinstance(running, ClusteredRunning)
    return running.opened.writer


def fill(world: World, segments: int) -> None:
    """Store until so many segments are in use."""
    while len(writer_of(world).segments) < segments:
        world.store(1, LARGE - 200)


def seal(world: World) -> None:
    """A checkpoint whose record has gone into the journal and is not durable yet."""
    checkpoints = queue_of(world).checkpoints
    checkpoints.run()
    world.server.wait_until(lambda: checkpoints.pending is None or checkpoints.pending.is_sealed)
    assert checkpoints.pending is not None


def test_no_segment_is_free_before_the_record_is_durable(world: World) -> None:
    used = set(writer_of(world).segments)
    seal(world)
    assert set(writer_of(world).segments) >= used
    world.settle_down()
    assert queue_of(world).checkpoints.counts.made == 1
    assert min(used) not in writer_of(world).segments


def test_a_segment_with_a_batch_behind_the_horizon_is_not_free(world: World) -> None:
    writer, checkpoints = writer_of(world), queue_of(world).checkpoints
    first, second = sorted(writer.segments)
    checkpoints.run()
    for _ in range(6):  # into the second segment, and beyond
        world.commit([world.send(1, LARGE - 200)])
    world.server.wait_until(lambda: checkpoints.pending is None)
    assert checkpoints.counts.made == 1
    assert first not in writer.segments
    assert second in writer.segments
    assert writer.current is not writer.segments[second]


def test_what_lives_is_there_after_segments_were_used_again(world: World) -> None:
    before = world.live().keys()
    reuse_segment(world)
    assert world.live().keys() >= before
