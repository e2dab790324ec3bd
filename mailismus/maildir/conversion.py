"""The conversion of content for a maildir file: lines end in LF, dots are unstuffed (RFC 5321 4.5.2). Pure.

*Rules*: the input is content as on the wire, without the final dot, cut anywhere. The first dot of a line that begins with
one is dropped, CRLF becomes LF, every other byte stays. A last line without a line end gets none.
"""

from __future__ import annotations


class Conversion:
    """The conversion of one message, piece by piece. Holds back at most one byte."""

    __slots__ = ("_at_line_start", "_held")

    def __init__(self) -> None:
        self._at_line_start = True
        self._held = b""

    def convert(self, piece: bytes) -> bytes:
        """Convert the next piece."""
        data = self._held + piece if self._held else piece
        self._held = b""
        if not data:
            return b""
        if self._at_line_start and data.startswith(b"."):
            data = data[1:]
            if not data:
                self._at_line_start = False
                return b""
        self._at_line_start = data.endswith(b"\r\n")
        if data.endswith(b"\r"):
            data, self._held = data[:-1], b"\r"
        return data.replace(b"\r\n.", b"\r\n").replace(b"\r\n", b"\n")

    def finish(self) -> bytes:
        """Return the byte held back; call once, at the end."""
        held, self._held = self._held, b""
        return held
