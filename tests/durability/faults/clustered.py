"""The clustered queue of a world, as the provider that it is: for what is asked of it alone."""

from __future__ import annotations

from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.opened import Opened
from tests.durability.faults.world import World
from tests.durability.subjects.clustered import ClusteredRunning


def _running(world: World) -> ClusteredRunning:
    running = world.harness.running
    assert isinstance(running, ClusteredRunning)
    return running


def queue_of(world: World) -> ClusteredQueue:
    """The running queue."""
    return _running(world).queue


def opened_of(world: World) -> Opened:
    """What its start found."""
    return _running(world).opened
