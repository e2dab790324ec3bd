"""The body scanner: finds the end of the content in the bytes that follow DATA, and tells whether it is clean.

*Rules*: the content ends at CRLF.CRLF and nowhere else, however the bytes are cut into packets (RFC 5321 4.1.1.4); the CRLF
before the dot belongs to the content. A bare CR, a bare LF or a NUL anywhere makes it unclean for good, and it is still
read to its true end: to take one of them for an end of line is what lets mail be smuggled past a server.
Content stays as on the wire, dot-stuffed, without the final dot line. Its size is that of the message, so the first dot of
each line that begins with one is counted apart (RFC 1870 3, RFC 5321 4.5.2): content minus `stuffed_dots`.

No piece ends with a CR that an LF may follow, so equal numbers of CR, LF and CRLF in each piece prove that none is bare:
three counts by C code, no line is ever looked at. Nor does any end within CRLF and a dot, so one search finds the end or a
stuffed dot, and only content that has one is counted.

*Not here*: what is done with the content, limits of its size, its header.
"""

from __future__ import annotations

END = b"\r\n.\r\n"
_DOT = b"\r\n."
_PREFIXES = (b"\r\n.\r", b"\r\n.", b"\r\n", b"\r")


class BodyScanner:
    """Scans one content. `end`: after `scan`, where in those bytes the content's end is over, or -1 if it goes on.

    `stuffed_dots`: bytes of the content so far that are no part of the message.
    """

    __slots__ = ("_foreign", "_held", "end", "is_clean", "stuffed_dots")

    def __init__(self) -> None:
        self.end = -1
        self.is_clean = True
        self.stuffed_dots = 0
        self._held = b"\r\n"  # what may be the beginning of the end: here the CRLF of the DATA command
        self._foreign = 2  # how many bytes of `_held` are not content

    def scan(self, data: bytes, position: int) -> bytes:
        """The next piece of content, from `position` on; may be empty. Not to be called once `end` is set."""
        held, skip = self._held, self._foreign
        if skip == 2 and len(held) == 2 and not data.startswith(b".", position):
            held, skip = b"", 0  # the usual start: no copy
        if held:
            buffer, start, shift = held + data[position:], skip, position - len(held)
        else:
            buffer, start, shift = data, position, 0
        found = dot = buffer.find(_DOT, start - skip)
        if dot >= 0 and not buffer.startswith(END, dot):
            found = buffer.find(END, dot)
        if found >= 0:
            self.end = found + len(END) + shift
            stop = found + 2
        else:
            stop = len(buffer)
            self._held = b""
            if buffer[-1:] in b"\r\n.":
                for prefix in _PREFIXES:
                    if buffer.endswith(prefix, start - skip):
                        self._held = prefix
                        stop -= len(prefix)
                        break
            self._foreign = max(0, start - stop)
        if dot != found:
            self.stuffed_dots += buffer.count(_DOT, dot, stop)
        piece = buffer[start:stop]
        if self.is_clean and piece:
            # `splitlines` of bytes ends lines at CR, LF and CRLF alone: each end must be a CRLF. Two counts cost more.
            ends = len(piece.splitlines()) - (piece[-1] not in b"\r\n")
            self.is_clean = ends == piece.count(b"\r\n") and b"\0" not in piece
        return piece
