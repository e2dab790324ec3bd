"""What waits because another server may have it waits no longer where all others say that they have it not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast
from uuid import UUID

import attrs
import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace
from mailismus.queue.providers.distributed.format.tables import NEWS
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand import enquiries
from mailismus.queue.providers.distributed.hand.enquiries import DENIED_S, Enquiries
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import Basis, HeldShare
from mailismus.queue.providers.distributed.hand.waiting import WAIT_S, WaitingTrigger
from mailismus.queue.providers.distributed.news import ServerNews
from tests.distributed.models.fates import Fate
from tests.distributed.servers import NEW, Node, Servers, new_shares, taken_by_one

SOON_S = 3.0


@attrs.define(eq=False)
class Delivery:
    """A trigger that comes by no broker."""

    is_redelivered: bool = False
    is_lost: bool = False
    is_acked: bool = False

    def ack(self) -> None:
        self.is_acked = True


def untold(servers: Servers, maker: Node) -> Share:
    """New mail of which the broker told nobody, and its maker does not know that: its share."""
    maker.clients.broker.fates.plan(Fate.NEVER, call="publish")
    maker.put()
    (share,) = new_shares(servers)
    return share


def tell_again(servers: Servers, share: Share) -> None:
    """The same, once more: another server may have been told."""
    trigger = attrs.evolve(trigger_of(share.name), is_suspect=True)
    servers.world.broker.add(NEW, write_trigger(trigger))


def taken(*nodes: Node) -> list[QueueId]:
    """What they have taken."""
    return [queue_id for node in nodes for queue_id in node.take_ids()]


@pytest.fixture
def one(servers: Servers) -> Node:
    return servers.start("one")


@pytest.fixture
def other(servers: Servers) -> Node:
    return servers.start("other")


def test_what_nobody_has_is_taken_at_once(servers: Servers, one: Node, other: Node) -> None:
    share = untold(servers, one)
    tell_again(servers, share)
    servers.advance(SOON_S)
    assert len(taken(one, other)) == 1


def test_a_server_that_has_it_is_waited_for(servers: Servers, one: Node, other: Node) -> None:
    one.put()
    (queue_id,), owner, heir = taken_by_one(one, other)
    owner.clients.broker.lose()
    servers.advance(WAIT_S - 2)
    assert taken(one, other) == []
    servers.advance(SOON_S)
    assert taken(one, other) == [queue_id]
    assert not (owner.may_try(queue_id) and heir.may_try(queue_id))


def test_a_server_that_stands_still_is_waited_for(servers: Servers, one: Node, other: Node) -> None:
    share = untold(servers, one)
    other.host.freeze()
    tell_again(servers, share)
    tell_again(servers, share)  # to the servers in turn
    servers.advance(20)
    other.clients.broker.lose()
    servers.advance(WAIT_S - 22)
    assert taken(one) == []
    servers.advance(SOON_S)
    assert len(taken(one)) == 1


def test_one_of_three_that_stands_still_is_waited_for(servers: Servers, one: Node, other: Node) -> None:
    third = servers.start("third")
    share = untold(servers, one)
    third.host.freeze()
    for _ in range(3):
        tell_again(servers, share)
    servers.advance(WAIT_S - 2)
    assert taken(one, other) == []
    servers.advance(SOON_S)
    assert len(taken(one, other)) == 1


def test_a_no_stands_and_who_has_started_since_is_not_waited_for() -> None:
    waiting = WaitingTrigger(cast(HeldShare, None), None, b"", Delivery(), 0.0, is_new=False, waits=True)
    waiting.learn(frozenset({1, 2}))
    waiting.deny(1)
    waiting.learn(frozenset({1, 2, 3}))  # 3 has started since
    assert not waiting.is_free(1.0)
    waiting.deny(2)
    assert waiting.is_free(1.0)


def test_who_has_said_no_trusts_no_first_trigger(servers: Servers, one: Node, other: Node) -> None:
    """It was on its way as it said so."""
    share = untold(servers, one)
    tell_again(servers, share)
    servers.advance(SOON_S)
    found, owner, late = taken_by_one(one, other)
    assert owner.may_try(found[0])
    first = Delivery()
    late.shared.parts.loading.add(write_trigger(trigger_of(share.name)), first)
    servers.advance(SOON_S)
    assert late.take_ids() == []
    assert not late.may_try(found[0])
    assert first.is_acked  # a due row brings it back


def say(servers: Servers, news: bytes) -> None:
    """Another server's words."""
    servers.wait(servers.world.broker.client().tell(NEWS, news))
    servers.advance(0.1)


