"""The id table: does what a dict does, in little memory, wherever ids fall together."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mailismus.spool import idtable
from mailismus.spool.idtable import MAX_COUNT, IdTable

EPOCH = 1 << 32
TOP = (1 << 64) - 1
INVERSE = pow(0x9E37_79B9_7F4A_7C15, -1, 1 << 64)


def falling_on(spread: int) -> int:
    """The id whose hash is this."""
    return spread * INVERSE & TOP


def two_epochs(count: int) -> list[int]:
    """Consecutive ids of two epochs in turn."""
    return [(7 + number % 2) * EPOCH + number // 2 + 1 for number in range(count)]


def longest_run(table: IdTable) -> int:
    """The longest stretch of slots without a free one: what the worst probe may cost."""
    longest = 0
    for counts in table._counts:
        run = 0
        for count in [*counts, *counts]:
            run = run + 1 if count else 0
            longest = max(longest, run)
    return longest


class TableMachine(RuleBasedStateMachine):
    """A table against a dict. Ids fall into few slots of few sub-tables, so that they meet and wrap around."""

    @initialize()
    def begin(self) -> None:
        self.table = IdTable()
        self.model: dict[int, int] = {}

    ids = st.one_of(
        st.builds(
            lambda table, top, low: falling_on(table << 56 | top << 48 | low),
            st.sampled_from([0, 255]),
            st.sampled_from([0, 1, 0x7F, 0xFE, 0xFF]),
            st.integers(0, 12),
        ),
        st.sampled_from([0, 1, TOP]),
    )

    @rule(identity=ids, count=st.integers(1, MAX_COUNT))
    def put(self, identity: int, count: int) -> None:
        self.table.put(identity, count)
        self.model[identity] = count

    @rule(identity=ids)
    def remove(self, identity: int) -> None:
        assert self.table.remove(identity) == self.model.pop(identity, 0)

    @rule(identity=ids)
    def get(self, identity: int) -> None:
        assert self.table.get(identity) == self.model.get(identity, 0)

    @rule()
    def remove_most(self) -> None:
        for identity in list(self.model)[2:]:
            assert self.table.remove(identity) == self.model.pop(identity)

    @invariant()
    def holds_what_the_dict_holds(self) -> None:
        assert len(self.table) == len(self.model)
        assert {identity: self.table.get(identity) for identity in self.table} == self.model


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(max_examples=30, stateful_step_count=60, deadline=None)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, TOP), unique=True, max_size=300), st.data())
def test_what_is_left_is_found_after_any_removals(ids: list[int], data: st.DataObject) -> None:
    table = IdTable()
    for identity in ids:
        table.put(identity, identity % MAX_COUNT + 1)
    gone = set(data.draw(st.lists(st.sampled_from(ids)))) if ids else set()
    for identity in gone:
        assert table.remove(identity) == identity % MAX_COUNT + 1
    assert [table.get(identity) for identity in ids] == [0 if each in gone else each % MAX_COUNT + 1 for each in ids]
    assert set(table) == set(ids) - gone


@pytest.mark.parametrize("count", [0, -1, MAX_COUNT + 1])
def test_a_count_out_of_range_is_refused_and_changes_nothing(count: int) -> None:
    table = IdTable()
    table.put(5, MAX_COUNT)
    with pytest.raises(ValueError, match="a count is 1 to"):
        table.put(5, count)
    assert (table.get(5), len(table)) == (MAX_COUNT, 1)


def test_removing_leaves_no_tombstones() -> None:
    table = IdTable()
    alive = two_epochs(5_000)
    for identity in alive:
        table.put(identity, 1)
    size_before = table.size_bytes
    for number in range(20_000):
        table.remove(alive[number % 5_000])
        alive[number % 5_000] = 9 * EPOCH + number
        table.put(9 * EPOCH + number, 1)
    assert len(table) == 5_000
    assert table.size_bytes <= size_before * 1.3
    assert longest_run(table) < 60


def test_memory_is_given_back_when_the_ids_are_gone() -> None:
    table = IdTable()
    empty_bytes = table.size_bytes
    for identity in two_epochs(50_000):
        table.put(identity, 1)
    assert table.size_bytes > 10 * empty_bytes
    for identity in two_epochs(50_000):
        table.remove(identity)
    assert table.size_bytes == empty_bytes


PATTERNS: dict[str, Callable[[int], int]] = {
    "consecutive": lambda number: EPOCH + number,
    "consecutive across two epochs": lambda number: (7 + number % 2) * EPOCH + number // 2,
    "five epochs": lambda number: (7 + number % 5) * EPOCH + number // 5,
    "first of each of 30,000 epochs": lambda number: (number + 1) * EPOCH + 1,
    "every second": lambda number: EPOCH + 2 * number,
    "one silo": lambda number: EPOCH + 32 * number,
    "every 256th": lambda number: EPOCH + 256 * number,
    "every thousandth": lambda number: EPOCH + 1_000 * number,
    "every 65,536th": lambda number: EPOCH + 65_536 * number,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_ids_of_a_pattern_spread(name: str) -> None:
    table = IdTable()
    for number in range(30_000):
        table.put(PATTERNS[name](number), 1)
    fullest = max(table._used)
    assert fullest < 3 * 30_000 / 256
    assert longest_run(table) < 100


def test_no_call_copies_more_than_one_sub_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    plain = idtable._ids

    def counted(slots: int) -> object:
        made.append(slots)
        return plain(slots)

    table = IdTable()
    monkeypatch.setattr(idtable, "_ids", counted)
    for identity in two_epochs(60_000):
        before = len(made)
        table.put(identity, 1)
        assert len(made) - before <= 1
    assert max(made) <= 4 * 60_000 / 256


@pytest.mark.parametrize("count", [250_000, 1_000_000])
def test_an_id_takes_at_most_32_bytes(count: int) -> None:
    """The arrays, by their own size; speed is printed, not judged."""
    table = IdTable()
    ids = two_epochs(count)
    put = table.put
    began = time.perf_counter()
    for identity in ids:
        put(identity, 3)
    put_ns = (time.perf_counter() - began) / count * 1e9
    get = table.get
    sample = ids[:: count // 50_000]
    began = time.perf_counter()
    for identity in sample:
        get(identity)
    get_ns = (time.perf_counter() - began) / len(sample) * 1e9
    remove = table.remove
    size_bytes = table.size_bytes
    began = time.perf_counter()
    for identity in sample:
        remove(identity)
    remove_ns = (time.perf_counter() - began) / len(sample) * 1e9
    print(
        f"{count} ids: {size_bytes / count:.1f} bytes an id; put {put_ns:.0f} ns, get {get_ns:.0f}, remove {remove_ns:.0f}"
    )
    assert size_bytes <= 32 * count


def test_an_id_takes_at_most_32_bytes_of_the_interpreters_memory_at_its_peak() -> None:
    """All that the interpreter allocates for it, at the worst fill (just after all sub-tables grew)."""
    count = 108_000
    tracemalloc.start()
    try:
        table = IdTable()
        for number in range(count):
            table.put(EPOCH + number, 3)
        now_bytes, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"{count} ids: {now_bytes / count:.1f} bytes an id, {peak_bytes / count:.1f} at the peak")
    assert peak_bytes <= 32 * count
