r"""A stored message on its way to whoever looks at it (pure): unstuffed, its header cut off, made harmless for a terminal.

*Rules*: content is cut anywhere into pieces; nothing of it is held but the end of a line, and of a header at most
`MAX_HEADER` bytes. Line ends stay CRLF in bytes that go to a file, as every next hop gets them.

Source: RFC 5321 4.5.2 (transparency), RFC 5322 2.2 (header fields).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mailismus.observe.text import shown

MAX_HEADER = 64 << 10
"""Bytes of a header that are shown."""

MAX_LINE = 64 << 10
"""Bytes of a line that are held; a longer one is shown in parts."""


def unstuff(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The content as it is delivered: the first dot of each line that begins with one is gone."""
    before = b"\r\n"  # the last bytes of what came, as they came: here the line of the DATA command
    for piece in pieces:
        data = before + piece
        before = data[-2:]
        yield data.replace(b"\r\n.", b"\r\n")[2:]


def header_of(pieces: Iterable[bytes]) -> tuple[bytes, bool]:
    """The header without its empty line, and whether that is all of it; no more pieces are asked for than it needs."""
    data = b"\r\n"
    for piece in pieces:
        data += piece
        end = data.find(b"\r\n\r\n")
        if 0 <= end <= MAX_HEADER:
            return data[2 : end + 2], True
        if len(data) > MAX_HEADER:
            return data[2:MAX_HEADER], False
    return data[2:], True


def harmless_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines for a terminal, without their ends: what is not printable is escaped."""
    held = b""
    for piece in pieces:
        lines = (held + piece).split(b"\n")
        held = lines.pop()
        for line in lines:
            yield _harmless(line.removesuffix(b"\r"))
        while len(held) > MAX_LINE:
            yield _harmless(held[:MAX_LINE])
            held = held[MAX_LINE:]
    if held:
        yield _harmless(held.removesuffix(b"\r"))


def _harmless(line: bytes) -> str:
    return shown(line.expandtabs())
