"""A recount counts where nothing was changed while it read: by this server or another, begun before it or not told yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.task import deferLater

from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.counts.stored import OPEN, server_row
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED, SERVERS
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.queue.providers.distributed.stores.rows import Key, RowTable, Write
from tests.contracts.bench import addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers
from tests.distributed.test_counts import assert_exact, counted, visited

SLOW_S = 2.0


def slow_down(servers: Servers, node: Node) -> list[float]:
    """What a recount reads of new mail comes late from now on, as it was. Return when each read began."""
    client: Any = node.clients.rows
    plain = client.rows
    begun: list[float] = []

    def rows(table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Any:
        found = plain(table, partition, after, limit)
        if table is not ENQUEUED or partition[0] != Area.INCOMING.value or after is not None:
            return found
        begun.append(servers.now())
        return found.addCallback(lambda rows: deferLater(node.host, SLOW_S, lambda: rows))

    client.rows = rows
    return begun


def answer_late(node: Node) -> None:
    """Marks are there at once, and told a minute later."""
    client: Any = node.clients.rows
    plain = client.write

    def write(writes: Sequence[Write]) -> Any:
        done = plain(writes)
        if not any(one.table is DELETED for one in writes):
            return done
        return done.addCallback(lambda _: deferLater(node.host, 60.0))

    client.write = write


def put_some(node: Node) -> None:
    """Messages in all buckets."""
    for _ in range(6):
        node.put(addresses(2))


def killed(servers: Servers, node: Node) -> None:
    """It changes something, and is killed before it writes that down."""
    node.put(addresses(2))
    node.kill()
    servers.advance(LEASE_S - 2)


def await_recount(servers: Servers, begun: list[float]) -> None:
    """Until it reads."""
    for _ in range(600):
        if begun:
            return
        servers.clock.advance(0.1)
    raise AssertionError("nothing is read")


def assert_exact_at_last(servers: Servers, nodes: list[Node]) -> None:
    """Whenever a count says that it is exact it is, and in the end each is."""
    for _ in range(30):
        servers.advance(5)
        for node in nodes:
            found = counted(servers, node)
            assert not found.exact or found.areas == visited(servers, node).areas
    for node in nodes:
        assert_exact(servers, node)


def test_this_server_puts_something_in_while_it_reads(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    begun = slow_down(servers, two)
    killed(servers, one)
    await_recount(servers, begun)
    put_some(two)
    assert_exact_at_last(servers, [two])


def test_another_one_puts_something_in_meanwhile(servers: Servers) -> None:
    nodes = [servers.start(name) for name in ("one", "two", "three")]
    begun = slow_down(servers, nodes[1])
    nodes[2].shared.parts.recounting.close()  # the second one recounts
    killed(servers, nodes[0])
    await_recount(servers, begun)
    put_some(nodes[2])
    assert_exact_at_last(servers, nodes[1:])


def test_another_one_has_not_told_yet_what_it_put_in_before(servers: Servers) -> None:
    nodes = [servers.start(name) for name in ("one", "two", "three")]
    nodes[2].shared.parts.recounting.close()
    killed(servers, nodes[0])
    rows = servers.world.rows.tables[SERVERS.name]
    while any(key == (1,) and servers.world.rows.seen(SERVERS, key) for key in list(rows)):
        servers.clock.advance(0.1)
    begun = slow_down(servers, nodes[1])
    for _ in range(100):  # all the time, so that some of it comes right before the look
        if begun:
            break
        nodes[2].put()
        servers.clock.advance(0.2)
    assert_exact_at_last(servers, nodes[1:])


@pytest.mark.parametrize("by", [1, 2])
def test_what_was_begun_before_and_is_under_way_is_waited_for(servers: Servers, by: int) -> None:
    nodes = [servers.start(name) for name in ("one", "two", "three")]
    nodes[2].shared.parts.recounting.close()
    put_some(nodes[by])
    taken = nodes[by].take_ids(limit=2)
    assert taken
    killed(servers, nodes[0])
    answer_late(nodes[by])
    nodes[by].queue.commit((), [Settlement(queue_id, None) for queue_id in taken])
    servers.advance(50)
    assert not counted(servers, nodes[1]).exact
    servers.advance(70)
    for node in nodes[1:]:
        assert_exact(servers, node)


def test_a_server_whose_clock_was_ahead_is_forgotten_by_one_recount(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    rows = servers.world.server().rows
    epoch = one.shared.parts.counts.epoch
    servers.wait(rows.write([server_row(epoch, OPEN, 1, servers.now() + 50)]))
    begun = slow_down(servers, two)
    killed(servers, one)
    servers.advance(60)
    assert_exact(servers, two)
    count = len(begun)
    servers.advance(60)
    assert len(begun) == count


def test_what_a_killed_server_wrote_down_is_not_counted_when_it_comes_late(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    late = one.clients.rows.fates
    one.put(addresses(2))
    late.plan(Fate.LATE, call="write")  # of its counts
    servers.advance(6)
    one.kill()
    servers.advance(90)
    assert_exact(servers, two)
    late.do_late()
    assert_exact(servers, two)
    three = servers.start("three")
    three.put()
    three.kill()
    servers.advance(90)  # counted anew once more
    assert_exact(servers, two)
