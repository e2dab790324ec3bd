"""The words of CQL for each call of `IRows`, and the values as the driver takes and gives them. Pure.

A table comes with its full name, quoted: `full_name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from mailismus.queue.providers.distributed.stores.rows import Column, ColumnKind, Row, RowTable, Value, milliseconds

GRACE_S = 90 * 86400
"""How long the database keeps what says that something was removed. It drops batches that are older than this, unfinished:
so it is longer than a database is ever away."""
PASSING_GRACE_S = 86_400
"""The same of tables whose rows expire or are renewed: no batch has them, and what comes back of them expires again. Longer
than nodes keep for each other what one of them missed."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def full_name(keyspace: str, table: str) -> str:
    """The name of a table in a keyspace."""
    return f"{_quoted(keyspace)}.{_quoted(table)}"


SELECT_KEYSPACE = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?"
"""A keyspace, if it is there. Value: its name."""


SELECT_TABLES = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?"
"""The tables of a keyspace, none where it is not there. Value: its name."""


SELECT_NOW = "SELECT toTimestamp(now()) AS at FROM system.local"
"""The clock of the node that is asked."""


def create_table(table: RowTable) -> str:
    """Make it, if it is not there. Nothing in it expires by itself; leveled compaction frees what was removed."""
    columns = ", ".join(f"{_quoted(column.name)} {column.kind.value}" for column in table.columns)
    key = ", ".join([f"({_names(table.partition)})", *(_quoted(column.name) for column in table.order)])
    grace_s = PASSING_GRACE_S if table.is_passing else GRACE_S
    options = f"compaction = {{'class': 'LeveledCompactionStrategy'}} AND gc_grace_seconds = {grace_s}"
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}, PRIMARY KEY ({key})) WITH {options}"


def put(table: RowTable, cells: Sequence[str]) -> str:
    """Values: the key, the cells, seconds to live, microseconds of the write."""
    names = [_quoted(name) for name in (*(column.name for column in table.key), *cells)]
    marks = ", ".join("?" for _ in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) USING TTL ? AND TIMESTAMP ?"


def erase(table: RowTable) -> str:
    """Values: microseconds of the removal, the partition's key."""
    return f"DELETE FROM {table.name} USING TIMESTAMP ? WHERE {_conditions(table.partition)}"


def select_row(table: RowTable) -> str:
    """Values: the key."""
    return f"SELECT {_names(table.columns)} FROM {table.name} WHERE {_conditions(table.key)}"


def select_rows(table: RowTable, *, is_behind: bool) -> str:
    """Values: the partition's key, the place behind which they begin if `is_behind`, and how many."""
    place = f" AND ({_names(table.order)}) > ({', '.join('?' for _ in table.order)})" if is_behind else ""
    condition = f"{_conditions(table.partition)}{place}"
    return f"SELECT {_names(table.columns)} FROM {table.name} WHERE {condition} LIMIT ?"


def select_rows_under(table: RowTable, columns: int) -> str:
    """Values: so many columns of the key, and how many rows."""
    return f"SELECT {_names(table.columns)} FROM {table.name} WHERE {_conditions(table.key[:columns])} LIMIT ?"


def select_all(table: RowTable) -> str:
    """All rows."""
    return f"SELECT {_names(table.columns)} FROM {table.name}"


def add(table: RowTable, cells: Sequence[str]) -> str:
    """Values: the key, the cells, seconds to live."""
    names = [_quoted(name) for name in (*(column.name for column in table.key), *cells)]
    marks = ", ".join("?" for _ in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) IF NOT EXISTS USING TTL ?"


def change(table: RowTable, cells: Sequence[str], found: Sequence[str]) -> str:
    """Values: seconds to live, the cells, the key, what was found."""
    sets = ", ".join(f"{_quoted(name)} = ?" for name in cells)
    conditions = " AND ".join(f"{_quoted(name)} = ?" for name in found)
    return f"UPDATE {table.name} USING TTL ? SET {sets} WHERE {_conditions(table.key)} IF {conditions}"


def to_driver(column: Column, value: Value) -> object:
    """A value as the driver takes it."""
    if column.kind is ColumnKind.TIME and isinstance(value, int | float):
        return milliseconds(value)
    return value


def from_driver(column: Column, value: object) -> Value:
    """A value as the driver gives it. Its times have no zone, and are of UTC."""
    if isinstance(value, datetime):
        return seconds_of(value)
    return value  # type: ignore[return-value]  # the column says what it is


def seconds_of(time: datetime) -> float:
    """UTC seconds of a time as the driver gives it."""
    return round((time.replace(tzinfo=UTC) - _BEGIN) / timedelta(milliseconds=1)) / 1000


def row_of(table: RowTable, values: Mapping[str, object]) -> Row:
    """A row of the driver."""
    return {column.name: from_driver(column, values[column.name]) for column in table.columns}


def values_of(columns: Iterable[Column], values: Sequence[Value]) -> list[object]:
    """Values of columns, as the driver takes them."""
    return [to_driver(column, value) for column, value in zip(columns, values, strict=True)]


def cells_of(table: RowTable, cells: Row) -> tuple[tuple[str, ...], list[object]]:
    """Names and values of the cells that are set, in the table's order. None leaves a cell alone."""
    given = [column for column in table.cells if cells.get(column.name) is not None]
    unknown = cells.keys() - {column.name for column in table.cells}
    if unknown:
        raise ValueError(f"{table.name} has no cells {', '.join(sorted(unknown))}")
    return tuple(column.name for column in given), [to_driver(column, cells[column.name]) for column in given]


def microseconds(at: float) -> int:
    """A time as the database orders writes by it."""
    return round(at * 1_000_000)


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(_quoted(column.name) for column in columns)


def _conditions(columns: Iterable[Column]) -> str:
    return " AND ".join(f"{_quoted(column.name)} = ?" for column in columns)


def _quoted(name: str) -> str:
    """A name that may be a word of CQL."""
    return f'"{name}"'
