"""Acts of two servers of one queue: each has a number of its own, so that none is taken for another one's."""

from __future__ import annotations

import attrs
import pytest
from twisted.internet.defer import Deferred, fail, succeed

from mailismus.errors import StartError, Unavailable
from mailismus.queue.acts.act import Act, ActKind, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts
from mailismus.queue.interface import Area
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker
from tests.queue.acts.world import STATE, ActWorld


@attrs.define
class Numbers:
    """What the servers have got so far."""

    last: int = 0
    is_away: bool = False

    def next_number(self, name: str, above: int) -> Deferred[int]:
        if self.is_away:
            return fail(Unavailable("cassandra: no answer"))
        self.last = max(self.last, above) + 1
        return succeed(self.last)


class SharedWorld(ActWorld):
    """A queue, and the acts of two servers, each with a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Numbers()
        self.servers = [self._server(), self._server()]

    def _server(self) -> Acts:
        disk = MemoryDisk()
        for path in ("/queue", STATE):
            disk.make_directory(path)
            disk.sync_directory(path.rpartition("/")[0] or "/")
        worker = MemoryWorker(is_prompt=True)
        acts = Acts(self.manager.acting, ActFile(disk, STATE), worker, self.clock, self.keep, None, self.numbers)
        acts.load()
        acts.start()
        return acts

    def order_at(self, place: int, kind: ActKind, *words: str) -> Act:
        return self.finish(self.do(self.servers[place].begin(Order(kind, 7, words, "because")))).act

    def undo_at(self, place: int, number: int) -> Act:
        return self.finish(self.do(self.servers[place].undo(number, 8))).act


@pytest.fixture
def world() -> SharedWorld:
    return SharedWorld()


def test_what_one_server_holds_another_one_releases_and_deletes(world: SharedWorld) -> None:
    world.put(b"a@one.example", b"b@two.example")
    assert world.order_at(0, ActKind.HOLD).entries == 2
    assert world.order_at(1, ActKind.RELEASE, "domain=one.example").entries == 1
    assert world.order_at(1, ActKind.DELETE, "domain=two.example").entries == 1
    assert world.areas() == {Area.INCOMING: 1, Area.DELETED: 1}


def test_an_undoing_leaves_acts_of_other_servers_alone(world: SharedWorld) -> None:
    world.put(b"a@one.example")
    world.put(b"b@two.example")
    one = world.order_at(0, ActKind.HOLD, "domain=one.example")
    two = world.order_at(1, ActKind.HOLD, "domain=two.example")
    assert world.undo_at(1, two.number).restored == 1
    assert [entry.recipient for entry in world.entries(Area.HELD)] == [b"a@one.example"]
    with pytest.raises(StartError, match="on record at the server where it was given alone"):
        world.do(world.servers[1].undo(one.number, 8))
    assert world.undo_at(0, one.number).restored == 1
    assert world.areas() == {Area.INCOMING: 2}


def test_without_the_database_no_act_begins(world: SharedWorld) -> None:
    world.put()
    world.numbers.is_away = True
    with pytest.raises(StartError, match="was not begun: cassandra: no answer"):
        world.order_at(0, ActKind.HOLD)
    assert (world.areas(), world.servers[0].all()) == ({Area.INCOMING: 1}, [])
    world.numbers.is_away = False
    assert world.order_at(0, ActKind.HOLD).entries == 1
