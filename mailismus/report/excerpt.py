"""The excerpt: the part of a message's content that a report returns, and its encoding there (pure).

A message that fits is returned whole as `message/rfc822`. Otherwise its header and as many whole lines of its body as fit
are returned as `text/rfc822-headers`: RFC 6522 reserves `message/rfc822` for a whole message, and mail readers rely on that
(they would see a multipart cut in the middle, or broken base64). The header is returned up to `HEADER_BYTES`, whatever the
limit: the sender needs Subject and Message-ID to know which message failed.

*Rules*: the result has no line of more than 998 bytes, no bare CR or LF, no NUL. Content that has them, and cut content with
8-bit bytes, is encoded (quoted-printable). A whole message of 8-bit lines stays as it is (8bit).

*Not here*: the MIME structure around it (`compose`).

Contents may be large and the reactor waits: code that reads a whole content takes time linear in its size.
"""

from __future__ import annotations

import binascii
import re

import attrs

from mailismus.smtp.header import MAX_HEADER as HEADER_BYTES

MAX_LINE = 998
"""Bytes of a line without its end (RFC 5322 2.1.1)."""
DEFAULT_LIMIT = 10_000_000
"""Limit of returned content, in bytes, if none is set."""

_MESSAGE_ID = re.compile(rb"<[!#-'*+\-./0-9=?A-Z^-~]+@[!#-'*+\-./0-9=?A-Z\[\]:^-~]+>").fullmatch


@attrs.frozen
class Excerpt:
    """The returned content, as the sender wrote it (after our trace field), dots unstuffed."""

    content: bytes
    size_bytes: int
    """Size of the whole message, without dot-stuffing."""
    is_whole: bool

    @property
    def is_mailable(self) -> bool:
        """Whether it may be part of a message without encoding."""
        content = self.content
        ends = content.count(b"\r\n")
        if content.count(b"\r") != ends or content.count(b"\n") != ends or b"\0" in content:
            return False
        return max(map(len, content.split(b"\r\n"))) <= MAX_LINE

    def field(self, name: bytes) -> bytes:
        """The value of the first header field of this name, unfolded; `b""` if there is none. Any bytes but CR and LF."""
        header = b"\r\n" + self.content.partition(b"\r\n\r\n")[0]
        found = re.search(rb"\r\n%b[ \t]*:((?:[^\r\n]|\r\n[ \t])*)" % re.escape(name), header, re.IGNORECASE)
        return found[1].replace(b"\r\n", b"").strip() if found else b""

    def message_id(self) -> bytes:
        """The Message-ID, if it is valid in a header; otherwise `b""`."""
        value = self.field(b"Message-ID")
        return value if len(value) <= 250 and _MESSAGE_ID(value) else b""


def max_stored_bytes(limit: int) -> int:
    """Upper limit of `wanted_bytes`: where every line is a dot, three bytes of a message are stored as four."""
    limit = limit or DEFAULT_LIMIT
    return max(limit + limit // 3, HEADER_BYTES)


def wanted_bytes(size_bytes: int, stored_bytes: int, limit: int) -> int:
    """How many bytes of a stored content `make_excerpt` needs. `limit` 0: our default limit."""
    limit = limit or DEFAULT_LIMIT
    return stored_bytes if size_bytes <= limit else max(limit, HEADER_BYTES)


def make_excerpt(stored: bytes, size_bytes: int, stored_bytes: int, limit: int) -> Excerpt:
    """The excerpt of a message of `size_bytes` with `stored_bytes` of content. `stored`: at least the first `wanted_bytes`
    of it. `limit` counts without dot-stuffing, as `size_bytes` does."""
    limit = limit or DEFAULT_LIMIT
    if size_bytes <= limit and len(stored) >= stored_bytes:
        return Excerpt(_unstuff(stored), size_bytes, True)
    content = _unstuff(stored[: wanted_bytes(size_bytes, stored_bytes, limit)])
    end = 0 if content.startswith(b"\r\n") else content.find(b"\r\n\r\n", 0, HEADER_BYTES) + 2
    if end < 2 and not content.startswith(b"\r\n"):  # the end of the header was not found
        kept = _whole_lines(content[:HEADER_BYTES])
    else:
        kept = content[:end]
        if limit > end + 2:
            kept += b"\r\n" + _whole_lines(content[end + 2 : limit])
    return Excerpt(kept, size_bytes, False)


def _whole_lines(data: bytes) -> bytes:
    """The data up to its last line end, or all of it if it has none."""
    end = data.rfind(b"\r\n")
    return data[: end + 2] if end >= 0 else data


def quote(content: bytes) -> bytes:
    """Encode as quoted-printable (RFC 2045 6.7): line ends stay, bytes that are not plainly printable are encoded."""
    return b"\r\n".join(
        line and binascii.b2a_qp(line, quotetabs=False, istext=False).replace(b"\n", b"\r\n")
        for line in content.split(b"\r\n")
    )


def stuff(content: bytes) -> bytes:
    """Dot-stuff: a line that begins with a dot gets another one (RFC 5321 4.5.2)."""
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    return b"." + stuffed if stuffed.startswith(b".") else stuffed


def _unstuff(stored: bytes) -> bytes:
    return stored.removeprefix(b".").replace(b"\r\n.", b"\r\n")
