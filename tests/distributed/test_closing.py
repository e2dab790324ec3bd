"""A queue that is closed has counted what it told, and leaves no lease, whatever is under way."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.browse.counting import count_by_rows
from mailismus.queue.providers.distributed.format.tables import SERVERS
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.distributed.models.broker import ModelConsumer
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


def test_a_server_that_is_closed_as_it_acquires_another_lease_has_none(servers: Servers, one: Node) -> None:
    other, fates = servers.start("other"), one.clients.rows.fates
    fates.is_away = True
    servers.advance(LEASE_S + 5)
    fates.is_away, fates.late_s = False, 2.0
    add = one.clients.rows.add
    closing: list[Deferred[None]] = []

    def add_and_close(table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        if table is SERVERS and not closing:
            closing.append(one.queue.close())
        return add(table, key, cells, ttl_s)

    one.clients.rows.add = add_and_close  # type: ignore[method-assign]
    servers.advance(30)
    assert closing
    servers.wait(closing[0])
    servers.advance(5)
    assert servers.wait_for(other.shared.parts.lease.others()) == frozenset()
    assert not any(consumer.is_wanted for consumer in one.shared.parts.consumers)


def test_a_close_waits_once_for_a_broker_that_does_not_answer(
    servers: Servers, one: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(consumer: ModelConsumer) -> Deferred[None]:
        consumer.end()
        return servers.world.pause(5.0)

    monkeypatch.setattr(ModelConsumer, "cancel", cancel)
    closed: list[object] = []
    one.queue.close().addCallback(closed.append)
    servers.advance(6.0)
    assert closed == [None]
