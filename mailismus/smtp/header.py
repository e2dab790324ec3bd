"""The header scan: the two things that reception wants to know of a message's header, found as its pieces come.

How many Received fields it has (a message that goes in circles gets one in each round, RFC 5321 6.3), and its Message-ID for
the log.

*Rules*: only the header counts, and of it the first `MAX_HEADER` bytes: what a loop adds stands in front. No byte is looked
at twice. Pieces are those of `smtp.body`: none but the last ends with a CR.

*Not here*: understanding a header (RFC 5322); changing one.
"""

from __future__ import annotations

import re

MAX_HEADER = 65536
"""Bytes of header that are looked at, and kept until it is whole."""
MAX_MESSAGE_ID = 250
"""Bytes of a Message-ID that are kept."""
MAX_RECEIVED = 50
"""Received fields; a message with more is in a loop."""

_MESSAGE_ID = re.compile(rb"\nmessage-id[ \t]*:(?:[ \t]|\r\n[ \t])*([^\r\n]*)", re.I).search
_SHORTEST = len(b"\nReceived:") * (MAX_RECEIVED + 1)


class HeaderScan:
    """Takes the pieces of one content, in order; `is_whole` once nothing more is wanted."""

    __slots__ = ("_header", "is_whole")

    def __init__(self) -> None:
        self._header = b"\r\n"  # so that a line feed stands before the first field too
        self.is_whole = False

    def add(self, piece: bytes) -> None:
        """The next piece."""
        if self.is_whole:
            return
        before = len(self._header)
        if before == 2:
            end = piece.find(b"\r\n\r\n")
            if piece.startswith(b"\r\n"):  # no header
                self.is_whole = True
                return
            if 0 <= end <= MAX_HEADER:  # the usual case: all of it in the first piece
                self._header += piece[: end + 2]
                self.is_whole = True
                return
        self._header += piece[: MAX_HEADER - before]
        end = self._header.find(b"\r\n\r\n", max(0, before - 3))
        if end >= 0:
            self._header = self._header[: end + 2]
        self.is_whole = end >= 0 or len(self._header) >= MAX_HEADER

    def is_looping(self) -> bool:
        """Whether there are more than `MAX_RECEIVED` Received fields."""
        header = self._header
        return len(header) > _SHORTEST and header.lower().count(b"\nreceived:") > MAX_RECEIVED

    def message_id(self) -> bytes:
        """The Message-ID as it stands there, at most `MAX_MESSAGE_ID` bytes, any but CR and LF; `b""` if there is none."""
        found = _MESSAGE_ID(self._header)
        return found[1][:MAX_MESSAGE_ID].rstrip(b" \t") if found else b""
