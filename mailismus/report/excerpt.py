"""The excerpt: what a report returns of a message's content, and how it is encoded there (pure).

A message that fits is returned whole as `message/rfc822`. Of one that does not, its header and as many whole lines of its
body as there is room for, as `text/rfc822-headers`: RFC 6522 keeps `message/rfc822` for a message that is whole, and
readers take it at its word (a multipart cut in the middle, base64 that breaks off). The header comes whole up to
`HEADER_BYTES`, whatever the room: without Subject and Message-ID nobody knows which message failed.

*Rules*: no line of more than 998 bytes, no bare CR or LF and no NUL leaves here: content that has them, and cut content with
8-bit bytes, is encoded (quoted-printable). A whole message of 8-bit lines stays as it is (8bit).

*Not here*: the MIME structure around it (`compose`).

Contents may be large, and the reactor waits: whatever looks at a whole one takes time in proportion to its size alone.
"""

from __future__ import annotations

import binascii
import re

import attrs

from mailismus.smtp.header import MAX_HEADER as HEADER_BYTES

MAX_LINE = 998
"""Bytes of a line without its end (RFC 5322 2.1.1)."""
LARGEST = 10_000_000
"""Bytes of content that a report returns where no limit is set."""

_MESSAGE_ID = re.compile(rb"<[!#-'*+\-./0-9=?A-Z^-~]+@[!#-'*+\-./0-9=?A-Z\[\]:^-~]+>").fullmatch


@attrs.frozen
class Excerpt:
    """What is returned. `content` is as the sender wrote it (our trace field before it), dots unstuffed."""

    content: bytes
    size_bytes: int
    """Size of the whole message, without dot-stuffing."""
    is_whole: bool

    @property
    def is_mailable(self) -> bool:
        """Whether it may stand in a message as it is."""
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
        """The Message-ID, if it may be repeated in a header; otherwise `b""`."""
        value = self.field(b"Message-ID")
        return value if len(value) <= 250 and _MESSAGE_ID(value) else b""


def most_bytes(limit: int) -> int:
    """What `wanted_bytes` comes to at most: of three bytes of a message one more is stored where every line is a dot."""
    limit = limit or LARGEST
    return max(limit + limit // 3, HEADER_BYTES)


def wanted_bytes(size_bytes: int, stored_bytes: int, limit: int) -> int:
    """How much of a stored content `cut_out` has to see. `limit` 0: none but ours."""
    limit = limit or LARGEST
    return stored_bytes if size_bytes <= limit else max(limit, HEADER_BYTES)


def cut_out(stored: bytes, size_bytes: int, stored_bytes: int, limit: int) -> Excerpt:
    """What is returned of a message of `size_bytes` whose content takes up `stored_bytes`: `stored` is its beginning,
    `wanted_bytes` of it or more. `limit` counts without dot-stuffing, as `size_bytes` does."""
    limit = limit or LARGEST
    if size_bytes <= limit and len(stored) >= stored_bytes:
        return Excerpt(_unstuff(stored), size_bytes, True)
    content = _unstuff(stored[: wanted_bytes(size_bytes, stored_bytes, limit)])
    end = 0 if content.startswith(b"\r\n") else content.find(b"\r\n\r\n", 0, HEADER_BYTES) + 2
    if end < 2 and not content.startswith(b"\r\n"):  # no end in sight
        kept = _whole_lines(content[:HEADER_BYTES])
    else:
        kept = content[:end]
        if limit > end + 2:
            kept += b"\r\n" + _whole_lines(content[end + 2 : limit])
    return Excerpt(kept, size_bytes, False)


def _whole_lines(data: bytes) -> bytes:
    """Up to the last line's end; all of it where there is none."""
    end = data.rfind(b"\r\n")
    return data[: end + 2] if end >= 0 else data


def quote(content: bytes) -> bytes:
    """Quoted-printable (RFC 2045 6.7): line ends stay, whatever else is not plainly printable is encoded."""
    return b"\r\n".join(
        line and binascii.b2a_qp(line, quotetabs=False, istext=False).replace(b"\n", b"\r\n")
        for line in content.split(b"\r\n")
    )


def stuff(content: bytes) -> bytes:
    """As on the wire: a line that begins with a dot gets another (RFC 5321 4.5.2)."""
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    return b"." + stuffed if stuffed.startswith(b".") else stuffed


def _unstuff(stored: bytes) -> bytes:
    return stored.removeprefix(b".").replace(b"\r\n.", b"\r\n")
