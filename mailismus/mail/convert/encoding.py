"""Quoted-printable and base64 in pieces, both ways (RFC 2045 6.7, 6.8).

*Rules*: lines of at most 76 bytes. No line of the result can be taken for a delimiter line: one of quoted-printable never
begins with two hyphens, base64 has none. The results do not depend on how the data are cut into pieces; memory is bounded
by a piece and `_LONGEST`.

*Not here*: which encoding is used (`plan`).
"""

from __future__ import annotations

import binascii
import re
from typing import Protocol

_LONGEST = 3420
"""Bytes of a line of quoted-printable data that are waited for before a soft line break is set."""
_BASE64_LINE = 57
_SPLIT = re.compile(rb".{76}(?=.)").sub
_DASHES = re.compile(rb"(?:(?<=\n)|\A)--[^\r\n]*").sub
_WIDTH = 76


class Coder(Protocol):
    """Encodes or decodes one body."""

    def feed(self, data: bytes) -> bytes:
        """Return what can be said behind these bytes."""

    def end(self) -> bytes:
        """Return the rest."""


class Verbatim:
    """Changes nothing."""

    __slots__ = ()

    def feed(self, data: bytes) -> bytes:
        """See `Coder`."""
        return data

    def end(self) -> bytes:
        """See `Coder`."""
        return b""


class QuotedPrintableEncoder:
    """To quoted-printable. Line ends stay line ends."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""
        """The line that is not complete, or what is left of it."""

    def feed(self, data: bytes) -> bytes:
        """See `Coder`."""
        data = self._rest + data
        end = data.rfind(b"\r\n") + 2 if b"\r\n" in data else 0
        lines, rest = data[:end], data[end:]
        encoded = b""
        if len(lines) > _LONGEST and max(map(len, lines.split(b"\r\n"))) >= _LONGEST:
            encoded = b"".join([_encode_long_line(line) for line in lines[:-2].split(b"\r\n")])
        elif lines:
            encoded = _encode_lines(lines)
        while len(rest) > _LONGEST:
            encoded += _encode_beginning(rest)
            rest = rest[_LONGEST:]
        self._rest = rest
        return encoded

    def end(self) -> bytes:
        """See `Coder`."""
        rest, self._rest = self._rest, b""
        return _encode_lines(rest + b"\r\n")[:-2] if rest else b""


def _encode_lines(lines: bytes) -> bytes:
    """Encode whole lines. With a CRLF among them `b2a_qp` keeps all line ends and ends soft breaks in CRLF."""
    encoded = binascii.b2a_qp(lines, quotetabs=False, istext=True, header=False)
    if encoded[:2] == b"--" or b"\n--" in encoded:
        encoded = _DASHES(_hide_dashes, encoded)
    return encoded


def _encode_beginning(line: bytes) -> bytes:
    """Encode the first `_LONGEST` bytes of a line, with a soft line break behind them."""
    return _encode_lines(line[:_LONGEST] + b"\r\n")[:-2] + b"=\r\n"


def _encode_long_line(line: bytes) -> bytes:
    """Encode a line that may be long, with breaks where they are if it comes in pieces: its CR alone may come."""
    encoded = b""
    while len(line) >= _LONGEST:
        encoded += _encode_beginning(line)
        line = line[_LONGEST:]
    return encoded + _encode_lines(line + b"\r\n")


def _hide_dashes(found: re.Match[bytes]) -> bytes:
    """Encode the hyphens at the beginning of a line, and break what gets too long."""
    line = found[0]
    count = len(line) - len(line.lstrip(b"-"))
    hidden, rest = b"=2D" * min(count, 20), line[min(count, 20) :]
    if len(hidden) + len(rest) <= _WIDTH:
        return hidden + rest
    if rest[:2] == b"--":
        rest = _DASHES(_hide_dashes, rest)
    return hidden + b"=\r\n" + rest


class Base64Encoder:
    """To base64, with no line end behind the last line."""

    __slots__ = ("_begun", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """See `Coder`."""
        data = self._rest + data
        end = (len(data) - 1) // _BASE64_LINE * _BASE64_LINE if data else 0
        self._rest = data[end:]
        return self._encode(data[:end])

    def end(self) -> bytes:
        """See `Coder`."""
        rest, self._rest = self._rest, b""
        return self._encode(rest)

    def _encode(self, data: bytes) -> bytes:
        if not data:
            return b""
        text = _SPLIT(rb"\g<0>\r\n", binascii.b2a_base64(data, newline=False))
        before, self._begun = b"\r\n" if self._begun else b"", True
        return before + text


class QuotedPrintableDecoder:
    """From quoted-printable."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """See `Coder`."""
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        return binascii.a2b_qp(data[:end])

    def end(self) -> bytes:
        """See `Coder`."""
        return binascii.a2b_qp(self._rest)


class Base64Decoder:
    """From base64. Raises `binascii.Error`."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """See `Coder`."""
        data = self._rest + data.translate(None, b"\r\n")
        end = len(data) // 4 * 4
        self._rest = data[end:]
        return binascii.a2b_base64(data[:end])

    def end(self) -> bytes:
        """See `Coder`."""
        return binascii.a2b_base64(self._rest)
