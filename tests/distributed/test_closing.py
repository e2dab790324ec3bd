"""Who closes the queue as the last commit is told has all of it counted."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.browse.counting import count_by_rows
from tests.distributed.servers import Node, Servers


def test_a_queue_that_is_closed_as_a_commit_is_told_has_counted_it(servers: Servers, one: Node) -> None:
    servers.advance(60)  # the empty queue was counted
    closed: list[Deferred[None]] = []
    told = one.queue.commit([one.submission()], ())
    told.addCallback(lambda _: closed.append(one.queue.close()))
    servers.advance(10)
    servers.wait(closed[0])
    heir = servers.start("heir")
    parts = heir.shared.parts
    found = servers.wait_for(count_by_rows(parts.stores.rows, parts.starts, parts.counts, ""))
    assert found.exact
    assert sum(area.entries for area in found.areas.values()) == 1
