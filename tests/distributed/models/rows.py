"""`RowsModel`: the database in memory, with times of writes, times to live, and its own clock."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rows import (
    ColumnKind,
    Erase,
    Key,
    Put,
    Row,
    RowTable,
    Value,
    Write,
    milliseconds,
)
from tests.distributed.models.fates import Fates, IWatch

STORE = "rows"
EVER = float("inf")


@attrs.frozen
class _Cell:
    """A value, or that a row was made; when it was written, and until when it is there."""

    value: Value
    at: float
    until: float


@attrs.define
class _Row:
    made: _Cell | None = None
    cells: dict[str, _Cell] = attrs.field(factory=dict)


@attrs.define
class _Partition:
    erased_at: float = -EVER
    rows: dict[Key, _Row] = attrs.field(factory=dict)
    _order: list[tuple[tuple[Any, ...], Key]] = attrs.field(factory=list)

    def behind(self, start: tuple[Any, ...] | None) -> Iterator[Key]:
        """The rows' places in their order."""
        if len(self._order) != len(self.rows):
            self._order = sorted((_in_order(place), place) for place in self.rows)
        first = 0 if start is None else bisect_right(self._order, start, key=lambda one: one[0])
        return (place for _, place in itertools.islice(self._order, first, None))


class RowsModel:
    """The database."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.tables: dict[str, dict[Key, _Partition]] = {}
        self._last_at = 0.0

    def client(self, clock: Clock | None = None, watch: IWatch | None = None) -> ModelRows:
        """A client of its own fates. `clock`: of its process; `watch`: sees its calls."""
        return ModelRows(self, clock or self.clock, watch)

    def next_at(self) -> float:
        """The time of the next compare and set: they come one after the other."""
        self._last_at = max(self.clock.seconds(), self._last_at + 1e-6)
        return self._last_at

    def partition(self, table: RowTable, key: Key) -> _Partition:
        """A partition as it is; made if it is not there."""
        if table.name not in self.tables:
            raise NotDone(STORE, f"there is no table {table.name}")
        return self.tables[table.name].setdefault(_stored(table, key), _Partition())

    def apply(self, write: Write) -> None:
        """Carry out one write."""
        table = write.table
        if isinstance(write, Erase):
            partition = self.partition(table, write.partition)
            partition.erased_at = max(partition.erased_at, write.at)
            return
        until = self.clock.seconds() + write.ttl_s if write.ttl_s else EVER
        self.put(table, write.key, write.cells, write.at, until)

    def put(self, table: RowTable, key: Key, cells: Row, at: float, until: float, *, is_making: bool = True) -> None:
        """Set cells of a row, as far as they have no later ones. `is_making`: the row is there as long, even empty."""
        stored = _stored(table, key)
        row = self.partition(table, stored[: table.key_size]).rows.setdefault(stored[table.key_size :], _Row())
        if is_making:
            row.made = _later(row.made, _Cell(None, at, until))
        kinds = {column.name: column.kind for column in table.cells}
        for name, value in cells.items():
            if value is not None:
                row.cells[name] = _later(row.cells.get(name), _Cell(_as_stored(kinds[name], value), at, until))

    def seen(self, table: RowTable, key: Key) -> Row | None:
        """A row as a read sees it."""
        stored = _stored(table, key)
        return self.view(table, stored, self.partition(table, stored[: table.key_size]))

    def view(self, table: RowTable, stored: Key, partition: _Partition) -> Row | None:
        """The same, of a key as it is stored."""
        row = partition.rows.get(stored[table.key_size :])
        if row is None:
            return None
        now, erased_at = self.clock.seconds(), partition.erased_at

        def is_there(cell: _Cell | None) -> bool:
            return cell is not None and cell.at > erased_at and cell.until > now

        cells = {name: cell.value for name, cell in row.cells.items() if is_there(cell)}
        if not cells and not is_there(row.made):
            return None
        names = {column.name: value for column, value in zip(table.key, stored, strict=True)}
        return {**names, **{column.name: cells.get(column.name) for column in table.cells}}


class ModelRows:
    """`IRows` over the model."""

    def __init__(self, model: RowsModel, clock: Clock, watch: IWatch | None = None) -> None:
        self._model = model
        self.fates = Fates(clock, STORE, watch)

    def make(self, tables: Sequence[RowTable]) -> Deferred[None]:
        def act() -> None:
            for table in tables:
                self._model.tables.setdefault(table.name, {})

        return self.fates.carry_out("make", act, is_reading=True)

    def missing(self, tables: Sequence[RowTable]) -> Deferred[Sequence[str]]:
        return self._read("missing", lambda: [table.name for table in tables if table.name not in self._model.tables])

    def write(self, writes: Sequence[Write]) -> Deferred[None]:
        for write in writes:
            if isinstance(write, Put):
                _check_cells(write.table, write.cells)

        def act() -> None:
            for write in writes:
                self._model.apply(write)

        return self.fates.carry_out("write", act)

    def row(self, table: RowTable, key: Key) -> Deferred[Row | None]:
        return self._read("row", lambda: self._model.seen(table, key))

    def rows(self, table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        def act() -> Sequence[Row]:
            start = None if after is None else _in_order(_stored(table, (*partition, *after))[table.key_size :])
            here = self._model.partition(table, partition)
            key = _stored(table, partition)
            found = (self._model.view(table, (*key, *place), here) for place in here.behind(start))
            return list(itertools.islice((row for row in found if row is not None), limit))

        return self._read("rows", act)

    def rows_under(self, table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        def act() -> Sequence[Row]:
            stored = _stored(table, key)
            here, begin = self._model.partition(table, key[: table.key_size]), stored[table.key_size :]
            places = itertools.takewhile(lambda place: place[: len(begin)] == begin, here.behind(_in_order(begin)))
            found = (self._model.view(table, (*stored[: table.key_size], *place), here) for place in places)
            return list(itertools.islice((row for row in found if row is not None), limit))

        return self._read("rows", act)

    def all_rows(self, table: RowTable) -> Deferred[Sequence[Row]]:
        def act() -> Sequence[Row]:
            keys = [(*key, *place) for key, part in self._model.tables[table.name].items() for place in part.rows]
            return [row for row in (self._model.seen(table, key) for key in keys) if row is not None]

        return self._read("all_rows", act)

    def add(self, table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        def act() -> Row | None:
            found = self._model.seen(table, key)
            if found is None:
                self._set(table, key, cells, ttl_s, is_making=True)
            return found

        return self.fates.carry_out("add", act)

    def change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        def act() -> Row | None:
            row = self._model.seen(table, key)
            there = {name: None if row is None else row[name] for name in found}
            if row is None or any(there[name] != value for name, value in found.items()):
                return there
            self._set(table, key, cells, ttl_s, is_making=False)
            return None

        return self.fates.carry_out("change", act)

    def now(self) -> Deferred[float]:
        return self._read("now", self._model.clock.seconds)

    def close(self) -> Deferred[None]:
        return succeed(None)

    def _read(self, call: str, act: Callable[[], Any]) -> Deferred[Any]:
        return self.fates.carry_out(call, act, is_reading=True)

    def _set(self, table: RowTable, key: Key, cells: Row, ttl_s: int, *, is_making: bool) -> None:
        now = self._model.clock.seconds()
        self._model.put(table, key, cells, self._model.next_at(), now + ttl_s if ttl_s else EVER, is_making=is_making)


def _later(old: _Cell | None, new: _Cell) -> _Cell:
    if old is None or new.at > old.at:
        return new
    if new.at < old.at:
        return old
    return max((old, new), key=lambda cell: (_in_order((cell.value,)), cell.until))


def _in_order(values: Key) -> tuple[Any, ...]:
    return tuple(value.int if isinstance(value, UUID) else b"" if value is None else value for value in values)


def _stored(table: RowTable, key: Key) -> Key:
    return tuple(_as_stored(column.kind, value) for column, value in zip(table.key, key, strict=False))


def _as_stored(kind: ColumnKind, value: Value) -> Value:
    return milliseconds(value) / 1000 if kind is ColumnKind.TIME and isinstance(value, int | float) else value


def _check_cells(table: RowTable, cells: Row) -> None:
    unknown = cells.keys() - {column.name for column in table.cells}
    if unknown:
        raise ValueError(f"{table.name} has no cells {', '.join(sorted(unknown))}")
