"""Bounces of one message are one report, whatever becomes of the trigger by which a server has taken them over."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.format.tables import CLAIMS
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.contracts.bench import NO_REPLY, addresses
from tests.distributed.servers import Node, Servers


def lose_broker_at_claim(node: Node, monkeypatch: pytest.MonkeyPatch, count: int) -> list[Key]:
    """A server loses the broker for good as it claims its share of this count. Return what it has claimed."""
    claimed: list[Key] = []
    add = node.clients.rows.add

    def add_and_lose(table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        if table is CLAIMS:
            claimed.append(key)
            if len(claimed) == count:
                node.clients.broker.fates.is_away = True
                node.clients.broker.lose()
        return add(table, key, cells, ttl_s)

    monkeypatch.setattr(node.clients.rows, "add", add_and_lose)
    return claimed


def test_who_has_lost_the_trigger_of_a_round_it_has_claimed_reports_all(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest bounce would be another server's, and the others stay here: two reports."""
    maker = servers.start("maker")
    maker.put(addresses(2))
    both = maker.take_ids()
    for entry in both:
        maker.queue.commit((), [Settlement(entry, Area.BOUNCES, maker.now(), 1, NO_REPLY)])
        servers.advance(1)
    heir = servers.start("heir")
    claimed = lose_broker_at_claim(heir, monkeypatch, count=2)
    maker.kill()
    other = servers.start("other")
    found: list[list[QueueId]] = []
    for _ in range(200):
        servers.advance(1)
        found += [taken for node in (heir, other) if (taken := sorted(node.take_ids(Area.BOUNCES)))]
    assert len(claimed) >= 2
    assert found == [sorted(both)]
