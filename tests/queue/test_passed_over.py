"""Senders that were passed over in a take (`queue.due`): what is looked at, in which order, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unittest.mock import patch

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.due import entries as module
from mailismus.queue.due.entries import DueMessage
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Area, Entry, Message
from tests.fakes.shares import Most

BIG, SMALL = b"big@b.example", b"small@b.example"
NOW = 1000.0
AREA = Area.INCOMING


class Watched(list[Entry]):
    """Entries of a message, and how many of them were looked at."""

    looked = 0

    def __getitem__(self, at: object) -> Entry:  # type: ignore[override]  # one at a time
        self.looked += 1
        return super().__getitem__(at)  # type: ignore[call-overload, no-any-return]  # as above

    def __iter__(self) -> Iterator[Entry]:
        self.looked += len(self)
        return super().__iter__()


class Desk:
    """An index, and messages for it."""

    def __init__(self) -> None:
        self.index: DueIndex[DueMessage] = DueIndex()
        self.last = 0

    def put(self, sender: bytes, count: int = 1) -> DueMessage:
        self.last += 1
        entries = Watched(Entry(number, b"r@d.example", AREA, NOW) for number in range(1, count + 1))
        known = DueMessage(Message(SpoolId(self.last), sender, b"-", False, NOW, 10, count, entries))
        known.entries = {entry.number: entry for entry in entries}
        self.index.add_new(known, AREA, entries, NOW)
        entries.looked = 0
        return known

    def take(self, most: int | None = None, limit: int = 100) -> dict[int, int]:
        """How many entries come of each message."""
        shares = None if most is None else Most(most)
        return {message.spool_id: len(message.entries) for message in self.index.take(AREA, limit, NOW, shares)}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_great_many_entries_of_a_sender_that_is_passed_over_are_not_looked_at(desk: Desk) -> None:
    entries = desk.put(BIG, 100_000).message.entries
    assert isinstance(entries, Watched)
    assert desk.take(200, limit=500) == {1: 200}
    for number in range(2, 102):
        desk.put(SMALL)
        assert desk.take(200, limit=500) == {number: 1}
    assert entries.looked == 200
    desk.index.room_again()
    assert desk.take(50, limit=500) == {1: 50}
    assert entries.looked == 250


def test_messages_of_a_sender_take_turns(desk: Desk) -> None:
    desk.put(BIG, 1000)
    assert desk.take(50) == {1: 50}
    desk.put(BIG, 1000)
    desk.put(BIG)
    assert desk.take(50) == {}
    found = []
    for _ in range(5):
        desk.index.room_again()
        found.append(desk.take(20))
    assert found == [{1: 20}, {2: 20}, {3: 1, 1: 19}, {2: 20}, {1: 20}]


def test_a_message_that_got_nothing_stays_first(desk: Desk) -> None:
    desk.put(BIG, 10)
    desk.put(BIG, 10)
    assert desk.take(0) == {}
    desk.index.room_again()
    assert desk.take(0) == {}
    desk.index.room_again()
    assert desk.take(5) == {1: 5}


def test_neither_starve_the_others_the_senders_with_room_again_and_those_behind(desk: Desk) -> None:
    desk.put(BIG, 1000)
    assert desk.take(0) == {}
    for _ in range(100):
        desk.put(SMALL)
    desk.index.room_again()
    for _ in range(3):
        taken = desk.take(1000, limit=20)
        assert taken.pop(1) == 10
        assert len(taken) == 10


def test_senders_with_room_again_take_turns_where_the_take_ends_early(desk: Desk) -> None:
    for sender in (BIG, SMALL, b"other"):
        desk.put(sender, 100)
    assert desk.take(0) == {}
    desk.index.room_again()
    assert [desk.take(1000, limit=20) for _ in range(4)] == [{1: 20}, {2: 20}, {3: 20}, {1: 20}]
    assert [desk.take(limit=20) for _ in range(4)] == [{2: 20}, {3: 20}, {1: 20}, {2: 20}]


def test_a_take_of_nothing_gives_nothing(desk: Desk) -> None:
    desk.put(BIG, 10)
    assert desk.take(0) == {}
    desk.put(SMALL)
    desk.index.room_again()
    assert desk.take(10, limit=0) == desk.take(limit=0) == {}
    assert desk.take(10) == {1: 10, 2: 1}


def test_a_take_moves_no_more_messages_than_it_has_time_for(desk: Desk) -> None:
    with patch.object(module, "MOST_PASSED", 10):
        for _ in range(25):
            desk.put(BIG)
        small = desk.put(SMALL).message.spool_id
        assert desk.take(1) == {1: 1}
        assert desk.index.has_ready(AREA)
        assert desk.take(1) == {}
        assert desk.take(1) == {small: 1}
    assert not desk.index.has_ready(AREA)


def test_what_has_gone_is_forgotten(desk: Desk) -> None:
    """Messages that move to clusters, or end, while their sender is passed over take no memory."""
    gone = [desk.put(BIG) for _ in range(100)]
    left = desk.put(BIG, 2)
    assert desk.take(0) == {}
    for known in gone[:50]:
        desk.index.end(known, [1])
    for known in gone[50:]:
        desk.index.move(known, 1)
    area = desk.index._areas[AREA]
    assert list(area.by_id) == [left.message.spool_id]
    assert [list(line) for line in area.passed_over.lines.values()] == [[left.message.spool_id]]
    desk.index.move(left, 1)
    desk.index.end(left, [2])
    assert not area.by_id
    assert not area.passed_over.lines
    assert not desk.index.room_again()
    assert not desk.index.has_ready(AREA)


def test_a_message_that_comes_again_is_taken_once(desk: Desk) -> None:
    known = desk.put(BIG, 3)
    assert desk.take(1) == {1: 1}
    for number in (1, 2, 3):
        desk.index.move(known, number)
    again = DueMessage(known.message)
    again.entries = {}
    desk.index.add(again, NOW)
    desk.index.put(again, Entry(7, b"r@d.example", AREA, NOW), NOW)
    desk.index.room_again()
    assert desk.take(5) == {1: 1}
    assert desk.take() == {}


def test_a_message_of_which_there_is_more_than_the_take_has_room_for_is_told_as_cut(desk: Desk) -> None:
    desk.put(SMALL, 3)
    desk.put(BIG, 20)
    shares = Most(5)
    desk.index.take(AREA, 10, NOW, shares)
    assert shares.asked == [(SMALL, 3), (BIG, 7)]
    assert shares.cut == [7]
    desk.index.room_again()
    shares = Most(100)
    desk.index.take(AREA, 10, NOW, shares)
    desk.index.take(AREA, 10, NOW, shares)
    assert shares.asked == [(BIG, 10), (BIG, 5)]
    assert shares.cut == [10]


class Last(Most):
    """Asks about the sender first that was passed over last."""

    def in_order(self, senders: Iterable[bytes]) -> Sequence[bytes]:
        return list(senders)[::-1]


def test_the_shares_tell_who_of_the_passed_over_is_asked_about_first(desk: Desk) -> None:
    for sender in (b"a", b"b", b"c"):
        desk.put(sender, 2)
    desk.take(0)
    desk.index.room_again()
    shares = Last(2)
    desk.index.take(AREA, 4, NOW, shares)
    assert shares.asked == [(b"c", 2), (b"b", 2)]
