"""The database: rows in partitions, by key.

*Guaranteed*:
- A write fires when it is durable at a quorum; every read that begins later, from any server, sees it.
- What one `write` puts into one partition of one table comes as one: all or nothing, and no read sees a part. Over several
  partitions it is all or nothing too, but a read may see a part for a while.
- Of two puts into one cell the one with the later `at` counts, in whatever order they arrive, and however often each is
  repeated. Of the same `at` the greater value counts.
- An erasure takes what has an earlier or the same `at`, whenever that arrives. What is put with a later one stays.
- `add` and `change` (compare and set) of one partition happen one after the other, over all servers.

*Not guaranteed*: that cells which `add` or `change` have set can be put by `write` too, or the other way: the times of the
two have nothing to do with each other. That `change` can be repeated as `write` can: after `Unanswered` the row is read, by
another `change`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred

Value = str | int | float | bytes | UUID | None
Row = Mapping[str, Value]
"""Names of columns and their values, those of the key too. A cell that was never put is None."""


_ROUNDING = 0.01
"""Milliseconds. A time that was read is written unchanged, and no time is rounded up."""


def milliseconds(at: float) -> int:
    """A time as a column keeps it."""
    return math.floor(at * 1000 + _ROUNDING)


def kept_time(at: float) -> float:
    """A time as it is read again."""
    return milliseconds(at) / 1000


class ColumnKind(enum.Enum):
    """What a column holds, as the database names it."""

    TEXT = "text"
    SMALL = "int"
    NUMBER = "bigint"
    BYTES = "blob"
    ID = "uuid"
    TIME = "timestamp"
    """UTC seconds, kept in whole milliseconds, never rounded up."""


@attrs.frozen
class Column:
    """A column of a table."""

    name: str
    kind: ColumnKind


@attrs.frozen
class RowTable:
    """A table. `key_size` columns are the partition's, the next `order_size` order the rows inside it, ascending; the
    others are cells."""

    name: str
    columns: tuple[Column, ...]
    key_size: int
    order_size: int = 0
    is_passing: bool = False
    """Whether its rows expire by themselves, or are renewed: nothing of it is ever written beside other tables."""

    @property
    def partition(self) -> tuple[Column, ...]:
        """The columns of the partition key."""
        return self.columns[: self.key_size]

    @property
    def order(self) -> tuple[Column, ...]:
        """The columns that order rows in a partition."""
        return self.columns[self.key_size : self.key_size + self.order_size]

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns that name a row."""
        return self.columns[: self.key_size + self.order_size]

    @property
    def cells(self) -> tuple[Column, ...]:
        """All others."""
        return self.columns[self.key_size + self.order_size :]


Key = tuple[Value, ...]


@attrs.frozen
class Put:
    """Make a row if it is not there, and set some of its cells. `ttl_s`: what is set goes after so long; 0: never."""

    table: RowTable
    key: Key
    cells: Row
    at: float
    ttl_s: int = 0


@attrs.frozen
class Erase:
    """Remove a whole partition, as far as it was put at `at` or before."""

    table: RowTable
    partition: Key
    at: float


Write = Put | Erase


class IRows(Protocol):
    """A client of the database."""

    def make(self, tables: Sequence[RowTable]) -> Deferred[None]:
        """Make the tables that are not there. One client at a time may do so. Fails with `NotDone`."""

    def missing(self, tables: Sequence[RowTable]) -> Deferred[Sequence[str]]:
        """Names of those that are not there. Fails with `NotDone`."""

    def write(self, writes: Sequence[Write]) -> Deferred[None]:
        """Fires when all of it is durable. Fails with `NotDone` or `Unanswered`; the same again is harmless."""

    def row(self, table: RowTable, key: Key) -> Deferred[Row | None]:
        """One row; None: there is none. Fails with `NotDone`."""

    def rows(self, table: RowTable, partition: Key, after: Key | None = None, limit: int = 1000) -> Deferred[Sequence[Row]]:
        """Rows of a partition in their order: the first `limit`, or those behind `after` (values of all columns of the
        order). Fails with `NotDone`."""

    def rows_under(self, table: RowTable, key: Key, limit: int = 1000) -> Deferred[Sequence[Row]]:
        """The first rows whose key begins so: the partition's, and some of the columns that order it. Fails with
        `NotDone`."""

    def all_rows(self, table: RowTable) -> Deferred[Sequence[Row]]:
        """All rows of a small table, in no order. Fails with `NotDone`."""

    def add(self, table: RowTable, key: Key, cells: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        """Make a row unless it is there: None, or the row that is there. Fails with `NotDone` or `Unanswered`."""

    def change(self, table: RowTable, key: Key, cells: Row, found: Row, ttl_s: int = 0) -> Deferred[Row | None]:
        """Set cells of a row if those of `found` have these values: None, or all the cells of `found` as they are, which
        are None where there is no row. `ttl_s` is of the cells: the row itself may outlive them. Fails with `NotDone` or
        `Unanswered`."""

    def now(self) -> Deferred[float]:
        """The database's clock, UTC seconds. Fails with `NotDone`."""

    def close(self) -> Deferred[None]:
        """End the connections."""
