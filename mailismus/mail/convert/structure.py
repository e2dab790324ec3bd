"""The structure of a message: its content, without dot-stuffing, to headers, bodies and the lines between them, in pieces.

All that is handed on, in its order, is the content, byte for byte. A part ends at a delimiter line of any multipart around
it (RFC 2046 5.1.2), so a missing end costs nothing; the CRLF before a delimiter line belongs to the line.

*Rules*: memory is bounded by `MAX_HEADER`. What the parts are does not depend on how the content is cut into pieces.

*Not here*: what a header says (`fields`).
"""

from __future__ import annotations

import re
from typing import Protocol

from mailismus.mail.convert.fields import MAX_BOUNDARY, Header, Kind, parse_header
from mailismus.mail.convert.refusal import refuse

MAX_HEADER = 262144
"""Bytes of the header of a message or part."""
MAX_PARTS = 1000
"""Headers in one message: of itself, of its parts, of messages in it."""
MAX_DEPTH = 50
"""Multiparts and messages around a part."""

_MAX_PADDING = 100
_MAX_DELIMITER = MAX_BOUNDARY + _MAX_PADDING + 8
_BEGINNINGS = (b"\r\n-", b"\r\n", b"\r")
_LINES = re.compile(rb"\r\n--([^\r\n]{0,%d}[^\r\n\t ])[ \t]{0,%d}(?=\r\n|\Z)" % (MAX_BOUNDARY + 2, _MAX_PADDING)).finditer
"""Lines that may be delimiter lines. One pattern for all messages: to compile one of the boundaries would cost milliseconds
for each multipart."""


class PartHandler(Protocol):
    """Takes what stands in a message, in its order."""

    def on_header(self, header: Header) -> None:
        """A header; the body of the part follows."""

    def on_body(self, data: bytes) -> None:
        """The next bytes of the body of a part that has no parts."""

    def on_body_end(self) -> None:
        """The body is complete. Called once for each part that has no parts."""

    def on_between(self, data: bytes) -> None:
        """Delimiter lines, and what stands before the first and behind the last of a multipart."""


