"""The words of CQL: what every statement is for the table of the conformance suite."""

from __future__ import annotations

from datetime import datetime

import attrs
import pytest

from mailismus.queue.providers.distributed.format.tables import CLAIMS, DELETED, DUE, ENQUEUED, MAILS, SERVERS, TABLES
from mailismus.queue.providers.distributed.stores.cassandra import statements
from mailismus.queue.providers.distributed.stores.rows import Column, ColumnKind, RowTable

TABLE = RowTable(
    statements.full_name("k", "t"),
    (Column("area", ColumnKind.TEXT), Column("number", ColumnKind.SMALL), Column("due_at", ColumnKind.TIME)),
    key_size=1,
    order_size=1,
)


def test_nothing_of_a_table_expires_by_itself() -> None:
    text = statements.create_table(TABLE)
    assert 'PRIMARY KEY (("area"), "number")' in text
    assert "gc_grace_seconds = 7776000" in text
    assert "LeveledCompactionStrategy" in text
    assert "default_time_to_live" not in text


def test_what_expires_or_is_renewed_is_freed_a_day_later() -> None:
    assert "gc_grace_seconds = 86400" in statements.create_table(attrs.evolve(TABLE, is_passing=True))
    batched = {table.name for table in (ENQUEUED, DELETED, MAILS, DUE)}
    passing = {table.name for table in TABLES if table.is_passing}
    assert {CLAIMS.name, SERVERS.name} <= passing
    assert not batched & passing


def test_statements_name_columns_in_the_order_of_their_values() -> None:
    assert statements.put(TABLE, ("due_at",)) == (
        'INSERT INTO "k"."t" ("area", "number", "due_at") VALUES (?, ?, ?) USING TTL ? AND TIMESTAMP ?'
    )
    assert statements.erase(TABLE) == 'DELETE FROM "k"."t" USING TIMESTAMP ? WHERE "area" = ?'
    assert statements.select_rows(TABLE, is_behind=True).endswith('WHERE "area" = ? AND ("number") > (?) LIMIT ?')
    assert statements.select_rows_under(TABLE, 2).endswith('WHERE "area" = ? AND "number" = ? LIMIT ?')
    assert statements.change(TABLE, ("due_at",), ("due_at",)) == (
        'UPDATE "k"."t" USING TTL ? SET "due_at" = ? WHERE "area" = ? AND "number" = ? IF "due_at" = ?'
    )


@pytest.mark.parametrize(("at", "kept"), [(1.0009, 1000), (1.0, 1000), (1_800_000_000.123, 1_800_000_000_123), (-0.5, -500)])
def test_no_time_is_rounded_up(at: float, kept: int) -> None:
    assert statements.to_driver(TABLE.columns[2], at) == kept


def test_a_time_of_the_driver_is_utc() -> None:
    assert statements.seconds_of(datetime(2026, 11, 28, 1, 0, 0, 123000)) == 1795827600.123


def test_a_cell_that_is_none_is_left_alone() -> None:
    assert statements.cells_of(TABLE, {"due_at": None}) == ((), [])
    assert statements.cells_of(TABLE, {"due_at": 2.0}) == (("due_at",), [2000])
    with pytest.raises(ValueError, match="has no cells other"):
        statements.cells_of(TABLE, {"other": 1})
