"""Composing a report: multipart/report of a notice, a delivery status and an excerpt of the message (RFC 6522; pure).

*Rules*: a report is 7-bit, unless it returns a whole message with 8-bit lines, or its recipient is in UTF-8 (RFC 6533).
Every line ends in CRLF and has at most 998 bytes. The header contains no bytes that others chose, except addresses and a
Message-ID that passed their grammars. The boundary is random and occurs nowhere inside.

*Not here*: queues, files, the recipient of a report (`task`).
Source: RFC 3461 to 3464, 3834 (Auto-Submitted), 5322, 6522.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from email.header import Header

import attrs

from mailismus.mail.ids import SpoolId, spool_name
from mailismus.mail.utf8 import HEADER_WORDS, has_utf8_header, to_ascii_address
from mailismus.observe.text import plain
from mailismus.queue.interface import Message
from mailismus.report.delivery_status import write_delivery_status
from mailismus.report.excerpt import Excerpt, quote, stuff
from mailismus.report.notice import safe_address, write_notice
from mailismus.smtp.trace import date_time

CRLF = b"\r\n"
MAX_SUBJECT = 100
"""Characters of the message's own subject that are shown."""
STEP_LINES = 200
"""Lines made in one step, some milliseconds. An ordinary report has fewer, one of a thousand recipients 20,000."""


@attrs.frozen
class Origin:
    """The source of reports: this host's name, the address for answers, the subject of every report."""

    host: bytes
    address: bytes
    subject: str


@attrs.frozen
class Report:
    """A report as it enters the queue: content as on the wire, with `stuffed_dots` bytes of dot-stuffing."""

    content: bytes
    message_id: bytes
    is_eightbit: bool
    stuffed_dots: int
    recipient: bytes
    """The address of the message's sender, in ASCII if it has such a form."""
    words: bytes | None
    """The words of the report's envelope."""

    @property
    def size_bytes(self) -> int:
        """Size of the report as a message."""
        return len(self.content) - self.stuffed_dots


def compose(
    origin: Origin, spool_id: SpoolId, message: Message, excerpt: Excerpt | None, now: int, random: Callable[[int], bytes]
) -> Report:
    """Compose the report of all entries of `message`. `spool_id`: the report's own. `excerpt` None: the content is lost.
    `now`: UTC seconds. `random(n)` returns n random bytes."""
    return next(filter(None, compose_in_steps(origin, spool_id, message, excerpt, now, random)))


def compose_in_steps(
    origin: Origin, spool_id: SpoolId, message: Message, excerpt: Excerpt | None, now: int, random: Callable[[int], bytes]
) -> Iterator[Report | None]:
    """As `compose`, but yields None after each `STEP_LINES` lines, so that other work can run; the report comes last."""
    date = date_time(now)
    message_id = b"<%d.%b@%b>" % (now, spool_name(spool_id), origin.host)
    notice: list[bytes] = []
    yield from _encode_lines(
        write_notice(origin.host, origin.address, message, spool_id, _own_subject(excerpt), _describe_returned(excerpt)),
        notice,
    )
    status: list[bytes] = []
    yield from _encode_lines(write_delivery_status(origin.host, message), status)
    parts = [
        _notice_part(b"".join(notice)),
        _part(b"Delivery status", b"message/delivery-status", b"".join(status)),
    ]
    is_eightbit = False
    if excerpt is not None and excerpt.content:
        parts.append(_returned_part(excerpt, has_utf8_header(message.words)))
        is_eightbit = excerpt.is_whole and excerpt.is_mailable and not excerpt.content.isascii()
    boundary = _choose_boundary(parts, random)
    delimiter = b"--" + boundary
    recipient = to_ascii_address(message.sender) or message.sender
    to = safe_address(recipient).encode("utf-8")
    header = [
        b"Received: by %b id %b;\r\n\t%b" % (origin.host, spool_name(spool_id), date),
        b"Date: " + date,
        b"From: Mail Delivery System <%b>" % origin.address,
        b"To: <%b>" % to,
        b"Subject: " + _encode_subject(origin.subject),
        b"Message-ID: " + message_id,
        b"Auto-Submitted: auto-replied",
        b"MIME-Version: 1.0",
        b'Content-Type: multipart/report; report-type=delivery-status;\r\n\tboundary="%b"' % boundary,
    ]
    if is_eightbit:
        header.append(b"Content-Transfer-Encoding: 8bit")
    original_id = excerpt.message_id() if excerpt is not None else b""
    if original_id:
        header += [b"In-Reply-To: " + original_id, b"References: " + original_id]
    body = [b"This is a report of failed delivery in MIME format.\r\n"]
    for part in parts:
        body += [delimiter, part]
    content = CRLF.join([*header, b"", *body, delimiter + b"--", b""])
    stuffed = stuff(content)
    words = None if to.isascii() else HEADER_WORDS
    yield Report(stuffed, message_id, not stuffed.isascii(), len(stuffed) - len(content), recipient, words)


