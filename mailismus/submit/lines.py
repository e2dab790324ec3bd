"""A message as a program writes it becomes content as on the wire: CRLF at each line's end, dot-stuffed, the final dot.

*Rules*: a line ends with LF or CRLF, and both may come in one message. A CR that ends no line stays, and is refused as it is
over SMTP. The last line need not have an end.
"""

from __future__ import annotations

import re

_BARE_LF = re.compile(rb"(?<!\r)\n").sub
_DOT = re.compile(rb"\n\.").sub


class WireLines:
    """One message. Memory: what one call brings, twice."""

    def __init__(self) -> None:
        self._begins_line = True
        self._held = b""
        """A CR at the end of what came: the next byte says whether it ends a line."""

    def add(self, data: bytes) -> bytes:
        """Return the next bytes of content."""
        data = self._held + data
        self._held = b""
        if data.endswith(b"\r"):
            data, self._held = data[:-1], b"\r"
        if not data:
            return b""
        wire = _DOT(b"\n..", _BARE_LF(b"\r\n", data))
        if self._begins_line and wire.startswith(b"."):
            wire = b"." + wire
        self._begins_line = wire.endswith(b"\n")
        return wire

    def end(self) -> bytes:
        """Return what follows the last byte: the end of its line, and the line of the final dot."""
        held, self._held = self._held, b""
        return held + (b"" if self._begins_line and not held else b"\r\n") + b".\r\n"
