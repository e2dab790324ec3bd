"""The body scanner: finds the end of the content in the bytes behind DATA, and tells whether the content is clean.

*Rules*: the content ends at CRLF.CRLF and nowhere else, however the bytes are cut into packets (RFC 5321 4.1.1.4). The CRLF
before the dot belongs to the content. A bare CR, a bare LF or a NUL makes the content unclean, and it is still read to its
true end: servers that take a bare CR or LF for the end of a line let mail be smuggled past them.
The content stays as on the wire: dot-stuffed, without the final dot line. Its size is that of the message, so the first dot
of each line that begins with one is counted apart (RFC 1870 3, RFC 5321 4.5.2): size = content - `stuffed_dots`.

No piece ends with a CR that an LF may follow. So a piece is clean if it has no NUL, and is the same after all CRs are
removed and one is put before each LF. No piece ends within CRLF and a dot either, so one search finds the end or the first
stuffed dot, and only content with a stuffed dot is counted. All that goes by single bytes, which C code finds ten times as
fast as two bytes together.

Methods of bytes that take a range (`find`, `startswith`) cost ten times as much as a comparison, so they stand where they
save one; `in` takes numbers, because bytes are first taken for one, and that error costs more than the search.

*Not here*: what is done with the content, limits of its size, its header.
"""

from __future__ import annotations

END = b"\r\n.\r\n"
_DOT = b"\r\n."
_FIRST_WINDOW = 512
"""Bytes behind a dot that are searched for CRLF and a dot; each further window is twice as large. That search costs three
instructions a byte, the way to the next dot almost nothing: content in base64 has none, most content has few."""
_PREFIXES = (b"\r\n", b"\r\n.", b"\r\n.\r", b"\r")
_LAST_BYTES = frozenset(b"\r\n.")


def _find_dot(buffer: bytes, begin: int) -> int:
    """Return where the first dot at the beginning of a line has its CRLF, from `begin` on; -1: there is none."""
    position, window = begin, _FIRST_WINDOW
    while True:
        dot = buffer.find(b".", position)
        if dot < 0:
            return -1
        found = buffer.find(_DOT, max(begin, dot - 2), dot + window)
        if found >= 0:
            return found
        position = dot + window - 2
        window *= 2


class BodyScanner:
    """Scans one content after another. `end`: after `scan`, the position in those bytes behind the end of the content;
    -1: it goes on.

    `is_clean`: whether the content is, so far; `stuffed_dots`: bytes of it that do not belong to the message.
    """

    __slots__ = ("_foreign", "_held", "end", "is_clean", "stuffed_dots")

    def __init__(self) -> None:
        self.end = -1
        self.is_clean = True
        self.stuffed_dots = 0
        self._held = b"\r\n"
        """Bytes that may begin the end of the content; at first the CRLF of the DATA command."""
        self._foreign = 2
        """How many bytes of `_held` are not content."""

    def begin(self) -> None:
        """Begin the next content."""
        self.end = -1
        self.is_clean = True
        self.stuffed_dots = 0
        self._held = b"\r\n"
        self._foreign = 2

    def scan(self, data: bytes, position: int) -> bytes:
        """Return the next piece of content, from `position` on; may be empty. Not to be called after `end` is set."""
        held, skip = self._held, self._foreign
        if not held or (skip == 2 and len(held) == 2 and data[position : position + 1] != b"."):
            buffer, begin, start, shift = data, position, position, 0  # the usual beginning: no copy
        elif not position and data == b".\r\n" and held == b"\r\n":  # the usual end: a packet of its own
            self.end = 3
            return held[skip:]
        else:
            buffer, begin, start, shift = held + data[position:], 0, skip, position - len(held)
        found = dot = _find_dot(buffer, begin)
        if dot >= 0 and buffer[dot : dot + 5] != END:
            found = buffer.find(END, dot)
        if found >= 0:
            self.end = found + 5 + shift
            stop = found + 2
        else:
            stop = len(buffer)
            self._held = b""
            if buffer and buffer[-1] in _LAST_BYTES:
                for prefix in _PREFIXES:
                    if buffer.endswith(prefix, begin):
                        self._held = prefix
                        stop -= len(prefix)
                        break
            self._foreign = start - stop if start > stop else 0
        if dot != found:
            self.stuffed_dots += buffer.count(_DOT, dot, stop)
        piece = buffer[start:stop]
        if self.is_clean and (0 in piece or piece.replace(b"\r", b"").replace(b"\n", b"\r\n") != piece):
            self.is_clean = False
        return piece