def _part(description: bytes, content_type: bytes, content: bytes, encoding: bytes = b"") -> bytes:
    header = [b"Content-Description: " + description, b"Content-Type: " + content_type]
    if encoding:
        header.append(b"Content-Transfer-Encoding: " + encoding)
    return CRLF.join([*header, b"", content])


def _notice_part(notice: bytes) -> bytes:
    if notice.isascii():
        return _part(b"Notification", b"text/plain; charset=us-ascii", notice)
    return _part(b"Notification", b"text/plain; charset=utf-8", quote(notice), b"quoted-printable")


def _returned_part(excerpt: Excerpt, is_utf8: bool) -> bytes:
    """`is_utf8`: whether the message was declared with a header in UTF-8 (RFC 6532, RFC 6533 4)."""
    content = excerpt.content
    if excerpt.is_whole and excerpt.is_mailable:
        kind = b"message/global" if is_utf8 else b"message/rfc822"
        return _part(b"Undelivered message", kind, content, b"" if content.isascii() else b"8bit")
    description = b"Undelivered message" if excerpt.is_whole else b"Undelivered message, its beginning"
    kind = b"message/global-headers" if is_utf8 else b"text/rfc822-headers; charset=" + _charset_of(content)
    if excerpt.is_mailable and content.isascii():
        return _part(description, kind, content)
    return _part(description, kind, quote(content), b"quoted-printable")


def _charset_of(content: bytes) -> bytes:
    if content.isascii():
        return b"us-ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return b"iso-8859-1"  # the charset is unknown: this one gives every byte a character
    return b"utf-8"


def _describe_returned(excerpt: Excerpt | None) -> str:
    if excerpt is None:
        return "The message can't be returned: what this server stored of it can't be read any more."
    if excerpt.is_whole:
        return "The whole message is returned with this report."
    return (
        f"Only the beginning of the message is returned with this report: {len(excerpt.content)} of its "
        f"{excerpt.size_bytes} bytes."
    )


def _own_subject(excerpt: Excerpt | None) -> str:
    """The message's subject, if it is plain text that needs no escaping."""
    subject = excerpt.field(b"Subject") if excerpt is not None else b""
    text = plain(subject).decode("ascii")
    if text.encode("ascii") != subject or "=?" in text:
        return ""
    return text if len(text) <= MAX_SUBJECT else text[:MAX_SUBJECT] + "..."


def _encode_subject(text: str) -> bytes:
    charset = "us-ascii" if text.isascii() else "utf-8"
    return Header(text, charset, header_name="Subject").encode(linesep="\r\n").encode("ascii")


def _choose_boundary(parts: list[bytes], random: Callable[[int], bytes]) -> bytes:
    while True:
        boundary = b"=_" + random(15).hex().encode("ascii")
        if not any(boundary in part for part in parts):
            return boundary


def _encode_lines(lines: Iterable[str], encoded: list[bytes]) -> Iterator[None]:
    for count, line in enumerate(lines, 1):
        encoded.append(line.encode("utf-8") + CRLF)
        if count % STEP_LINES == 0:
            yield
