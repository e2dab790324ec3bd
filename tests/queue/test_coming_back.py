"""Entries that are out, and that an act waits for."""

from __future__ import annotations

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.coming_back import ComingBack
from mailismus.queue.interface import Area, Entry, Message, Settlement

MESSAGE = Message(SpoolId(1), b"a@b.example", b"192.0.2.1", False, 0.0, 10, 3, [])
IDS = [QueueId(SpoolId(1), number) for number in (1, 2, 3)]


class Holding:
    """An act that holds all but bounces."""

    def __init__(self) -> None:
        self.told: list[tuple[int, bool]] = []

    def settlement_of(self, message: Message, entry: Entry) -> Settlement | None:
        if entry.area is Area.BOUNCES:
            return None
        return Settlement(QueueId(message.spool_id, entry.number), Area.HELD, 99.0, entry.attempts)

    def came_back(self, message: Message, entry: Entry, settlement: Settlement | None) -> None:
        self.told.append((entry.number, settlement is not None))


def entry(number: int) -> Entry:
    return Entry(number, b"c@d.example", Area.INCOMING, 0.0)


def test_the_act_s_settlement_takes_the_place_of_the_outcome_s() -> None:
    awaited, act = ComingBack(), Holding()
    awaited.expect(IDS, act)
    assert (len(awaited), awaited.count(act)) == (3, 3)
    later = Settlement(IDS[0], Area.DEFERRED, 5.0, 1)
    assert awaited.settled(MESSAGE, entry(1), later) == Settlement(IDS[0], Area.HELD, 99.0, 1)
    bounce = Settlement(IDS[1], Area.BOUNCES, 5.0, 1)
    assert awaited.settled(MESSAGE, entry(2), bounce) is bounce
    awaited.delivered(MESSAGE, [entry(3)])
    assert act.told == [(1, True), (2, False), (3, False)]
    assert (len(awaited), awaited.count(act)) == (0, 0)
    assert awaited.settled(MESSAGE, entry(1), later) is later


def test_what_comes_back_untried_is_given_back_or_settled() -> None:
    awaited, act = ComingBack(), Holding()
    awaited.expect(IDS[:1], act)
    left, settlements = awaited.given_back(MESSAGE, [entry(1), entry(2)])
    assert [one.number for one in left] == [2]
    assert [one.area for one in settlements] == [Area.HELD]


def test_an_entry_has_one_act_the_newest() -> None:
    awaited, older, newer = ComingBack(), Holding(), Holding()
    awaited.expect(IDS, older)
    awaited.expect(IDS[:2], newer)
    assert (awaited.count(older), awaited.count(newer)) == (1, 2)
    awaited.forget(newer)
    assert (len(awaited), awaited.count(older), awaited.count(newer)) == (1, 1, 0)
