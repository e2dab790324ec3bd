"""What the audit is told of entries."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action
from mailismus.queue.audited import audited, audited_bounce
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.outcome.disposition import Disposition

ENTRY = Entry(3, b"b@dst.example", Area.BOUNCES, 50.0, 4, Reply(550, b"5.1.1", b"no"), b"mx[192.0.2.2]:25")
MESSAGE = Message(SpoolId(7), b"a@src.example", b"192.0.2.1", False, 10.0, 100, 3, [ENTRY])


def test_a_delivery_is_told_with_its_own_reply_and_attempts() -> None:
    reply = Reply(250, b"", b"Ok")
    told = audited(Action.RELAYED, MESSAGE, ENTRY, MESSAGE.received_at, reply, b"x[192.0.2.9]:25", Disposition.SENT, 5)
    assert (told.spool_id, told.number, told.recipient, told.client) == (7, 3, b"b@dst.example", b"192.0.2.1")
    assert (told.reply, told.host, told.status, told.attempts, told.received_at) == (
        reply,
        b"x[192.0.2.9]:25",
        "sent",
        5,
        10,
    )


@pytest.mark.parametrize(
    ("reply", "status"), [(Reply(550, b"", b"no"), "bounced"), (Reply(451, b"", b"later"), "expired"), (None, "bounced")]
)
def test_a_bounce_is_told_with_its_last_reply(reply: Reply | None, status: str) -> None:
    entry = Entry(3, b"b@dst.example", Area.BOUNCES, 50.0, 4, reply, b"mx[192.0.2.2]:25")
    told = audited_bounce(Action.REPORTED, MESSAGE, entry, SpoolId(9))
    assert (told.reply, told.status, told.attempts, told.report) == (reply, status, 4, 9)
