"""What servers share beside the mail: one agreement for all, news for those that run, records for those that start."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from mailismus.errors import Unavailable
from mailismus.queue.providers.distributed.format.tables import NEWS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.limits.keeping import LimitKeeping
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.sharing import ServerSharing
from tests.distributed.models.fates import Fate
from tests.distributed.world import Server, World
from tests.fakes.hand import NoHand


class SharingWorld(World):
    """Two servers."""

    def __init__(self) -> None:
        super().__init__()
        self.servers = self.server(), self.server()
        self.one, self.two = (self._share(server) for server in self.servers)
        self.heard: list[bytes] = []

    def _share(self, server: Server) -> ServerSharing:
        news, lease = ServerNews(server.broker, self.clock), ServerLease(server.rows, "name", self.clock.seconds)
        return ServerSharing(server.rows, news, LimitKeeping(server.rows, lease, news, self.clock), NoHand())

    def pass_s(self, seconds: float) -> None:
        clock: Clock = self.clock
        for _ in range(round(seconds * 10)):
            clock.advance(0.1)


@pytest.fixture
def world() -> SharingWorld:
    return SharingWorld()


def test_the_first_proposal_is_agreed_on_for_ever(world: SharingWorld) -> None:
    assert world.wait(world.one.agreed("salt")) is None
    assert world.wait(world.one.agree("salt", b"1")) == b"1"
    assert world.wait(world.two.agree("salt", b"2")) == b"1"
    assert world.wait(world.two.agreed("salt")) == b"1"
    assert world.wait(world.two.agree("other", b"2")) == b"2"


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.NEVER, Fate.LATE])
def test_an_answer_that_does_not_come_leaves_one_agreement(world: SharingWorld, fate: Fate) -> None:
    world.servers[0].rows.fates.plan(fate, call="add")
    value = world.wait(world.one.agree("salt", b"1"))
    world.servers[0].rows.fates.do_late()
    assert value == world.wait(world.two.agree("salt", b"2")) == b"1"


def test_proposals_at_the_same_time_come_to_one(world: SharingWorld) -> None:
    one, two = world.one.agree("salt", b"1"), world.two.agree("salt", b"2")
    assert world.wait(one) == world.wait(two)


@pytest.mark.parametrize("fate", [Fate.DONE, Fate.UNANSWERED, Fate.NEVER, Fate.LATE])
def test_no_two_servers_get_one_number(world: SharingWorld, fate: Fate) -> None:
    world.servers[0].rows.fates.plan(fate, call="add")
    first = world.wait(world.one.next_number("acts", 0))
    world.servers[0].rows.fates.do_late()
    world.servers[1].rows.fates.plan(fate, call="change")
    second = world.wait(world.two.next_number("acts", 0))
    world.servers[1].rows.fates.do_late()
    at_once = [world.one.next_number("acts", 0), world.two.next_number("acts", 0)]
    numbers = [first, second, *map(world.wait, at_once)]
    assert len(set(numbers)) == 4
    assert world.wait(world.two.next_number("other", 7)) == 8
    assert world.wait(world.one.next_number("acts", 70)) == 71
    assert world.wait(world.two.next_number("acts", 3)) == 72


def test_a_database_that_is_away_agrees_on_nothing(world: SharingWorld) -> None:
    world.servers[0].rows.fates.is_away = True
    with pytest.raises(Unavailable):
        world.wait(world.one.agree("salt", b"1"))
    with pytest.raises(Unavailable):
        world.wait(world.one.agreed("salt"))
    with pytest.raises(Unavailable):
        world.wait(world.one.kept())
    with pytest.raises(Unavailable):
        world.wait(world.one.next_number("acts", 0))


def test_news_are_heard_by_all_that_listen(world: SharingWorld) -> None:
    world.one.listen(world.heard.append)
    world.two.listen(world.heard.append)
    world.pass_s(1)
    world.one.tell(b"a host died")
    world.pass_s(1)
    assert world.heard == [b"a host died"] * 2


def test_a_listener_that_was_lost_listens_anew(world: SharingWorld) -> None:
    world.two.listen(world.heard.append)
    world.pass_s(1)
    world.servers[1].broker.fates.plan(Fate.NOT_DONE, Fate.NOT_DONE, call="listen")
    world.servers[1].broker.lose()
    world.pass_s(5)
    world.one.tell(b"a host died")
    world.pass_s(1)
    assert world.heard == [b"a host died"]


def test_a_broker_that_is_away_is_no_trouble(world: SharingWorld) -> None:
    world.servers[0].broker.fates.is_away = True
    world.one.listen(world.heard.append)
    world.one.tell(b"a host died")
    world.pass_s(60)
    world.servers[0].broker.fates.is_away = False
    world.pass_s(60)
    world.two.tell(b"another")
    world.pass_s(1)
    assert world.heard == [b"another"]


def test_of_two_records_the_later_one_is_kept_as_long_as_it_should_be(world: SharingWorld) -> None:
    now = world.clock.seconds()
    world.one.keep({"192.0.2.1 25": (b"dead", now - 5), "192.0.2.2 25": (b"dead", now)}, 100)
    world.two.keep({"192.0.2.1 25": (b"alive", now - 3)}, 100)
    world.pass_s(1)
    world.one.keep({"192.0.2.1 25": (b"dead before", now - 9)}, 100)
    world.pass_s(1)
    assert world.wait(world.two.kept()) == {"192.0.2.1 25": b"alive", "192.0.2.2 25": b"dead"}
    world.pass_s(120)
    assert world.wait(world.two.kept()) == {}


def test_a_server_that_ended_tells_and_hears_nothing_more(world: SharingWorld) -> None:
    world.one.listen(world.heard.append)
    world.pass_s(1)
    world.wait(world.one.close())
    world.one.tell(b"a host died")
    world.one.keep({"192.0.2.1 25": (b"dead", world.clock.seconds())}, 100)
    world.pass_s(1)
    assert world.wait(world.two.kept()) == {}
    world.servers[0].broker.lose()
    world.pass_s(5)
    assert not world.broker.listeners[NEWS]
