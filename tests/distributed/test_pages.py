"""Pages of a partition: however small the first one is, each share comes once, whole; and a search reads no more than it
needs."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.providers.distributed.browse.partition import PAGE, pages_of
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace, writes_of
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Row, RowTable
from tests.distributed.servers import Servers
from tests.distributed.world import World

PLACE = SharePlace("incoming", 0.0, 0)
SIZES = [1, 30, 2, 500, 1, 1]


def share(number: int, entries: int) -> Share:
    found = [Entry(at, b"c@d.example", Area.INCOMING, 1.0) for at in range(1, entries + 1)]
    message = Message(SpoolId(number), b"a@b.example", b"192.0.2.1", False, 1.0, 9, entries, found)
    return Share(ShareName(PLACE, UUID(int=number)), message, Blob("k", b""), 1.0, 1.0)


async def read(rows: IRows, first_rows: int) -> list[tuple[int, int]]:
    """Each share that came, with the number of its entries."""
    found = []
    async for page in pages_of(rows, PLACE, None, first_rows):
        found += [(one.share.name.enqueue_id.int, len(one.entries)) for one in page.shares]
    return found


@pytest.mark.parametrize("first_rows", [1, 2, 3, 31, 32, 33, 34, 36, 60, PAGE, 2 * PAGE])
def test_each_share_comes_once_and_whole(first_rows: int) -> None:
    world = World()
    rows = world.server().rows
    for number, size in enumerate(SIZES, 1):
        world.wait(rows.write([*writes_of(share(number, size), 1.0)]))
    assert world.wait(read(rows, first_rows)) == list(enumerate(SIZES, 1))


def test_a_short_search_reads_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    node = servers.start("mx1")
    for _ in range(30):
        node.put()
    rows, limits = node.clients.rows.rows, list[int]()

    def noting(table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        if table is ENQUEUED:
            limits.append(limit)
        return rows(table, partition, after, limit)

    monkeypatch.setattr(node.clients.rows, "rows", noting)
    page = node.wait(node.queue.search(Filter(), None, 5))
    assert sum(len(message.entries) for message in page.messages) == 5
    assert set(limits) == {12}
    found = {message.spool_id for message in page.messages}
    while page.cursor is not None:
        page = node.wait(node.queue.search(Filter(), page.cursor, 5))
        assert found.isdisjoint(message.spool_id for message in page.messages)
        found |= {message.spool_id for message in page.messages}
    assert len(found) == 30
