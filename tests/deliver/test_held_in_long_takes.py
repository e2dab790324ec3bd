"""Shares in a take that lasts: entries are freed meanwhile, and senders asked about again before it has ended."""

from __future__ import annotations

import pytest

from mailismus.deliver.jobs.held import HeldEntries
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message

SENDER = b"a@b.example"


def messages(count: int) -> list[Message]:
    return [
        Message(SpoolId(n), SENDER, b"-", False, 1.0, 100, 1, [Entry(1, b"c@d.example", Area.DEFERRED, 1.0)])
        for n in range(count)
    ]


@pytest.mark.parametrize("wanted", [50, 1000])
def test_a_sender_that_is_passed_over_once_more_is_asked_about_again(wanted: int) -> None:
    asked: list[None] = []
    held = HeldEntries(lambda: asked.append(None))
    held.set_limit(100)
    held.add(messages(90))
    shares = held.begin_take(10)
    assert shares is not None
    shares.room_for(SENDER, wanted)
    assert shares.is_passed_over
    held.free(SENDER, 2)
    assert len(asked) == 1
    shares.room_for(SENDER, 1000)  # the same take, after a piece of the log was read
    held.end_take(10, shares)
    held.free(SENDER, 88)
    assert len(asked) == 2
