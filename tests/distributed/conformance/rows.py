"""What `IRows` promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import gatherResults

from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rows import Column, ColumnKind, Erase, IRows, Put, RowTable, Value
from tests.distributed.conformance.harness import RowsHarness

ENTRIES = RowTable(
    "entries",
    (
        Column("area", ColumnKind.TEXT),
        Column("slice", ColumnKind.TIME),
        Column("share", ColumnKind.ID),
        Column("number", ColumnKind.SMALL),
        Column("recipient", ColumnKind.BYTES),
        Column("size", ColumnKind.NUMBER),
        Column("name", ColumnKind.TEXT),
        Column("due_at", ColumnKind.TIME),
    ),
    key_size=2,
    order_size=2,
)
MARKS = RowTable("marks", (*ENTRIES.columns[:4], Column("done_at", ColumnKind.TIME)), key_size=2, order_size=2)
LEASES = RowTable("leases", (Column("name", ColumnKind.TEXT), Column("owner", ColumnKind.NUMBER)), key_size=1)

T = 1_790_000_000.0
"""A time of writes."""
SLICE = 1_789_999_200.0
ONE, TWO = UUID(int=1), UUID(int=2)
PART = ("incoming", SLICE)


def put(number: int, at: float = T, share: UUID = ONE, **cells: Value) -> Put:
    return Put(ENTRIES, (*PART, share, number), cells, at)


class RowsContract:
    """A test class makes a subclass with a fixture `harness`."""

    @pytest.fixture(autouse=True)
    def _ends(self, harness: RowsHarness) -> Iterator[None]:
        yield
        harness.close()

    @pytest.fixture
    def rows(self, harness: RowsHarness) -> IRows:
        client = harness.client()
        harness.wait(client.make([ENTRIES, MARKS, LEASES]))
        return client

    def test_missing_tables_are_told(self, harness: RowsHarness, rows: IRows) -> None:
        absent = RowTable("absent", LEASES.columns, key_size=1)
        assert harness.wait(rows.missing([ENTRIES, absent, LEASES])) == ["absent"]

    def recipients(self, harness: RowsHarness, rows: IRows) -> list[object]:
        return [row["recipient"] for row in harness.wait(rows.rows(ENTRIES, PART))]

    def test_tables_are_made_once(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(1, recipient=b"a")]))
        harness.wait(rows.make([ENTRIES, MARKS, LEASES]))
        assert self.recipients(harness, rows) == [b"a"]

    def test_a_row_is_read_as_it_was_put(self, harness: RowsHarness, rows: IRows) -> None:
        cells: dict[str, Any] = {
            "recipient": bytes(range(256)),
            "size": 2**63 - 1,
            "name": "ä\N{SNOWMAN}\x01",
            "due_at": 1_800_000_000.123,
        }
        harness.wait(rows.write([put(3, **cells)]))
        key = {"area": "incoming", "slice": SLICE, "share": ONE, "number": 3}
        assert harness.wait(rows.row(ENTRIES, (*PART, ONE, 3))) == {**key, **cells}

    def test_small_and_early_values_are_kept(self, harness: RowsHarness, rows: IRows) -> None:
        cells: dict[str, Any] = {"recipient": b"", "size": -(2**63), "name": "", "due_at": -86_400.5}
        harness.wait(rows.write([Put(ENTRIES, ("", 0.0, UUID(int=0), -1), cells, T)]))
        found = harness.wait(rows.row(ENTRIES, ("", 0.0, UUID(int=0), -1)))
        assert found == {"area": "", "slice": 0.0, "share": UUID(int=0), "number": -1, **cells}

    def test_the_time_of_a_far_year_is_kept(self, harness: RowsHarness, rows: IRows) -> None:
        far = T + 291 * 365.25 * 86_400
        harness.wait(rows.write([put(1, due_at=far)]))
        found = harness.wait(rows.row(ENTRIES, (*PART, ONE, 1)))
        assert found is not None
        assert found["due_at"] == pytest.approx(far, abs=0.001)

    def test_what_is_not_there_is_none(self, harness: RowsHarness, rows: IRows) -> None:
        assert harness.wait(rows.row(ENTRIES, (*PART, ONE, 1))) is None
        assert harness.wait(rows.rows(ENTRIES, PART)) == []
        assert harness.wait(rows.all_rows(LEASES)) == []
        harness.wait(rows.write([put(1)]))
        found = harness.wait(rows.row(ENTRIES, (*PART, ONE, 1)))
        assert found is not None
        assert [found[name] for name in ("recipient", "size", "name", "due_at")] == [None] * 4

    def test_cells_that_a_put_does_not_name_stay(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(1, recipient=b"a", size=1)]))
        harness.wait(rows.write([put(1, T + 1, size=2)]))
        found = harness.wait(rows.row(ENTRIES, (*PART, ONE, 1)))
        assert found is not None
        assert (found["recipient"], found["size"]) == (b"a", 2)

    def test_a_cell_that_the_table_does_not_have_is_an_error(self, harness: RowsHarness, rows: IRows) -> None:
        with pytest.raises(ValueError, match="sise"):
            harness.wait(rows.write([put(1, sise=1)]))

    @pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 0, 1)])
    def test_the_later_of_two_puts_counts_in_any_order(
        self, order: tuple[int, ...], harness: RowsHarness, rows: IRows
    ) -> None:
        writes = [put(1, T, recipient=b"early", size=1), put(1, T + 0.000001, recipient=b"a later")]
        for place in order:
            harness.wait(rows.write([writes[place]]))
        found = harness.wait(rows.row(ENTRIES, (*PART, ONE, 1)))
        assert found is not None
        assert (found["recipient"], found["size"]) == (b"a later", 1)

    def test_of_the_same_time_the_greater_value_counts(self, harness: RowsHarness, rows: IRows) -> None:
        for values in ([b"b", b"a"], [b"a", b"c"]):
            for value in values:
                harness.wait(rows.write([put(1, recipient=value)]))
        assert self.recipients(harness, rows) == [b"c"]

    def test_rows_come_in_their_order_page_by_page(self, harness: RowsHarness, rows: IRows) -> None:
        places = [(ONE, -1), (ONE, 0), (ONE, 2), (ONE, 10), (TWO, 0), (TWO, 1)]
        harness.wait(rows.write([put(number, share=share) for share, number in reversed(places)]))
        found: list[tuple[UUID, int]] = []
        while True:
            page = harness.wait(rows.rows(ENTRIES, PART, found[-1] if found else None, 2))
            if not page:
                break
            assert len(page) <= 2
            found += [(row["share"], row["number"]) for row in page]  # type: ignore[misc]
        assert found == places

    def test_rows_under_a_place_are_those_whose_key_begins_so(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(number, share=share) for share in (ONE, TWO) for number in (3, 1, 2)]))
        harness.wait(rows.write([Put(ENTRIES, ("deferred", SLICE, ONE, 4), {}, T)]))
        for share in (ONE, TWO):
            found = harness.wait(rows.rows_under(ENTRIES, (*PART, share)))
            assert [(row["share"], row["number"]) for row in found] == [(share, 1), (share, 2), (share, 3)]
        assert [row["number"] for row in harness.wait(rows.rows_under(ENTRIES, (*PART, ONE), 2))] == [1, 2]
        assert harness.wait(rows.rows_under(ENTRIES, (*PART, UUID(int=3)))) == []

    def test_partitions_are_apart(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(1, recipient=b"a"), Put(ENTRIES, ("deferred", SLICE, ONE, 1), {"recipient": b"b"}, T)]))
        assert self.recipients(harness, rows) == [b"a"]
        assert len(harness.wait(rows.rows(ENTRIES, ("deferred", SLICE)))) == 1
        assert harness.wait(rows.rows(ENTRIES, ("deferred", SLICE + 1))) == []

    def test_a_share_of_five_hundred_is_one_write(self, harness: RowsHarness, rows: IRows) -> None:
        share = [put(number, recipient=b"user%d@example.net" % number) for number in range(501)]
        harness.wait(rows.write(share))
        assert len(harness.wait(rows.rows(ENTRIES, PART))) == 501

    def test_a_write_may_concern_several_tables(self, harness: RowsHarness, rows: IRows) -> None:
        mark = Put(MARKS, (*PART, ONE, 1), {"done_at": T}, T)
        harness.wait(rows.write([put(1, recipient=b"a"), mark, Put(ENTRIES, ("deferred", SLICE, TWO, 1), {}, T)]))
        assert self.recipients(harness, rows) == [b"a"]
        assert len(harness.wait(rows.rows(MARKS, PART))) == 1
        assert len(harness.wait(rows.rows(ENTRIES, ("deferred", SLICE)))) == 1

    def test_a_write_of_nothing_is_done(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([]))

    def test_an_erasure_takes_what_is_earlier_whenever_it_arrives(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(1, T, recipient=b"1"), put(2, T + 10, recipient=b"2"), put(3, T + 11, recipient=b"3")]))
        harness.wait(rows.write([Erase(ENTRIES, PART, T + 10)]))
        assert self.recipients(harness, rows) == [b"3"]
        harness.wait(rows.write([put(1, T, recipient=b"1"), put(4, T + 5, recipient=b"4")]))
        assert self.recipients(harness, rows) == [b"3"]
        harness.wait(rows.write([put(4, T + 12, recipient=b"5")]))
        assert self.recipients(harness, rows) == [b"3", b"5"]

    def test_only_one_adds_a_row(self, harness: RowsHarness, rows: IRows) -> None:
        other = harness.client()
        assert harness.wait(rows.add(LEASES, ("a",), {"owner": 1})) is None
        assert harness.wait(other.add(LEASES, ("a",), {"owner": 2})) == {"name": "a", "owner": 1}
        assert harness.wait(rows.add(LEASES, ("b",), {"owner": 2})) is None

    def test_of_many_who_add_at_once_one_wins(self, harness: RowsHarness, rows: IRows) -> None:
        clients = [rows, harness.client()]
        adds = [clients[number % 2].add(LEASES, ("a",), {"owner": number}) for number in range(8)]
        answers = harness.wait(gatherResults(adds))
        assert answers.count(None) == 1
        winner = answers.index(None)
        assert all(answer is None or answer["owner"] == winner for answer in answers)

    def test_a_change_needs_what_was_found(self, harness: RowsHarness, rows: IRows) -> None:
        assert harness.wait(rows.change(LEASES, ("a",), {"owner": 1}, {"owner": 0})) == {"owner": None}
        assert harness.wait(rows.row(LEASES, ("a",))) is None
        harness.wait(rows.add(LEASES, ("a",), {"owner": 0}))
        assert harness.wait(rows.change(LEASES, ("a",), {"owner": 1}, {"owner": 0})) is None
        assert harness.wait(rows.change(LEASES, ("a",), {"owner": 2}, {"owner": 0})) == {"owner": 1}
        assert harness.wait(rows.row(LEASES, ("a",))) == {"name": "a", "owner": 1}

    def test_what_has_a_time_to_live_goes(self, harness: RowsHarness, rows: IRows) -> None:
        assert harness.wait(rows.add(LEASES, ("a",), {"owner": 1}, ttl_s=2)) is None
        harness.wait(rows.write([Put(LEASES, ("b",), {"owner": 2}, T, ttl_s=2), Put(LEASES, ("c",), {"owner": 3}, T)]))
        assert harness.wait(rows.add(LEASES, ("d",), {"owner": 1}, ttl_s=100)) is None
        assert harness.wait(rows.change(LEASES, ("d",), {"owner": 0}, {"owner": 1}, ttl_s=2)) is None
        assert {row["name"] for row in harness.wait(rows.all_rows(LEASES))} == {"a", "b", "c", "d"}
        harness.pass_time(3.5)
        left = {row["name"]: row["owner"] for row in harness.wait(rows.all_rows(LEASES))}
        assert left == {"c": 3, "d": None}  # a row lives as long as it was made for, whatever becomes of its cells
        assert harness.wait(rows.add(LEASES, ("a",), {"owner": 4})) is None

    def test_another_client_reads_what_was_written(self, harness: RowsHarness, rows: IRows) -> None:
        harness.wait(rows.write([put(1, recipient=b"a")]))
        assert self.recipients(harness, harness.client()) == [b"a"]

    def test_the_clock_goes_on(self, harness: RowsHarness, rows: IRows) -> None:
        before = harness.wait(rows.now())
        harness.pass_time(0.5)
        assert harness.wait(rows.now()) >= before + 0.4

    def test_a_table_that_is_not_there_is_not_done(self, harness: RowsHarness, rows: IRows) -> None:
        absent = RowTable("absent", LEASES.columns, key_size=1)
        with pytest.raises(NotDone):
            harness.wait(rows.write([Put(absent, ("a",), {"owner": 1}, T)]))
        with pytest.raises(NotDone):
            harness.wait(rows.row(absent, ("a",)))
