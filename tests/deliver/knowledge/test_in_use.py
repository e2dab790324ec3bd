"""Records in use: which of them are kept."""

from __future__ import annotations

from mailismus.deliver.knowledge.in_use import InUse


class Record:
    def __init__(self) -> None:
        self.is_used = False

    def take_turn(self) -> None:
        self.is_used = False

    def use(self) -> None:
        self.is_used = True


def test_a_record_is_made_when_it_is_asked_for() -> None:
    records: InUse[str, Record] = InUse(Record, 2)
    assert records.get("a") is None
    assert records["a"] is records["a"]
    assert list(records) == ["a"]


def test_what_is_in_use_is_kept() -> None:
    records: InUse[int, Record] = InUse(Record, 3)
    for number in range(100):
        records[0].use()
        records[number]
        assert len(records) <= 3
    assert 0 in records
    assert 99 in records


def test_without_a_use_the_first_goes() -> None:
    records: InUse[int, Record] = InUse(Record, 3)
    for number in range(10):
        records[number]
    assert list(records) == [7, 8, 9]


def test_where_all_are_used_the_first_goes() -> None:
    records: InUse[int, Record] = InUse(Record, 3)
    for number in range(10):
        records[number].use()
    assert list(records) == [7, 8, 9]
