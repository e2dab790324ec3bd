"""Contents are fetched ahead: what an object store is asked for messages in the hand, and what is kept of them."""

from __future__ import annotations

import hashlib
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater

from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, Message, Settlement
from mailismus.queue.providers.distributed.content import ahead
from mailismus.queue.providers.distributed.content.ahead import AT_A_TIME, ContentAhead
from mailismus.queue.providers.distributed.content.kept import LARGEST, KeptContents
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace
from tests.contracts.bench import CONTENT, NO_REPLY
from tests.distributed.models.fates import Fate
from tests.distributed.models.objects import ObjectsModel
from tests.distributed.servers import Node, Servers

LARGE = (b"x" * 98 + b"\r\n") * (LARGEST // 100 + 1)


# The fetches by themselves.


class Fetches:
    """The fetches of a server with a hand that is a set, an object store, and shares of small messages."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = ObjectsModel(self.clock)
        self.store.objects = {}
        self.client = self.store.client()
        self.kept = KeptContents(1 << 20)
        self.hand: set[SpoolId] = set()
        self.may_ask = True
        self.ahead = ContentAhead(self.client, self.kept, self.hand.__contains__, lambda: self.may_ask, self.clock)

    def share(self, number: int, size: int = 1000) -> Share:
        """A message whose content is in the store."""
        content = bytes([number % 256]) * size
        assert self.store.objects is not None
        self.store.objects[f"mail/{number}"] = content
        message = Message(SpoolId(number), b"a@b.example", b"192.0.2.1", False, 1.0, size, 1, [])
        blob = Blob(f"mail/{number}", hashlib.sha256(content).digest())
        return Share(ShareName(SharePlace("incoming", 0.0, 0), UUID(int=number)), message, blob, 1.0, 1.0)

    def come(self, *shares: Share) -> None:
        for share in shares:
            self.ahead.want(share)
            self.hand.add(share.message.spool_id)

    def leave(self, *numbers: int) -> None:
        for number in numbers:
            self.hand.remove(SpoolId(number))
            self.ahead.left(SpoolId(number))

    def turn(self) -> None:
        """All that needs no time. What is in the hand is looked at, and what was asked for is answered."""
        for _ in range(5):
            self.clock.advance(0)

    @property
    def gets(self) -> int:
        return self.client.fates.calls.count("get")


@pytest.fixture
def fetches() -> Fetches:
    return Fetches()


def test_so_many_are_fetched_at_once_and_in_their_order(fetches: Fetches) -> None:
    count = AT_A_TIME + 3
    fetches.come(*map(fetches.share, range(count)))
    assert fetches.gets == AT_A_TIME
    waiting = [fetches.ahead.ask(SpoolId(number)) for number in range(count)]
    assert [isinstance(one, Deferred) for one in waiting] == [True] * AT_A_TIME + [False] * 3
    assert waiting[AT_A_TIME:] == [None] * 3, "who asks fetches it himself, and nobody else does"
    fetches.turn()
    assert fetches.gets == AT_A_TIME


def test_the_next_are_fetched_when_one_has_ended(fetches: Fetches) -> None:
    fetches.come(*map(fetches.share, range(40)))
    fetches.turn()
    assert fetches.gets == fetches.ahead.fetched == 40
    assert fetches.ahead.used_bytes == 40_000


def test_bytes_that_are_here_or_on_their_way_are_bounded(fetches: Fetches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "AHEAD_BYTES", 3000)
    fetches.come(*map(fetches.share, range(10)))
    assert (fetches.gets, fetches.ahead.used_bytes) == (3, 3000)
    fetches.turn()
    assert (fetches.gets, fetches.ahead.used_bytes) == (3, 3000)
    assert fetches.ahead.ask(SpoolId(1)) == b"\1" * 1000
    fetches.turn()
    assert (fetches.gets, fetches.ahead.used_bytes) == (4, 3000)
    assert fetches.ahead.ask(SpoolId(3)) == b"\3" * 1000, "the next of the line was fetched"


def test_who_asks_while_it_is_fetched_waits_for_it(fetches: Fetches) -> None:
    fetches.come(fetches.share(7))
    first, second = fetches.ahead.ask(SpoolId(7)), fetches.ahead.ask(SpoolId(7))
    assert isinstance(first, Deferred)
    assert isinstance(second, Deferred)
    got: list[object] = []
    first.addBoth(lambda _: got.append("given up"))
    first.cancel()
    second.addBoth(got.append)
    fetches.turn()
    assert got == ["given up", b"\7" * 1000]
    assert (fetches.gets, fetches.ahead.used_bytes) == (1, 0)
    assert fetches.kept.get(SpoolId(7)) == b"\7" * 1000, "it counts as one that was read"


def test_what_was_asked_for_counts_as_read(fetches: Fetches) -> None:
    fetches.come(fetches.share(7))
    fetches.turn()
    assert fetches.kept.get(SpoolId(7)) is None
    assert fetches.ahead.ask(SpoolId(7)) == b"\7" * 1000
    assert fetches.ahead.ask(SpoolId(7)) is None
    assert fetches.kept.get(SpoolId(7)) == b"\7" * 1000
    assert fetches.ahead.used_bytes == 0


def test_what_leaves_the_hand_is_forgotten(fetches: Fetches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "AHEAD_BYTES", 2000)
    fetches.come(*map(fetches.share, range(4)))
    fetches.turn()
    fetches.leave(0, 2)  # one that is here, and one that waits
    fetches.turn()
    assert fetches.gets == 3
    assert fetches.ahead.ask(SpoolId(0)) is None
    assert fetches.ahead.ask(SpoolId(2)) is None
    assert fetches.ahead.ask(SpoolId(3)) == b"\3" * 1000
    assert fetches.ahead.used_bytes == 1000


def test_what_leaves_the_hand_while_it_is_fetched_is_not_kept(fetches: Fetches, monkeypatch: pytest.MonkeyPatch) -> None:
    get = fetches.client.get
    monkeypatch.setattr(fetches.client, "get", lambda key: deferLater(fetches.clock, 1.0, get, key))
    fetches.come(fetches.share(7))
    fetches.turn()
    fetches.leave(7)
    fetches.turn()
    assert fetches.ahead.used_bytes == 1000, "it is on its way"
    fetches.clock.advance(1)
    fetches.turn()
    assert (fetches.gets, fetches.ahead.fetched) == (1, 1)
    assert fetches.ahead.used_bytes == 0
    assert fetches.ahead.ask(SpoolId(7)) is None


def test_what_never_came_into_the_hand_is_not_kept(fetches: Fetches) -> None:
    fetches.ahead.want(fetches.share(7))
    fetches.turn()
    assert fetches.ahead.used_bytes == 0
    fetches.may_ask = False
    fetches.ahead.want(fetches.share(8))
    fetches.turn()
    fetches.may_ask = True
    fetches.ahead.go_on()
    assert fetches.gets == 1, "it left the line"


def test_what_comes_back_in_the_same_turn_stays(fetches: Fetches) -> None:
    fetches.come(fetches.share(7))
    fetches.turn()
    fetches.leave(7)
    fetches.come(fetches.share(7))
    fetches.turn()
    assert fetches.ahead.ask(SpoolId(7)) == b"\7" * 1000
    assert fetches.gets == 1


def test_nothing_is_fetched_twice(fetches: Fetches) -> None:
    share = fetches.share(7)
    fetches.come(share, share)
    fetches.turn()
    fetches.come(share)
    fetches.ahead.ask(SpoolId(7))
    fetches.come(share)  # as another share of the message does
    fetches.turn()
    assert fetches.gets == 1


def test_while_the_store_is_left_alone_nothing_is_fetched(fetches: Fetches) -> None:
    fetches.may_ask = False
    fetches.come(*map(fetches.share, range(3)))
    fetches.turn()
    assert fetches.gets == 0
    fetches.may_ask = True
    fetches.ahead.go_on()
    assert fetches.gets == 3


def test_behind_a_close_nothing_is_fetched_or_kept(fetches: Fetches) -> None:
    fetches.come(*map(fetches.share, range(AT_A_TIME + 1)))
    fetches.ahead.close()
    fetches.come(fetches.share(99))
    fetches.turn()
    assert fetches.gets == AT_A_TIME
    assert fetches.ahead.used_bytes == 0


def test_a_large_one_is_left_to_who_asks(fetches: Fetches) -> None:
    fetches.come(fetches.share(1, LARGEST), fetches.share(2, LARGEST + 1))
    fetches.turn()
    assert fetches.gets == 1


@pytest.mark.parametrize("content", [None, b"", b"\7" * 999, b"\7" * 1001, b"\6" * 1000])
def test_what_is_not_what_it_should_be_is_not_kept(fetches: Fetches, content: bytes | None) -> None:
    share = fetches.share(7)
    assert fetches.store.objects is not None
    fetches.store.objects.clear()
    if content is not None:
        fetches.store.objects["mail/7"] = content
    fetches.come(share)
    asked = fetches.ahead.ask(SpoolId(7))
    fetches.turn()
    assert isinstance(asked, Deferred)
    assert asked.result is None
    assert fetches.kept.get(SpoolId(7)) is None
    assert fetches.ahead.used_bytes == fetches.ahead.fetched == 0


# Servers.


def asked(node: Node) -> list[str]:
    """What the object store was asked to do with contents."""
    return [call for call in node.clients.objects.fates.calls if call in ("put", "get", "remove")]


def gets(node: Node) -> int:
    return asked(node).count("get")


def hand_over(servers: Servers, count: int = 1, content: bytes = CONTENT) -> Node:
    """A server that has what came in at another one, which has ended."""
    one = servers.start("one")
    for _ in range(count):
        one.put(content=content)
    two = servers.start("two")
    servers.wait(one.queue.close())
    servers.advance(5)
    return two


def at_hand(servers: Servers, content: bytes | Deferred[IContent]) -> bytes | None:
    return content if isinstance(content, bytes) else servers.wait(content).at_hand


def test_where_it_came_in_nothing_is_fetched(servers: Servers) -> None:
    one = servers.start("one")
    spool_id = one.put()
    assert one.queue.read(spool_id) == CONTENT
    assert one.remove(one.take_ids()) == [spool_id]
    servers.advance(1)
    assert asked(one) == ["put", "remove"]


def test_elsewhere_it_is_fetched_once_and_ahead(servers: Servers) -> None:
    two = hand_over(servers)
    assert gets(two) == 1
    (queue_id,) = two.take_ids()
    assert two.queue.read(queue_id.spool_id) == CONTENT, "at hand, without waiting"
    two.remove([queue_id])
    servers.advance(1)
    assert asked(two) == ["get", "remove"]


def test_who_reads_meanwhile_waits_for_the_same_fetch(servers: Servers) -> None:
    one = servers.start("one")
    spool_id = one.put()
    two = servers.start("two")
    servers.wait(one.queue.close())
    for _ in range(1000):
        if gets(two):
            break
        servers.clock.advance(0)
        servers.clock.advance(0.0001)
    reading = [two.queue.read(spool_id) for _ in range(2)]
    assert [at_hand(servers, one) for one in reading] == [CONTENT] * 2
    assert gets(two) == 1


def test_a_large_one_is_streamed_when_it_is_read(servers: Servers) -> None:
    two = hand_over(servers, content=LARGE)
    assert gets(two) == 0
    (queue_id,) = two.take_ids()
    assert two.read(queue_id.spool_id) == LARGE
    assert gets(two) == 1


def test_each_is_fetched_once_though_not_all_have_room(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "AHEAD_BYTES", 3 * len(CONTENT))
    two = hand_over(servers, 10)
    assert gets(two) == 3
    taken = two.take_ids()
    assert len(taken) == 10
    for queue_id in taken:
        assert two.read(queue_id.spool_id) == CONTENT
        servers.advance(0.1)
    assert gets(two) == 10


def used(node: Node) -> int:
    return node.shared.parts.ahead.used_bytes


def test_nothing_is_kept_of_what_has_ended_or_moved(servers: Servers) -> None:
    two = hand_over(servers, 4)
    assert used(two) == 4 * len(CONTENT)
    taken = two.take_ids()
    two.remove(taken[:1])
    two.defer(taken[1:2], two.now() + 3600)
    two.queue.give_back(taken[2:3], two.now() + 3600)
    servers.advance(10)
    assert len(two.shared.parts.hand.index.messages) == 1
    assert used(two) == len(CONTENT)


def test_what_another_server_may_have_is_forgotten(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    for _ in range(8):
        one.put()
    servers.advance(1)
    here = len(two.shared.parts.hand.index.messages)
    assert used(two) == here * len(CONTENT) > len(CONTENT)
    two.take_ids(limit=1)
    two.clients.broker.lose()
    servers.advance(0.05)
    assert len(two.shared.parts.hand.index.messages) == 1, "what is out"
    assert used(two) == len(CONTENT)


def test_a_bounce_is_reported_from_what_was_fetched_for_its_attempt(servers: Servers) -> None:
    two = hand_over(servers)
    (queue_id,) = two.take_ids()
    two.commit((), [Settlement(queue_id, Area.BOUNCES, two.now(), 1, NO_REPLY)])
    assert two.take_ids(Area.BOUNCES) == [queue_id]
    assert two.queue.read(queue_id.spool_id) == CONTENT
    assert gets(two) == 1


def test_what_is_held_or_deleted_is_not_fetched(servers: Servers) -> None:
    two = hand_over(servers, 2)
    held, deleted = two.take_ids()
    later = two.now() + 60
    two.commit((), [Settlement(held, Area.HELD, later), Settlement(deleted, Area.DELETED, later)])
    servers.advance(62)
    assert two.take_ids(Area.HELD) == [held]
    assert two.take_ids(Area.DELETED) == [deleted]
    assert gets(two) == 2, "for the first attempts"


@pytest.mark.parametrize("fate", [Fate.NOT_DONE, Fate.NEVER])
def test_a_fetch_that_fails_is_made_again_by_who_reads(servers: Servers, fate: Fate) -> None:
    one = servers.start("one")
    spool_id = one.put()
    two = servers.start("two")
    two.clients.objects.fates.plan(fate, call="get")
    servers.wait(one.queue.close())
    servers.advance(5)
    assert gets(two) == 1
    assert two.read(spool_id) == CONTENT
    assert gets(two) == 2


def test_an_open_circuit_stops_it_and_a_closed_one_lets_it_go_on(servers: Servers) -> None:
    two = servers.start("two")
    one = servers.start("one")
    servers.wait(two.queue.close())
    put = [one.put() for _ in range(3)]
    two = servers.start("two")
    two.clients.objects.fates.is_away = True
    for _ in range(3):
        servers.wait(two.shared.parts.stores.objects.is_there().addErrback(lambda _: None))
    assert two.shared.parts.circuits.objects.is_cut
    servers.wait(one.queue.close())
    servers.advance(10)
    assert len(two.shared.parts.hand.index.messages) == len(put)
    assert gets(two) == 0
    two.clients.objects.fates.is_away = False
    servers.advance(5)
    assert gets(two) == len(put)


def test_a_damaged_one_is_told_to_who_reads(servers: Servers) -> None:
    one = servers.start("one")
    spool_id = one.put()
    objects = servers.world.objects.objects
    assert objects is not None
    objects.update({key: data[::-1] for key, data in objects.items()})
    two = servers.start("two")
    servers.wait(one.queue.close())
    servers.advance(5)
    with pytest.raises(Corrupt):
        two.read(spool_id)


def test_a_retry_reads_what_was_read_before(servers: Servers) -> None:
    two = hand_over(servers)
    (queue_id,) = two.take_ids()
    two.read(queue_id.spool_id)
    two.defer([queue_id], two.now() + 60)
    servers.advance(90)
    assert two.take_ids(Area.DEFERRED) == [queue_id]
    assert two.read(queue_id.spool_id) == CONTENT
    assert gets(two) == 1
