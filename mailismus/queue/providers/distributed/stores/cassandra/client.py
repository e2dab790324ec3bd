"""`CassandraRows`: the rows of one keyspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import attrs
from twisted.internet.defer import Deferred

from mailismus.disk.worker import IWorker
from mailismus.queue.providers.distributed.stores.cassandra import statements
from mailismus.queue.providers.distributed.stores.cassandra.asking import RowsReactor
from mailismus.queue.providers.distributed.stores.cassandra.session import (
    STORE,
    CassandraAccess,
    CassandraSession,
)
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.libraries import require_packages
from mailismus.queue.providers.distributed.stores.rows import Key, Put, Row, RowTable, Write

APPLIED = "[applied]"


class CassandraRows:
    """`IRows` by Cassandra."""

    def __init__(self, reactor: RowsReactor, worker: IWorker, access: CassandraAccess, keyspace: str) -> None:
        """`worker`: for calls of the driver that block. Raises `StartError` where the driver is not installed."""
        require_packages()
        self._session = CassandraSession(reactor, worker, access)
        self._keyspace = keyspace
        self._tables: dict[str, RowTable] = {}
        self._texts: dict[tuple[str, object], str] = {}
        """Statements that each message needs, by their table and what else they depend on."""

    def make_keyspace(self, datacenter: str, replication: int) -> Deferred[None]:
        """Make the keyspace, if it is not there. Fails with `NotDone`."""
        options = f"{{'class': 'NetworkTopologyStrategy', '{datacenter}': {replication}}}"
        statement = f"CREATE KEYSPACE IF NOT EXISTS {self._keyspace} WITH replication = {options}"
        return Deferred.fromCoroutine(self._run(statement))

    def has_keyspace(self) -> Deferred[bool]:
        """Whether it is there. Fails with `NotDone`."""
        return Deferred.fromCoroutine(self._has_keyspace())

    async def _has_keyspace(self) -> bool:
        return bool(await self._session.read(statements.SELECT_KEYSPACE, [self._keyspace]))

    def count_nodes(self) -> Deferred[int]:
        """How many nodes the datacenter has, up or not. Fails with `NotDone`."""
        return Deferred.fromCoroutine(self._session.count_nodes())

    def remove_keyspace(self) -> Deferred[None]:
        """Remove the keyspace with everything in it. Fails with `NotDone`."""
        return Deferred.fromCoroutine(self._run(f"DROP KEYSPACE IF EXISTS {self._keyspace}"))

    async def _run(self, statement: str) -> None:
        await self._session.run(statement)

    def make(self, tables: Sequence[RowTable]) -> Deferred[None]:
        return Deferred.fromCoroutine(self._make(tables))

    async def _make(self, tables: Sequence[RowTable]) -> None:
        for table in tables:
            await self._session.run(statements.create_table(self._here(table)))

    def missing(self, tables: Sequence[RowTable]) -> Deferred[Sequence[str]]:
        return Deferred.fromCoroutine(self._missing(tables))

    async def _missing(self, tables: Sequence[RowTable]) -> Sequence[str]:
        found = await self._session.read(statements.SELECT_TABLES, [self._keyspace])
        there = {row["table_name"] for row in found}
        return [table.name for table in tables if table.name not in there]

    def write(self, writes: Sequence[Write]) -> Deferred[None]:
        return Deferred.fromCoroutine(self._write(writes))

    async def _write(self, writes: Sequence[Write]) -> None:
        if not writes:
            return
        places = {(write.table.name, _partition(write)) for write in writes}
        await self._session.write([self._statement(write) for write in writes], is_one=len(places) == 1)

    def _statement(self, write: Write) -> tuple[str, list[object]]:
        table, at = self._here(write.table), statements.microseconds(write.at)
        if isinstance(write, Put):
            names, values = statements.cells_of(table, write.cells)
            key = statements.values_of(table.key, write.key)
            text = self._text(table, names, lambda: statements.put(table, names))
            return text, [*key, *values, write.ttl_s, at]
        return statements.erase(table), [at, *statements.values_of(table.partition, write.partition)]

    def row(self, table: RowTable, key: Key) -> Deferred[Row | None]:
        return Deferred.fromCoroutine(self._row(self._here(table), key))

    async def _row(self, table: RowTable, key: Key) -> Row | None:
        values = statements.values_of(table.key, key)
        found = await self._session.read(statements.select_row(table), values)
        return statements.row_of(table, found[0]) if found else None

    def rows(self, table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        return Deferred.fromCoroutine(self._rows(self._here(table), partition, after, limit))

    async def _rows(self, table: RowTable, partition: Key, after: Key | None, limit: int) -> Sequence[Row]:
        statement = statements.select_rows(table, is_behind=after is not None)
        values = statements.values_of(table.partition, partition)
        if after is not None:
            values += statements.values_of(table.order, after)
        found = await self._session.read(statement, [*values, limit])
        return [statements.row_of(table, row) for row in found]

    def rows_under(self, table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        return Deferred.fromCoroutine(self._rows_under(self._here(table), key, limit))

    async def _rows_under(self, table: RowTable, key: Key, limit: int) -> Sequence[Row]:
        values = statements.values_of(table.key[: len(key)], key)
        text = self._text(table, len(key), lambda: statements.select_rows_under(table, len(key)))
        found = await self._session.read(text, [*values, limit])
        return [statements.row_of(table, row) for row in found]

    def all_rows(self, table: RowTable) -> Deferred[Sequence[Row]]:
        return Deferred.fromCoroutine(self._all_rows(self._here(table)))

    async def _all_rows(self, table: RowTable) -> Sequence[Row]:
        found = await self._session.read(statements.select_all(table), [])
        return [statements.row_of(table, row) for row in found]

    def add(self, table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        return Deferred.fromCoroutine(self._add(self._here(table), key, cells, ttl_s))

    async def _add(self, table: RowTable, key: Key, cells: Row, ttl_s: int) -> Row | None:
        names, values = statements.cells_of(table, cells)
        given = [*statements.values_of(table.key, key), *values, ttl_s]
        answer = await self._session.compare(statements.add(table, names), given)
        return None if answer[APPLIED] else statements.row_of(table, answer)

    def change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        return Deferred.fromCoroutine(self._change(self._here(table), key, cells, found, ttl_s))

    async def _change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int) -> Row | None:
        names, values = statements.cells_of(table, cells)
        asked = [column for column in table.cells if column.name in found]
        wanted = [statements.to_driver(column, found[column.name]) for column in asked]
        statement = statements.change(table, names, [column.name for column in asked])
        given = [ttl_s, *values, *statements.values_of(table.key, key), *wanted]
        answer = await self._session.compare(statement, given)
        if answer[APPLIED]:
            return None
        return {column.name: statements.from_driver(column, answer.get(column.name)) for column in asked}

    def now(self) -> Deferred[float]:
        return Deferred.fromCoroutine(self._now())

    async def _now(self) -> float:
        rows = await self._session.read(statements.SELECT_NOW, [])
        at = rows[0]["at"]
        if not isinstance(at, datetime):
            raise NotDone(STORE, "it does not tell its time")
        return statements.seconds_of(at)

    def close(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._session.close())

    def _text(self, table: RowTable, of: object, make: Callable[[], str]) -> str:
        known = self._texts.get((table.name, of))
        if known is None:
            known = self._texts[table.name, of] = make()
        return known

    def _here(self, table: RowTable) -> RowTable:
        """The table with its full name."""
        known = self._tables.get(table.name)
        if known is None or known.columns is not table.columns:
            name = statements.full_name(self._keyspace, table.name)
            known = self._tables[table.name] = attrs.evolve(table, name=name)
        return known


def _partition(write: Write) -> Key:
    return write.key[: write.table.key_size] if isinstance(write, Put) else write.partition
