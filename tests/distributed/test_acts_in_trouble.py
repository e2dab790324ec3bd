"""Acts and flushes while a store fails: what an act could not have is free for the next one, on any server."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.interface import Area, Filter, Settlement
from tests.contracts.bench import addresses, beyond
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers

HELD = Filter(area=Area.HELD)


@pytest.fixture
def other(servers: Servers, one: Node) -> Node:
    """Two messages are held."""
    other = servers.start("other")
    for _ in range(2):
        one.put(addresses(2))
    servers.advance(1)
    for node in (one, other):
        node.commit((), [Settlement(queue_id, Area.HELD, FOR_EVER, 1) for queue_id in node.take_ids()])
    servers.advance(1)
    return other


def claimed(servers: Servers, node: Node) -> int:
    """How many entries an act may have."""
    page = servers.wait(node.queue.claim(HELD, None, 100))
    return sum(len(message.entries) for message in page.messages)


@pytest.mark.parametrize("call", ["add", "rows", "row"])
@pytest.mark.parametrize("before", range(8))
def test_what_an_act_could_not_have_is_free_for_another_server(
    servers: Servers, one: Node, other: Node, call: str, before: int
) -> None:
    one.clients.rows.fates.plan(*[Fate.DONE] * before, Fate.NOT_DONE, call=call)
    try:
        servers.wait(one.queue.claim(HELD, None, 100))
    except Unavailable:
        servers.advance(1)
        assert claimed(servers, other) == 4
    one.clients.rows.fates.forget()


def test_a_claim_without_an_answer_is_given_up_with_its_act(servers: Servers, one: Node, other: Node) -> None:
    one.clients.rows.fates.plan(Fate.UNANSWERED, Fate.NOT_DONE, call="add")
    with pytest.raises(Unavailable):
        servers.wait(one.queue.claim(HELD, None, 100))
    servers.advance(1)
    assert claimed(servers, other) == 4


def test_what_a_trigger_has_brought_too_stays_here(servers: Servers, one: Node) -> None:
    """The trigger may be all that brings it back."""
    one.put(addresses(2))
    one.defer(one.take_ids(), one.now() + 4)
    servers.advance(5)  # it is here by its trigger
    hand = one.shared.parts.hand
    (known,) = hand.index.messages.values()
    both = known.message.with_entries(list(known.entries.values())).queue_ids()
    hand.put_back(both)
    assert all(hand.has(queue_id) for queue_id in both)
    assert sorted(one.take_ids(Area.DEFERRED)) == sorted(both)


@pytest.mark.parametrize("call", ["rows", "publish"])
@pytest.mark.parametrize("fate", [Fate.NOT_DONE, Fate.NEVER])
def test_what_waits_is_hastened_once_the_store_is_well(servers: Servers, one: Node, call: str, fate: Fate) -> None:
    one.put(addresses(2))
    taken = one.take_ids()
    one.defer(taken, one.now() + 600)
    servers.advance(1)
    for fates in one.clients.fates:
        fates.plan(fate, call=call)
    one.queue.hasten(beyond(one.now() + 10, one.now()), one.now())
    servers.advance(25)
    assert one.take_ids(Area.DEFERRED) == taken


def test_a_hold_that_comes_when_the_message_is_over_is_ended_by_the_next_act(servers: Servers, one: Node) -> None:
    """Nothing brings it back, so only an act meets it, or the carrying."""
    one.put()
    taken = one.take_ids()
    one.clients.rows.fates.plan(Fate.LATE, call="write")
    one.queue.commit((), [Settlement(queue_id, Area.HELD, FOR_EVER, 1) for queue_id in taken])
    servers.advance(1)
    one.kill()
    heir = servers.start("heir")
    servers.advance(40)
    assert len(heir.remove(heir.take_ids())) == 1
    one.clients.rows.fates.do_late()
    assert len(heir.search()) == 1
    assert claimed(servers, heir) == 0
    servers.advance(1)
    assert heir.search() == []
