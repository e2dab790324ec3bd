"""Pages of a partition: however small the first one is, each share comes once, whole; a search reads no more than it
needs, and an act has whole shares, which are claimed side by side."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Message, Page, Settlement
from mailismus.queue.providers.distributed.browse.partition import PAGE, pages_of
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace, writes_of
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import IRows, Key, Row, RowTable
from tests.contracts.bench import addresses
from tests.distributed.harness import VIEW
from tests.distributed.servers import Node, Servers
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


def claimed_pages(servers: Servers, node: Node, limit: int) -> list[Page]:
    """All pages of an act."""
    pages, cursor = list[Page](), None
    while not pages or cursor is not None:
        page = servers.wait(node.queue.claim(Filter(), cursor, limit))
        pages.append(page)
        cursor = page.cursor
    return pages


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 30])
def test_an_act_cuts_no_share_that_fits_into_a_page(limit: int) -> None:
    servers = Servers()
    node = servers.start("mx1")
    put = {node.put(addresses(count)): count for count in (3, 2, 3, 1, 3, 5)}
    pages = claimed_pages(servers, node, limit)
    pieces = [(message.spool_id, len(message.entries)) for page in pages for message in page.messages]
    assert sum(count for _, count in pieces) == sum(put.values())
    assert all(sum(len(message.entries) for message in page.messages) <= limit for page in pages)
    whole = {spool_id for spool_id, count in put.items() if count <= limit}
    assert all(count == put[spool_id] for spool_id, count in pieces if spool_id in whole)
    assert {spool_id for spool_id, _ in pieces} == set(put)


def test_shares_of_an_act_are_claimed_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    node = servers.start("mx1")
    for _ in range(20):
        node.put()
    add = node.clients.rows.add
    monkeypatch.setattr(node.clients.rows, "add", lambda *given: deferLater(servers.clock, 1.0, add, *given))
    begun = servers.now()
    page = servers.wait(node.queue.claim(Filter(), None, 30))
    assert len(page.messages) == 20
    assert servers.now() - begun < 3


@pytest.mark.parametrize("is_over", [False, True])
def test_a_search_goes_on_where_its_place_was_cleaned_up_meanwhile(servers: Servers, *, is_over: bool) -> None:
    """The browse start of one area passes the place; what is older lives in another area."""
    one = servers.start("one")
    held = one.put()
    one.commit((), [Settlement(queue_id, Area.HELD, servers.now() + 1e6) for queue_id in one.take_ids()])
    servers.advance(2 * VIEW.slice_window_s)
    for _ in range(2):
        one.put()
    first = one.wait(one.queue.search(Filter(), None, 1))
    assert first.cursor is not None
    if is_over:
        one.remove(one.take_ids())
        servers.advance(3 * VIEW.slice_window_s)
        servers.wait_for(one.shared.parts.duties.move_starts())
        assert one.shared.parts.starts.browse_start(Area.INCOMING) > one.shared.parts.starts.browse_start(Area.HELD)
    found, cursor = list[SpoolId](), first.cursor
    while cursor is not None:
        page = one.wait(one.queue.search(Filter(), cursor, 1))
        found, cursor = [*found, *(message.spool_id for message in page.messages)], page.cursor
    assert len(found) == (1 if is_over else 2)
    assert found[-1] == held