def test_who_has_said_no_claims(servers: Servers, one: Node, other: Node) -> None:
    share = untold(servers, one)
    say(servers, b"who 99 %b" % share.name.enqueue_id.hex.encode())
    other.shared.parts.loading.add(write_trigger(trigger_of(share.name)), Delivery())
    servers.advance(1)
    assert len(other.take_ids()) == 1
    assert other.shared.parts.hand.shares[share.name.enqueue_id].basis is Basis.CLAIM


@pytest.mark.parametrize(
    "news",
    [
        b"",
        b"who",
        b"who 5",
        b"who x 1",
        b"who -1 0",
        b"not 5 \xff",
        b"not \xb2 1",
        b"who 5 " + b"z" * 32,
        b"part 5 x",
        b"who " + b"9" * 5000 + b" 0",
    ],
)
def test_words_of_no_server_are_passed_over(servers: Servers, one: Node, news: bytes) -> None:
    say(servers, news)
    one.put()
    servers.advance(1)
    assert len(one.take_ids()) == 1


# one server's part, by itself


@attrs.frozen
class Heard:
    """`ServerNews` of nobody else: what was told."""

    told: list[bytes] = attrs.field(factory=list)

    def tell(self, news: bytes) -> None:
        self.told.append(news)

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        self.hear.append(on_news)

    hear: list[Callable[[bytes], None]] = attrs.field(factory=list)


@attrs.define
class Bed:
    """The enquiries of a server of epoch 3."""

    hand: Hand = attrs.field(factory=lambda: Hand(*[lambda *_: None] * 4))
    heard: Heard = attrs.field(factory=Heard)
    now: float = 0.0
    denials: list[tuple[int, Collection[UUID]]] = attrs.field(factory=list)

    def start(self) -> Enquiries:
        made = Enquiries(self.hand, cast(ServerNews, self.heard), lambda: 3, lambda: self.now)
        made.start(lambda epoch, names: self.denials.append((epoch, names)))
        return made

    def ask(self, *names: UUID, epoch: int = 5) -> list[bytes]:
        """What it tells, asked for these."""
        self.heard.told.clear()
        self.heard.hear[0](b"who %d " % epoch + b" ".join(name.hex.encode() for name in names))
        return self.heard.told


A, B = UUID(int=10), UUID(int=11)


def test_what_is_here_or_under_way_is_not_denied() -> None:
    bed = Bed()
    one = bed.start()
    bed.hand.share(ShareName(SharePlace("incoming", 0.0, 0), A))
    assert bed.ask(A, B) == [b"not 3 " + B.hex.encode()]
    assert [one.has_denied(name) for name in (A, B)] == [False, True]
    bed.hand.hidden.add(B)
    assert bed.ask(B) == []


def test_what_was_denied_is_forgotten_in_time() -> None:
    bed = Bed()
    one = bed.start()
    bed.ask(A)
    bed.now = DENIED_S - 1
    assert one.has_denied(A)
    bed.ask(A)
    bed.now = 2 * DENIED_S - 2
    assert one.has_denied(A)
    bed.now = 2 * DENIED_S
    assert not one.has_denied(A)


def test_who_is_asked_too_much_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enquiries, "MOST_DENIED", 1)
    bed = Bed()
    one = bed.start()
    assert bed.ask(A, B) == [b"not 3 " + A.hex.encode()]
    assert bed.ask(B) == []
    assert not one.has_denied(B)
    bed.now = DENIED_S + 1
    assert bed.ask(B) == [b"not 3 " + B.hex.encode()]


def test_words_of_its_own_are_passed_over_and_those_of_others_told() -> None:
    bed = Bed()
    bed.start()
    assert bed.ask(A, epoch=3) == []
    bed.heard.hear[0](b"not 3 " + A.hex.encode())
    assert bed.denials == []
    bed.heard.hear[0](b"not 5 " + A.hex.encode())
    assert bed.denials == [(5, [A])]


def test_many_are_asked_for_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enquiries, "AT_A_TIME", 2)
    bed = Bed()
    bed.start().ask([A, B, UUID(int=12)])
    assert [len(news.split()) for news in bed.heard.told] == [4, 3]
    assert [len(news.split()) for news in bed.ask(A, B, UUID(int=12))] == [4]
