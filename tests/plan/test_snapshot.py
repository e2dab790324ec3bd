"""Snapshots: what is kept, what is left out, and the times of the virtual clock."""

from __future__ import annotations

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.plan.clock import STARTS_AT
from mailismus.plan.snapshot import read_snapshot
from mailismus.queue.interface import Area, Entry, Message

UTC = 1_800_000_000.0


def message(number: int, *entries: Entry) -> Message:
    return Message(SpoolId(number), b"s@a.example", b"-", False, UTC - 100, 10, len(entries), list(entries))


def entry(number: int, due_s: float, area: Area = Area.DEFERRED) -> Entry:
    return Entry(number, b"u%d@b.example" % number, area, UTC + due_s)


def nothing(_: int) -> None:
    """Nobody looks."""


def test_times_are_those_of_the_virtual_clock() -> None:
    found = read_snapshot([message(1, entry(1, 60.0), entry(2, -5.0))], lambda: UTC, 10, None, nothing)
    (one,) = found.messages
    assert one.received_at == STARTS_AT - 100
    assert [waiting.due_at for waiting in one.entries] == [STARTS_AT + 60, STARTS_AT - 5]
    assert (found.entries, found.left_out, found.shift_s, found.wanted) == (2, 0, UTC - STARTS_AT, None)


def test_what_waits_for_no_delivery_is_counted() -> None:
    mail = [message(1, entry(1, 0.0, Area.HELD)), message(2, entry(1, 0.0, Area.BOUNCES), entry(2, 0.0, Area.INCOMING))]
    found = read_snapshot(mail, lambda: UTC, 10, None, nothing)
    assert (found.entries, found.others[Area.HELD], found.others[Area.BOUNCES]) == (1, 1, 1)


def test_beyond_the_limit_what_is_due_first_is_kept() -> None:
    mail = [message(number, entry(1, 100.0 - number)) for number in range(1, 51)]
    found = read_snapshot(mail, lambda: UTC, 10, lambda one, waiting: True, nothing)
    assert [one.spool_id for one in found.messages] == list(range(50, 40, -1))
    assert (found.entries, found.left_out) == (10, 40)
    assert found.wanted == frozenset({QueueId(SpoolId(number), 1) for number in range(41, 51)})


def test_a_message_that_comes_in_parts_is_one() -> None:
    whole = message(1, entry(1, 0.0), entry(2, 0.0))
    parts = [attrs.evolve(whole, entries=[one]) for one in whole.entries]
    found = read_snapshot([*parts, parts[0]], lambda: UTC, 10, None, nothing)
    (one,) = found.messages
    assert [waiting.number for waiting in one.entries] == [1, 2]


def test_progress_is_told() -> None:
    heard: list[int] = []
    read_snapshot([message(number, entry(1, 0.0)) for number in range(2500)], lambda: UTC, 10, None, heard.append)
    assert heard[-1] == 2500
    assert 2 <= len(heard) <= 5
