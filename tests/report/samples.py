"""Messages with bounces, and reports of them read back, for the tests of reporting."""

from __future__ import annotations

import email
import email.policy
import itertools
from email.message import EmailMessage
from email.message import Message as OldMessage
from typing import cast

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.report.compose import Origin, Report, compose
from mailismus.report.excerpt import Excerpt, make_excerpt

ORIGIN = Origin(b"mx.example.net", b"postmaster@example.net", "Delivery Failure Report")
ARRIVED, FAILED = 1_795_249_893.25, 1_795_249_953.5
NOW = 1_795_250_000
REPORT_ID = SpoolId(0x0000000100000007)
NO_USER = Reply(550, b"5.1.1", b"no such mailbox")
HOST = b"mx.far.example[192.0.2.1]:25"
CONTENT = (
    b"Received: from client.example.com ([192.0.2.9])\r\n\tby mx.example.net with ESMTP id 0000000100000003;\r\n"
    b"\tSat, 21 Nov 2026 08:31:33 +0000\r\n"
    b"From: bob@example.org\r\nSubject: hello\r\nMessage-ID: <1@client.example.com>\r\n\r\n"
    b"The first line.\r\n..a line that began with a dot\r\nThe last line.\r\n"
)


def bounce(
    number: int = 1,
    recipient: bytes = b"nobody@far.example",
    reply: Reply | None = NO_USER,
    host: bytes = HOST,
    *,
    attempts: int = 1,
    at: float = FAILED,
    words: bytes | None = None,
) -> Entry:
    """An entry that failed."""
    return Entry(number, recipient, Area.BOUNCES, at, attempts, reply, host, words)


def message(*entries: Entry, sender: bytes = b"bob@example.org", of: int = 0, size: int = len(CONTENT)) -> Message:
    """A message with these bounces, `of` so many recipients."""
    spool_id = SpoolId(0x0000000100000003)
    return Message(spool_id, sender, b"192.0.2.9", False, ARRIVED, size, of or len(entries), list(entries))


_numbers = itertools.count(1)


def random(size: int) -> bytes:
    """Not random at all, but never the same."""
    return next(_numbers).to_bytes(size, "big")


def report_of(failed: Message, content: bytes | None = CONTENT, limit: int = 4000) -> Report:
    """Its report; `content` as stored, None: it is lost."""
    excerpt: Excerpt | None = None if content is None else make_excerpt(content, len(content), len(content), limit)
    return compose(ORIGIN, REPORT_ID, failed, excerpt, NOW, random)


def unstuffed(content: bytes) -> bytes:
    """As it arrives, what SMTP adds taken away."""
    return b"".join(line[line.startswith(b".") :] for line in content.splitlines(keepends=True))


def parsed(report: Report, policy: email.policy.EmailPolicy[EmailMessage] = email.policy.SMTP) -> EmailMessage:
    """Read by Python's own parser, without a complaint."""
    found = email.message_from_bytes(unstuffed(report.content), policy=policy)
    for part in found.walk():
        assert not part.defects, part.defects
    return found


def parts_of(found: EmailMessage) -> list[EmailMessage]:
    """Its parts, two or three."""
    assert found.get_content_type() == "multipart/report"
    return cast("list[EmailMessage]", found.get_payload())


def blocks_of(part: EmailMessage) -> list[OldMessage]:
    """The blocks of a delivery status: that of the message, then those of its recipients."""
    assert part.get_content_type() == "message/delivery-status"
    return cast("list[OldMessage]", part.get_payload())


def notice_of(report: Report) -> str:
    """The first part's text, its lines joined where they were wrapped."""
    part = parts_of(parsed(report))[0]
    assert part.get_content_type() == "text/plain"
    return " ".join(str(part.get_content()).split())
