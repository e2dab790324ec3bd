"""The header scan: counts the Received fields of a message and finds its Message-ID, piece by piece.

A message in a loop gets one Received field per round (RFC 5321 6.3). The Message-ID is for the log.

*Rules*: only the header counts, and of it the first `MAX_HEADER` bytes: new Received fields are added at the front. Of a
header in several pieces, at most `MOST_KEPT` bytes and one piece are kept; counted fields are discarded. Pieces are those of
`smtp.body`: none but the last ends with a CR.

*Not here*: parsing a header (RFC 5322), changing one.
"""

from __future__ import annotations

import re

MAX_HEADER = 65536
"""Bytes of the header that are scanned."""
MOST_KEPT = 4096
"""Bytes of an incomplete header that are kept for the next piece."""
MAX_MESSAGE_ID = 250
"""Bytes of a Message-ID that are kept."""
MAX_RECEIVED = 50
"""Received fields. A message with more is in a loop."""

_MESSAGE_ID = re.compile(rb"\nmessage-id[ \t]*:(?:[ \t]|\r\n[ \t])*([^\r\n]*)", re.I).match
_SHORTEST = len(b"\nReceived:") * (MAX_RECEIVED + 1)
_FIELD = re.compile(rb"\n(?=[^ \t])").finditer
_BEGINNING = 1024
"""Bytes kept of a field longer than `MOST_KEPT`: its name, and all of a Message-ID that is used."""


class HeaderScan:
    """Takes the pieces of one content after another, in order. `is_whole`: no further piece is needed."""

    __slots__ = ("_found", "_has_eightbit", "_header", "_received", "_seen", "is_whole")

    def __init__(self) -> None:
        self._header = b"\r\n"  # a line feed stands before the first field too
        self._found: bytes | None = None
        self._received = self._seen = 0
        self._has_eightbit = self.is_whole = False

    def begin(self) -> None:
        """Begin the next content."""
        self._header, self._found, self._received, self._seen, self.is_whole = b"\r\n", None, 0, 0, False
        self._has_eightbit = False

    def add(self, piece: bytes) -> None:
        """Scan the next piece."""
        if self.is_whole:
            return
        before = len(self._header)
        if before == 2:
            if piece[:2] == b"\r\n":  # no header
                self.is_whole = True
                return
            end = piece.find(b"\r\n\r\n", 0, MAX_HEADER + 4)
            if end >= 0:  # the usual case: the first piece has the whole header
                self._header = b"\r\n" + piece[: end + 2]
                self.is_whole = True
                return
        piece = piece[: MAX_HEADER - self._seen]
        self._seen += len(piece)
        self._header += piece
        end = self._header.find(b"\r\n\r\n", max(0, before - 3))
        if end >= 0:
            self._header = self._header[: end + 2]
        self.is_whole = end >= 0 or self._seen >= MAX_HEADER
        if len(self._header) > MOST_KEPT and not self.is_whole:
            self._discard_fields()

    def _discard_fields(self) -> None:
        """Count the complete fields and discard them. The last field may go on."""
        header = self._header
        self._has_eightbit = self._has_eightbit or not header.isascii()
        last = 0
        for found in _FIELD(header):
            last = found.start()
        fields, rest = header[: last + 1], header[last:]
        self._received += fields.lower().count(b"\nreceived:")
        if self._found is None:
            self._found = _find_message_id(fields)
        if len(rest) > MOST_KEPT:  # the middle is not needed; no line ends in its place
            rest = rest[:_BEGINNING].rstrip(b"\r\n") + b"-" + rest[-4:]
        self._header = rest

    def is_looping(self) -> bool:
        """Whether the header has more than `MAX_RECEIVED` Received fields."""
        header = self._header
        if not self._received and len(header) <= _SHORTEST:
            return False
        return self._received + header.lower().count(b"\nreceived:") > MAX_RECEIVED

    def has_eightbit(self) -> bool:
        """Whether the header has bytes above 127, or is too large to know."""
        return self._has_eightbit or self._seen >= MAX_HEADER or not self._header.isascii()

    def message_id(self) -> bytes:
        """Return the Message-ID as written, at most `MAX_MESSAGE_ID` bytes, any but CR and LF; `b""`: none."""
        identity = self._found
        if identity is None:
            identity = _find_message_id(self._header) or b""
        return identity[:MAX_MESSAGE_ID].rstrip(b" \t")


def _find_message_id(fields: bytes) -> bytes | None:
    """Return the first Message-ID of these fields; None: there is none."""
    lowered = fields.lower()  # a search for fixed bytes costs a tenth of one by the expression
    at = lowered.find(b"\nmessage-id")
    while at >= 0:
        found = _MESSAGE_ID(fields, at)
        if found is not None:
            return found[1]
        at = lowered.find(b"\nmessage-id", at + 1)
    return None
