"""All entries by message, whatever the order in which they were found, and with little memory."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest

from mailismus.disk.posix import PosixDisk
from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.queue.convert import sorting
from mailismus.queue.convert.sorting import SortedEntries
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.provider import StoredPart


def message(number: int, *entries: Entry) -> Message:
    return Message(SpoolId((1 << 32) + number), b"s", b"-", False, 1000.5, 100, 1000, list(entries))


def entry(number: int, area: Area = Area.DEFERRED) -> Entry:
    return Entry(number, b"r%d@d.example" % number, area, 2000.25)


@pytest.mark.parametrize("piece_entries", [7, 100_000])
def test_entries_come_by_message_and_number(piece_entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "PIECE_ENTRIES", piece_entries)
    monkeypatch.setattr(sorting, "WINDOW", 333)
    keys = [(spool, number) for spool in range(30) for number in (1, 2, 10, 999)]
    random.Random(5).shuffle(keys)
    entries = SortedEntries(PosixDisk(), str(tmp_path))
    for spool, number in keys:
        entries.add(StoredPart(message(spool, entry(number, tuple(Area)[number % len(Area)])), b"%d:x" % spool))
    assert entries.entries == 120
    for _ in range(2):
        found = list(entries.messages())
        assert [part.message.spool_id - (1 << 32) for part in found] == list(range(30))
        assert all([one.number for one in part.message.entries] == [1, 2, 10, 999] for part in found)
        assert [part.content_at for part in found] == [b"%d:x" % spool for spool in range(30)]
    assert len(list(tmp_path.iterdir())) == (17 if piece_entries == 7 else 0)


def test_an_entry_that_is_there_twice_is_damage(tmp_path: Path) -> None:
    entries = SortedEntries(PosixDisk(), str(tmp_path))
    for _ in range(2):
        entries.add(StoredPart(message(3, entry(2))))
    with pytest.raises(Corrupt, match="0000000100000003-2 is there twice"):
        list(entries.messages())


def test_facts_that_contradict_each_other_are_damage(tmp_path: Path) -> None:
    entries = SortedEntries(PosixDisk(), str(tmp_path))
    entries.add(StoredPart(message(3, entry(1))))
    entries.add(StoredPart(attrs.evolve(message(3, entry(2)), sender=b"another")))
    with pytest.raises(Corrupt, match="different messages"):
        list(entries.messages())
