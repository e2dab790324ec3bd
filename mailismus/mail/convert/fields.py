"""The header of a message or part: what it says of the body, and the same header with another Content-Transfer-Encoding.

Python's `email` reads the media type and its parameters. The bytes of all other fields stay as they are, folding included.

*Rules*: a header that is not plainly one (a line without a field, two fields of a kind that may stand once, a multipart
without a boundary) refuses the conversion: readers would disagree about it. So does a byte above 127.

*Not here*: where a header begins and ends (`structure`).
"""

from __future__ import annotations

import enum
import re
from email.message import Message

import attrs

from mailismus.mail.convert.refusal import UTF8_HEADER, NotConvertible, refuse

MAX_BOUNDARY = 200
"""Bytes of a boundary. RFC 2046 allows 70."""
MAX_VALUE = 4000
"""Bytes of a Content-Type field."""

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)\r\n")
_ENCODING = re.compile(rb"[ \t\r\n]*([!-~]+)[ \t\r\n]*").fullmatch
_CTE = b"content-transfer-encoding"
_ONCE = (_CTE, b"content-type", b"mime-version")
UNENCODED = frozenset({b"7bit", b"8bit", b"binary"})
ENCODED = frozenset({b"quoted-printable", b"base64"})


class Kind(enum.Enum):
    """What the body of a part is."""

    MULTIPART = "parts between delimiter lines"
    MESSAGE = "a message with a header of its own"
    LEAF = "data that may be encoded"
    SEALED = "data that must stay as they are: signed, encrypted, or of a type that may not be encoded"


@attrs.frozen
class Header:
    """A header. `raw`: its bytes, the empty line included; `media_type`: in lower case; `encoding`: that of its body as
    written, in lower case (`7bit` if none is written)."""

    raw: bytes
    kind: Kind
    media_type: str
    encoding: bytes
    boundary: bytes
    has_type: bool
    has_version: bool
    is_of_message: bool
    """Whether it is the header of a message, not of a part."""


def parse_header(raw: bytes, default_type: str, *, is_of_message: bool) -> Header:
    """Return what a header says. `raw`: with the empty line behind it; `default_type`: without Content-Type. Raises
    `NotConvertible`."""
    if not raw.isascii():
        raise NotConvertible(UTF8_HEADER, b"a header has bytes above 127")
    end, position = len(raw) - 2, 0
    found: dict[bytes, bytes] = {}
    while position < end:
        field = _FIELD.match(raw, position, end)
        if field is None:
            raise refuse(b"a header has a line that is no field")
        position = field.end()
        name = field[1].lower()
        if name in found:
            raise refuse(b"a header has two fields %b" % field[1])
        if name in _ONCE:
            found[name] = field[2]
    return _interpret(raw, found, default_type, is_of_message)


def _interpret(raw: bytes, found: dict[bytes, bytes], default_type: str, is_of_message: bool) -> Header:
    value = found.get(b"content-type", b"")
    if len(value) > MAX_VALUE:
        raise refuse(b"a Content-Type field has %d bytes" % len(value))
    parsed = Message()
    parsed["Content-Type"] = value.replace(b"\r\n", b"").decode("ascii") if value else default_type
    media_type = parsed.get_content_type()
    encoding = b"7bit"
    if _CTE in found:
        token = _ENCODING(found[_CTE])
        encoding = token[1].lower() if token else b"?"
        if encoding not in UNENCODED and encoding not in ENCODED:
            raise refuse(b"a part has an unknown Content-Transfer-Encoding")
    kind, boundary = _kind_of(media_type), b""
    if kind in (Kind.MULTIPART, Kind.MESSAGE) and encoding in ENCODED:
        raise refuse(b"a part that has parts is encoded as a whole")
    if kind is Kind.MULTIPART:
        boundary = _boundary_of(parsed)
    return Header(
        raw, kind, media_type, encoding, boundary, b"content-type" in found, b"mime-version" in found, is_of_message
    )


def _kind_of(media_type: str) -> Kind:
    main, _, sub = media_type.partition("/")
    if main == "multipart":
        return Kind.SEALED if sub in ("signed", "encrypted") else Kind.MULTIPART
    if main == "message" and not sub.startswith("global"):  # RFC 6532 3.7 lets message/global be encoded
        return Kind.MESSAGE if sub == "rfc822" else Kind.SEALED
    return Kind.LEAF


def _boundary_of(parsed: Message) -> bytes:
    try:
        boundary = (parsed.get_boundary() or "").encode("ascii")
    except (UnicodeError, ValueError, LookupError, TypeError):  # encoded parameters (RFC 2231) may hold anything
        boundary = b""
    if not boundary or len(boundary) > MAX_BOUNDARY or b"\r" in boundary or b"\n" in boundary:
        raise refuse(b"a multipart has no usable boundary")
    return boundary


def with_encoding(raw: bytes, encoding: bytes, additions: bytes) -> bytes:
    """Return a header with this Content-Transfer-Encoding in the place of the old one, else at its end, and with further
    fields before it."""
    before, after = _around_encoding(raw)
    return b"%b%bContent-Transfer-Encoding: %b\r\n%b" % (before, additions, encoding, after)


def without_encoding(raw: bytes, additions: bytes = b"") -> bytes:
    """Return a header without its Content-Transfer-Encoding, and without these fields before it."""
    before, after = _around_encoding(raw)
    return before.removesuffix(additions) + after


def _around_encoding(raw: bytes) -> tuple[bytes, bytes]:
    end, position = len(raw) - 2, 0
    while position < end:
        field = _FIELD.match(raw, position, end)
        if field is None:
            break
        if field[1].lower() == _CTE:
            return raw[:position], raw[field.end() :]
        position = field.end()
    return raw[:end], raw[end:]
