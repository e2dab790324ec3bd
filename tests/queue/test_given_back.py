"""Entries that were given back, where the clock is set back meanwhile: by less than a minute nobody notices that."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.entries import DueMessage
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Area, Entry, Message

NOW, SET_BACK_S = 1000.0, 5.0
AREA = Area.INCOMING


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_was_due_by_the_clock_of_before_is_handed_out_at_its_time(*, is_asked: bool) -> None:
    """`is_asked`: first when the next entry is due."""
    index: DueIndex[DueMessage] = DueIndex()
    entry = Entry(1, b"r@d.example", AREA, NOW)
    known = DueMessage(Message(SpoolId(7), b"s@d.example", b"-", False, NOW, 10, 1, [entry]))
    known.entries = {1: entry}
    index.add(known, NOW)
    assert len(index.take(AREA, 1, NOW, None)) == 1
    index.give_back([QueueId(SpoolId(7), 1)], NOW - SET_BACK_S + 1)
    if is_asked:
        assert index.next_due(AREA) == NOW
    assert index.take(AREA, 1, NOW - 0.5, None) == []
    assert len(index.take(AREA, 1, NOW, None)) == 1
    assert entry.due_at == NOW
