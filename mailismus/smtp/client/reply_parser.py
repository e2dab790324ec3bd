"""The reply parser: bytes from a server to replies, for any bytes that a server may send (RFC 5321 4.2, RFC 2034).

*Rules*: a reply has three digits, the first of them 2 to 5, then a blank, a hyphen (more lines follow) or the end of the
line. The code of the last line counts. Lines end in LF; a CR before it is dropped. Memory is bounded: a line of more than
`MAX_LINE` bytes, a reply of more than `MAX_LINES` lines, or a line that is no reply stops the parser for good. Replies that
were complete before still count; bytes behind are not parsed.

A reply comes out as `(code, raw)`; `raw` has its lines as received, with LF between them: of most replies only the code is
used. `make_reply` makes the value, with a text that is safe in logs, records and terminals.
"""

from __future__ import annotations

import re

from mailismus.mail.reply import MAX_TEXT, Reply

MAX_LINE = 2048
"""Bytes of a reply line without its end. RFC 5321 4.5.3.1.5 requires 512 with it."""
MAX_LINES = 100
"""Lines of one reply."""

RawReply = tuple[int, bytes]

_CODES = {b"%d" % code: code for code in range(200, 600)}
_WHOLE = {b"%d " % code: code for code in range(200, 600)}
"""Beginnings of replies of one line."""
_HARMLESS = bytes(byte if 32 <= byte < 127 else 32 if byte == 9 else 63 for byte in range(256))
_ENHANCED = re.compile(rb"([245]\.\d{1,3}\.\d{1,3})(?: +|\Z)").match


class ReplyParser:
    """The parser of one connection. It takes bytes in pieces of any size."""

    __slots__ = ("_lines", "_rest", "broken", "is_inside")

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self.is_inside = False
        """Whether an incomplete reply waits for its end."""
        self.broken = b""
        """Why the parser stopped; empty: it has not."""

    def feed(self, data: bytes) -> list[RawReply]:
        """Return the replies that are complete now, in order. Check `broken` afterwards."""
        if self.broken:
            return []
        if self._rest:
            data = self._rest + data
        lines = data.replace(b"\r\n", b"\n").split(b"\n")
        self._rest = rest = lines.pop()
        if not self._lines and len(data) <= MAX_LINE:  # the usual case: replies of one line
            codes = [_WHOLE.get(line[:4], 0) for line in lines]
            if 0 not in codes:
                self.is_inside = bool(rest)
                return list(zip(codes, lines, strict=True))
        found: list[RawReply] = []
        for line in lines:
            why = self._take_line(line, found)
            if why:
                return self._break(why, found)
        if len(rest) > MAX_LINE + 1:  # a CR may be its last
            return self._break(b"reply line too long", found)
        self.is_inside = bool(rest or self._lines)
        return found

    def _take_line(self, line: bytes, found: list[RawReply]) -> bytes:
        """Take any line. Return why it breaks the parser; empty: it does not."""
        code = _CODES.get(line[:3])
        mark = line[3:4]
        if len(line) > MAX_LINE:
            return b"reply line too long"
        if code is None or mark not in b" -":
            return b"what came is no reply"
        lines = self._lines
        if mark == b"-":
            if len(lines) >= MAX_LINES - 1:
                return b"reply of too many lines"
            lines.append(line)
        else:
            lines.append(line)
            found.append((code, b"\n".join(lines)))
            lines.clear()
        return b""

    def _break(self, why: bytes, found: list[RawReply]) -> list[RawReply]:
        self.broken, self._rest, self.is_inside = why, b"", False
        self._lines.clear()
        return found


def make_reply(code: int, raw: bytes) -> Reply:
    """Return the value of a raw reply: one line, printable ASCII, at most `MAX_TEXT` bytes.

    An enhanced status code that is well-formed and of the class of the code (RFC 2034 4) is removed from the text of each
    line. Otherwise it stays in the text, and the reply has none.
    """
    first = raw[0:1]
    if b"\n" not in raw:
        text = raw[4:]
        status = _ENHANCED(text)
        if status is None or text[:1] != first:
            return Reply(code, b"", text[:MAX_TEXT].translate(_HARMLESS).strip())  # as `_clean`, at half the cost
        return Reply(code, status[1], text[status.end() :][:MAX_TEXT].translate(_HARMLESS).strip())
    lines = [line[4:] for line in raw.split(b"\n")]
    first = b"%d" % (code // 100)
    status = _ENHANCED(lines[-1]) or _ENHANCED(lines[0])
    enhanced = status[1] if status is not None and status[1][:1] == first else b""
    if enhanced:
        lines = [line[len(enhanced) :].lstrip(b" ") if line.startswith(enhanced) else line for line in lines]
    return Reply(code, enhanced, _clean(b" ".join([line for line in lines if line])))


def list_keywords(raw: bytes) -> dict[bytes, bytes]:
    """Return the extensions in a reply to EHLO: keyword in upper case -> its parameters (RFC 5321 4.1.1.1)."""
    keywords: dict[bytes, bytes] = {}
    for line in raw.split(b"\n")[1:]:
        keyword, _, parameters = line[4:].strip().partition(b" ")
        keywords[keyword.upper()] = parameters.strip()
    return keywords


def _clean(text: bytes) -> bytes:
    return text[:MAX_TEXT].translate(_HARMLESS).strip()
