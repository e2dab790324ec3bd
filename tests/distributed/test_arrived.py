"""New mail that came in here a moment ago: what is read of it, and when its rows are read all the same."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Message, Settlement
from mailismus.queue.providers.distributed.format.marks import WHOLE, removed_mark
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED, EPOCHS, MAILS
from mailismus.queue.providers.distributed.hand.arrived import FRESH_S, MOST_ENTRIES, ArrivedShares
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable, Write
from tests.distributed.servers import Node, Servers

MESSAGE_TABLES = {table.name for table in (ENQUEUED, DELETED, MAILS, EPOCHS)}


def share(number: int, entries: int = 1) -> Share:
    found = [Entry(at, b"c@d.example", Area.INCOMING, 1.0) for at in range(1, entries + 1)]
    message = Message(SpoolId(number), b"a@b.example", b"192.0.2.1", False, 1.0, 9, entries, found)
    return Share(ShareName(SharePlace("incoming", 0.0, 0), UUID(int=number)), message, Blob("k", b""), 1.0, 1.0)


class Time:
    """Elapsed seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def nobodys(name: UUID) -> bool:
    return False


def test_a_share_is_given_once() -> None:
    arrived = ArrivedShares(Time(), nobodys)
    arrived.keep([share(1), share(2)])
    assert arrived.take(UUID(int=1)) == share(1)
    assert arrived.take(UUID(int=1)) is None
    assert arrived.take(UUID(int=3)) is None
    assert arrived.take(UUID(int=2)) == share(2)


@pytest.mark.parametrize(("behind_s", "is_given"), [(FRESH_S - 0.1, True), (FRESH_S, False)])
def test_a_share_is_given_for_a_minute(behind_s: float, is_given: bool) -> None:
    time = Time()
    arrived = ArrivedShares(time, nobodys)
    arrived.keep([share(1)])
    time.seconds += behind_s
    assert (arrived.take(UUID(int=1)) is not None) == is_given


def test_the_first_shares_make_room() -> None:
    arrived, half = ArrivedShares(Time(), nobodys), MOST_ENTRIES // 2
    arrived.keep([share(1, half), share(2, half)])
    arrived.keep([share(3)])
    assert [arrived.take(UUID(int=number)) is not None for number in (1, 2, 3)] == [False, True, True]
    arrived.keep([share(4, half), share(5, half)])
    assert [arrived.take(UUID(int=number)) is not None for number in (4, 5)] == [True, True]


# A server that delivers.


class Asked:
    """What a server asks the database from now on: which tables of messages it reads and writes."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        self.written: list[set[str]] = []
        rows, row, write = node.clients.rows.rows_under, node.clients.rows.row, node.clients.rows.write
        index_of = node.clients.rows.rows

        def rows_of(table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
            self._note(table)
            return rows(table, key, limit)

        def rows_in(table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
            if table is MAILS:
                self._note(table)
            return index_of(table, partition, after, limit)

        def row_of(table: RowTable, key: Key) -> Deferred[Row | None]:
            self._note(table)
            return row(table, key)

        def write_all(writes: Sequence[Write]) -> Deferred[None]:
            if found := {one.table.name for one in writes} & MESSAGE_TABLES:
                self.written.append(found)
            return write(writes)

        monkeypatch.setattr(node.clients.rows, "rows_under", rows_of)
        monkeypatch.setattr(node.clients.rows, "rows", rows_in)
        monkeypatch.setattr(node.clients.rows, "row", row_of)
        monkeypatch.setattr(node.clients.rows, "write", write_all)

    def _note(self, table: RowTable) -> None:
        if table.name in MESSAGE_TABLES:
            self.read.append(table.name)


def deliver(node: Node, taken: Sequence[QueueId]) -> None:
    assert node.commit((), [Settlement(queue_id, None, 0.0) for queue_id in taken]) == [taken[0].spool_id]


def test_mail_that_came_in_here_costs_two_reads_and_two_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    node = servers.start("mx1")
    asked = Asked(node, monkeypatch)
    node.put()
    deliver(node, node.take_ids())
    servers.clock.advance(0)
    assert asked.read == [DELETED.name, DELETED.name]
    assert asked.written == [{ENQUEUED.name}, {DELETED.name}]


def remove_before_it_is_read(node: Node, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server marks a share removed as this one is about to read its marks."""
    rows = node.clients.rows.rows_under

    def rows_of(table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        if table is DELETED:
            monkeypatch.undo()
            queue_name, start, bucket, name = key
            assert isinstance(queue_name, str)
            assert isinstance(start, float)
            assert isinstance(bucket, int)
            assert isinstance(name, UUID)
            place = SharePlace(queue_name, start, bucket)
            servers.world.rows.apply(removed_mark(ShareName(place, name), WHOLE, servers.now()))
        return rows(table, key, limit)

    monkeypatch.setattr(node.clients.rows, "rows_under", rows_of)


def test_mail_that_was_removed_elsewhere_meanwhile_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    node = servers.start("mx1")
    remove_before_it_is_read(node, servers, monkeypatch)
    node.put()
    servers.advance(1.0)
    assert node.take_ids() == []


def test_rows_are_read_where_another_server_had_the_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers()
    first, second = servers.start("mx1"), servers.start("mx2")
    first.put()
    while not second.take_ids():
        deliver(first, first.take_ids())
        first.put()
    asked = Asked(first, monkeypatch)
    second.kill()
    servers.advance(FRESH_S - 5.0)
    assert first.take_ids()
    assert ENQUEUED.name in asked.read
