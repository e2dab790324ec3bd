"""A slice of which little is left is read from where something lives, not from its begin each time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.distributed.browse.partition import PAGE
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.contracts.bench import addresses
from tests.distributed.servers import Node, Servers

EACH, MESSAGES = 400, 10
"""A page has two of them."""


@pytest.fixture
def deferred(servers: Servers, one: Node) -> list[QueueId]:
    """Entries that wait for hours, in a slice that is old."""
    for _ in range(MESSAGES):
        one.put(addresses(EACH))
    taken = [queue_id for _ in range(MESSAGES) for queue_id in one.take_ids()]
    one.defer(taken, one.now() + 36_000)
    servers.advance(2 * 3600)
    return taken


def rows_read(one: Node, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of shares each read has from now on."""
    rows, read = one.clients.rows.rows, list[int]()

    def noting(table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        def note(got: Sequence[Row]) -> Sequence[Row]:
            read.append(len(got) if table is ENQUEUED else 0)
            return got

        return rows(table, partition, after, limit).addCallback(note)

    monkeypatch.setattr(one.clients.rows, "rows", noting)
    return read


def test_what_is_over_is_read_once(
    servers: Servers, one: Node, deferred: list[QueueId], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.wait(one.queue.visit_all(Filter(), servers.now()))
    servers.advance(1)
    gone = one.take_ids(Area.DEFERRED)
    assert len(gone) == len(deferred)
    one.remove(gone[: -2 * EACH])
    move = one.shared.parts.starts.move
    servers.wait_for(move())
    read = rows_read(one, monkeypatch)
    servers.wait_for(move())
    assert sum(read) <= 3 * PAGE, "two buckets, and a page in which something lives"
    assert {entry.area for _, entry in one.search()} == {Area.DEFERRED}
    assert one.entry_count() == 2 * EACH
    assert servers.wait(one.queue.visit_all(Filter(), servers.now())).entries == 0, "they are out"
    one.remove(gone[-2 * EACH :])
    servers.wait_for(move())
    assert one.shared.parts.starts.browse_start(Area.DEFERRED) > servers.now() - 2 * 3600
