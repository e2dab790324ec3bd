"""Those who wait for something to take: told once, by area."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.control.waiters import ReadyWaiters
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.index.state import QueueState

NOW = 1_700_000_000.0


class World:
    """Waiters over empty indexes."""

    def __init__(self) -> None:
        self.state = QueueState(ClusterIndex(), 0, lambda: NOW)
        self.waiters = ReadyWaiters(self.state)
        self.told: list[Area] = []

    def wait(self, area: Area) -> None:
        self.waiters.ready(area).addCallback(lambda _: self.told.append(area))

    def put(self, area: Area, due_at: float) -> None:
        message = Message(SpoolId(1), b"a@b.example", b"192.0.2.1", False, NOW, 10, 1, [])
        journaled = JournaledMessage(message, [Entry(1, b"c@d.example", area, due_at)])
        journaled.arrive(1, 0)
        self.state.memtable.add(journaled, NOW)


def test_something_that_may_be_taken_is_told_at_once() -> None:
    world = World()
    world.put(Area.INCOMING, NOW)
    world.wait(Area.INCOMING)
    world.wait(Area.DEFERRED)
    assert world.told == [Area.INCOMING]


def test_who_waits_is_told_once_of_their_own_area() -> None:
    world = World()
    world.wait(Area.INCOMING)
    world.wait(Area.DEFERRED)
    world.put(Area.INCOMING, NOW)
    world.waiters.fire_ready()
    world.waiters.fire_ready()
    assert world.told == [Area.INCOMING]
    assert world.waiters.count(Area.DEFERRED) == 1


def test_an_area_that_entries_went_back_to_is_told_though_nothing_is_due() -> None:
    world = World()
    world.wait(Area.DEFERRED)
    world.waiters.fire_ready({Area.DEFERRED})
    assert world.told == [Area.DEFERRED]


def test_an_area_that_entries_went_back_to_is_told_once() -> None:
    world = World()
    world.wait(Area.DEFERRED)
    world.waiters.fire_ready({Area.DEFERRED})
    world.wait(Area.DEFERRED)
    world.waiters.fire_ready()
    assert world.told == [Area.DEFERRED]