class Structure:
    """Reads one message for one handler. `feed` and `end` raise `NotConvertible`."""

    __slots__ = ("_buffer", "_depth", "_done", "_in_header", "_is_leaf", "_open", "_parts", "_rank", "_types")

    def __init__(self) -> None:
        self._buffer = b"\r\n"  # a line end stands before the first line too
        self._done = 2
        """Bytes of the buffer that were handed on."""
        self._in_header = True
        self._is_leaf = False
        """Whether a body that is no multipart is read."""
        self._open: list[tuple[bytes, int]] = []
        """Boundaries of the multiparts around this place, outermost first, and the depth of each."""
        self._types = ["text/plain"]
        """The default type of a part at each depth (RFC 2046 5.1.5)."""
        self._parts = self._depth = 0
        self._rank: dict[bytes, int] = {}
        """The places of the boundaries in `_open`."""

    def feed(self, data: bytes, handler: PartHandler) -> None:
        """Take the next bytes."""
        self._buffer += data
        self._read(handler, is_end=False)

    def end(self, handler: PartHandler) -> None:
        """The content is complete."""
        self._read(handler, is_end=True)
        if self._in_header:
            raise refuse(b"it ends within a header")
        if self._is_leaf:
            handler.on_body_end()

    def _read(self, handler: PartHandler, *, is_end: bool) -> None:
        while self._read_header(handler) if self._in_header else self._read_body(handler, is_end=is_end):
            pass

    # -- headers

    def _read_header(self, handler: PartHandler) -> bool:
        """Read a header. False: its end has not come yet."""
        buffer, done = self._buffer, self._done
        blank = buffer.find(b"\r\n\r\n", done - 2)
        end = blank + 4 if blank >= 0 else len(buffer)
        if end - done > MAX_HEADER:
            raise refuse(b"a header is larger than %d bytes" % MAX_HEADER)
        if blank < 0:
            return False
        if self._rank and self._find(buffer, done - 2, end) is not None:
            raise refuse(b"a part ends within its header")
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise refuse(b"it has more than %d parts" % MAX_PARTS)
        default = self._types[-1]
        is_of_message = self._parts == 1 or self._types[-1] == ""
        header = parse_header(buffer[done:end], default or "text/plain", is_of_message=is_of_message)
        self._buffer, self._done = buffer[end - 2 :], 2
        self._enter(header)
        handler.on_header(header)
        return True

    def _enter(self, header: Header) -> None:
        kind = header.kind
        self._is_leaf = kind is Kind.LEAF or kind is Kind.SEALED
        self._in_header = kind is Kind.MESSAGE
        if self._is_leaf:
            return
        if len(self._types) > MAX_DEPTH:
            raise refuse(b"its parts are nested more than %d deep" % MAX_DEPTH)
        if kind is Kind.MESSAGE:
            self._types.append("")
            return
        if header.boundary in self._rank:
            raise refuse(b"two multiparts within each other have the same boundary")
        self._open.append((header.boundary, len(self._types)))
        self._types.append("message/rfc822" if header.media_type == "multipart/digest" else "text/plain")
        self._rank[header.boundary] = len(self._rank)

    def _find(self, buffer: bytes, start: int, end: int) -> tuple[re.Match[bytes], bytes, bool] | None:
        """The first delimiter line: with the CRLF before it, its boundary, and whether it is the last of its multipart."""
        rank = self._rank
        for found in _LINES(buffer, start, end):
            text = found[1]
            first = rank.get(text)
            last = rank.get(text[:-2]) if text.endswith(b"--") else None
            if last is not None and (first is None or last < first):  # of two readings that of the outer multipart counts
                return found, text[:-2], True
            if first is not None:
                return found, text, False
        return None

    # -- bodies, and what stands between them

    def _read_body(self, handler: PartHandler, *, is_end: bool) -> bool:
        """Read up to the next delimiter line. False: none has come yet."""
        buffer, done = self._buffer, self._done
        stop = len(buffer)
        if self._rank:
            if not is_end:
                stop = self._safe_end(buffer)
            delimiter = self._find(buffer, 0, len(buffer) if is_end else _whole_lines(buffer))
            if delimiter is not None:
                found, boundary, is_last = delimiter
                self._give(buffer[done : found.start()], handler)
                end = found.end() + 2
                self._leave(boundary, handler, is_last=is_last)
                handler.on_between(buffer[max(done, found.start()) : end])
                self._buffer, self._done = buffer[end - 2 :] if end <= len(buffer) else b"\r\n", 2
                return True
        self._give(buffer[done:stop], handler)
        self._buffer, self._done = buffer[stop:], 0 if stop >= done else done - stop
        return False

    @staticmethod
    def _safe_end(buffer: bytes) -> int:
        """Where a delimiter line may begin whose end has not come yet."""
        begin = buffer.rfind(b"\r\n--", max(0, len(buffer) - _MAX_DELIMITER))
        if begin >= 0 and buffer.find(b"\r\n", begin + 2) < 0:
            return begin
        return len(buffer) - next((len(one) for one in _BEGINNINGS if buffer.endswith(one)), 0)

    def _give(self, data: bytes, handler: PartHandler) -> None:
        if data:
            if self._is_leaf:
                handler.on_body(data)
            else:
                handler.on_between(data)

    def _leave(self, boundary: bytes, handler: PartHandler, *, is_last: bool) -> None:
        """End the parts inside of this multipart; with its last delimiter line the multipart itself."""
        if self._is_leaf:
            handler.on_body_end()
        self._is_leaf = False
        while self._open[-1][0] != boundary:
            del self._rank[self._open.pop()[0]]
        depth = self._open[-1][1]
        if is_last:
            del self._rank[self._open.pop()[0]]
        del self._types[depth + (0 if is_last else 1) :]
        self._in_header = not is_last


def _whole_lines(buffer: bytes) -> int:
    """Where the last line end ends."""
    return buffer.rfind(b"\r\n") + 2
