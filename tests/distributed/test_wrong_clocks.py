"""A server whose clock is ahead removes nothing that others have, and hides nothing from them."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area, Settlement
from tests.distributed.servers import Node, Servers

DAYS_S = 3 * 86_400.0


def ahead(servers: Servers) -> Node:
    """A server, three days ahead of all others."""
    node = Node(servers, "ahead", ahead_s=DAYS_S)
    servers.wait(node.queue.open())
    return node


def both(servers: Servers, *, is_first: bool) -> tuple[Node, Node]:
    """That server, and another one. `is_first`: it was the first one ever."""
    if is_first:
        return ahead(servers), servers.start("right")
    right = servers.start("right")
    return ahead(servers), right


@pytest.mark.parametrize("is_first", [True, False])
def test_what_others_put_in_is_found_and_stays(servers: Servers, *, is_first: bool) -> None:
    fast, right = both(servers, is_first=is_first)
    move = fast.shared.parts.duties.move_starts
    servers.wait_for(move())
    put = [right.put() for _ in range(4)]
    servers.wait_for(move())
    servers.advance(5)
    assert {message.spool_id for message, _ in servers.start("third").search()} == set(put)
    assert servers.wait(right.queue.summary()).areas[Area.INCOMING].entries == 4


def test_nothing_is_carried(servers: Servers) -> None:
    fast, right = both(servers, is_first=False)
    right.put()
    held = [Settlement(queue_id, Area.HELD, servers.now() + DAYS_S) for queue_id in right.take_ids()]
    right.commit((), held)
    servers.advance(130)
    assert held
    assert fast.shared.parts.carrying.carried == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_what_waits_is_published_at_its_time(servers: Servers, *, is_first: bool) -> None:
    fast, right = both(servers, is_first=is_first)
    servers.advance(130)
    fast.kill()
    right.put()
    right.defer(taken := right.take_ids(), servers.now() + 3600)
    right.kill()
    servers.advance(61)
    third = servers.start("third")
    assert third.take_ids(Area.DEFERRED) == []
    servers.advance(3600)
    assert third.take_ids(Area.DEFERRED) == taken != []
