"""The plan of a conversion: what is done with each part of a message, as its analysis finds.

| body of a part | written encoding | what is done |
|---|---|---|
| 8-bit, may be encoded | 7bit, 8bit, binary, none | quoted-printable or base64, whichever is shorter |
| 8-bit, may be encoded | quoted-printable, base64 | the message is refused: its encoding is broken |
| 8-bit, signed, encrypted, or of a type that may not be encoded | any | the message is refused |
| 7-bit | 8bit, binary | named 7bit; quoted-printable or base64 if a line is longer than 998 bytes |
| parts, or a message | 8bit, binary | named 7bit |
| 7-bit | any other | nothing |

8-bit bytes in a header, or before, between and behind parts, refuse the message: nothing can encode them there. So does a
bare CR or LF. A message without MIME-Version gets one where its body is encoded, and a charset if it has no Content-Type
(RFC 1428).

*Not here*: the conversion (`apply`).
"""

from __future__ import annotations

import codecs
import enum

import attrs

from mailismus.mail.convert.dots import Unstuffer
from mailismus.mail.convert.fields import UNENCODED, Header, Kind, without_encoding
from mailismus.mail.convert.fingerprint import Fingerprint
from mailismus.mail.convert.refusal import NotConvertible, refuse
from mailismus.mail.convert.structure import Structure

_HIGH = bytes(range(128, 256))
_AS_THEY_ARE = bytes([9, 10, 13, *range(32, 61), *range(62, 127)])
"""Bytes that quoted-printable leaves as they are."""
_MAX_LINE = 999
"""Bytes of a line with its CR, without its LF (RFC 5322 2.1.1)."""


class Change(enum.Enum):
    """What is done with a part."""

    NONE = "nothing"
    NAMED_7BIT = "it is named 7bit"
    QUOTED_PRINTABLE = "its body is encoded as quoted-printable"
    BASE64 = "its body is encoded as base64"


NAMES = {
    Change.NAMED_7BIT: b"7bit",
    Change.QUOTED_PRINTABLE: b"quoted-printable",
    Change.BASE64: b"base64",
}
"""The Content-Transfer-Encoding that a change writes."""


@attrs.frozen
class PartPlan:
    """What is done with one part. `additions`: fields that its header gets before its Content-Transfer-Encoding; `encoding`:
    the one that it has then."""

    change: Change
    additions: bytes
    encoding: bytes


@attrs.frozen
class Plan:
    """The plan of one message: its parts in the order of their headers. `digest`: its `Fingerprint`."""

    parts: tuple[PartPlan, ...]
    digest: bytes


@attrs.define
class _Body:
    """What was counted of the body of a part."""

    header: Header
    size: int = 0
    high: int = 0
    unsafe: int = 0
    line: int = 0
    """Bytes since the last line end."""
    has_long_line: bool = False
    text: codecs.IncrementalDecoder | None = attrs.field(factory=lambda: codecs.getincrementaldecoder("utf-8")())
    """None: it is not in UTF-8."""

    def add(self, data: bytes) -> None:
        """Count the next bytes."""
        self.size += len(data)
        self.unsafe += len(data.translate(None, _AS_THEY_ARE))
        if not data.isascii():
            self.high += len(data) - len(data.translate(None, _HIGH))
        if self.text is not None and not self.header.has_type:
            try:
                self.text.decode(data)
            except UnicodeDecodeError:
                self.text = None
        first = data.find(b"\n")
        self.line += len(data) if first < 0 else first
        longest = self.line
        if first >= 0:
            lines = data.split(b"\n")
            self.line = len(lines[-1])
            longest = max(longest, max(map(len, lines[1:])))
        self.has_long_line = self.has_long_line or longest > _MAX_LINE

    def plan(self) -> PartPlan:
        """What is done with the part. Raises `NotConvertible`."""
        header = self.header
        if self.high and header.kind is Kind.SEALED:
            raise refuse(b"its part of type %b has 8-bit content" % header.media_type.encode("ascii", "replace"))
        if self.high and header.encoding not in UNENCODED:
            raise refuse(b"a part in %b has 8-bit content" % header.encoding)
        if header.kind is Kind.SEALED or header.encoding not in UNENCODED:
            return PartPlan(Change.NONE, b"", header.encoding)
        if not self.high and (not self.has_long_line or header.encoding == b"7bit"):
            return _named(header)
        change = Change.QUOTED_PRINTABLE if self.unsafe * 6 <= self.size else Change.BASE64
        return PartPlan(change, self._additions(), NAMES[change])

    def _additions(self) -> bytes:
        header = self.header
        added = b""
        if header.is_of_message and not header.has_version:
            added = b"MIME-Version: 1.0\r\n"
        if not header.has_type and self.high:
            added += b"Content-Type: text/plain; charset=%b\r\n" % self._charset()
        return added

    def _charset(self) -> bytes:
        if self.text is not None:
            try:
                self.text.decode(b"", True)
            except UnicodeDecodeError:
                return b"unknown-8bit"
            return b"utf-8"
        return b"unknown-8bit"


def _named(header: Header) -> PartPlan:
    if header.encoding in (b"8bit", b"binary"):
        return PartPlan(Change.NAMED_7BIT, b"", b"7bit")
    return PartPlan(Change.NONE, b"", header.encoding)


class Analysis:
    """Measures one message. Takes its content as on the wire, in pieces."""

    __slots__ = ("_body", "_cr", "_dots", "_fingerprint", "_parts", "_refusal", "_structure")

    def __init__(self) -> None:
        self._dots = Unstuffer()
        self._structure = Structure()
        self._fingerprint = Fingerprint()
        self._body: _Body | None = None
        self._parts: list[PartPlan] = []
        self._refusal: NotConvertible | None = None
        self._cr = b""
        """A CR at the end of the last piece."""

    def feed(self, piece: bytes) -> bool:
        """Take the next piece. Return whether more of the content is needed."""
        if self._refusal is None:
            try:
                self._check_line_ends(piece)
                self._structure.feed(self._dots.feed(piece), self)
            except NotConvertible as refusal:
                self._refusal = refusal
        return self._refusal is None

    def end(self) -> Plan | NotConvertible:
        """Return the plan, or why there is none."""
        try:
            if self._refusal is None:
                if self._cr:
                    raise refuse(b"it has a bare CR or LF")
                self._structure.end(self)
        except NotConvertible as refusal:
            self._refusal = refusal
        return self._refusal or Plan(tuple(self._parts), self._fingerprint.digest())

    def _check_line_ends(self, piece: bytes) -> None:
        """Refuse a bare CR or LF: encodings keep line ends alone. Reception takes none, other sources of mail may."""
        piece, self._cr = self._cr + piece, b""
        if piece.endswith(b"\r"):
            piece, self._cr = piece[:-1], b"\r"
        if not piece.count(b"\r") == piece.count(b"\n") == piece.count(b"\r\n"):
            raise refuse(b"it has a bare CR or LF")

    # -- see `structure.PartHandler`

    def on_header(self, header: Header) -> None:
        """A header."""
        self._fingerprint.add_header(without_encoding(header.raw))
        if header.kind is Kind.LEAF or header.kind is Kind.SEALED:
            self._body = _Body(header)
        else:
            self._add_part(_named(header))

    def on_body(self, data: bytes) -> None:
        """Bytes of a body."""
        assert self._body is not None  # a header came before
        self._body.add(data)
        self._fingerprint.add_body(data)

    def on_body_end(self) -> None:
        """The end of a body."""
        assert self._body is not None  # as above
        self._fingerprint.end_body()
        self._add_part(self._body.plan())
        self._body = None

    def on_between(self, data: bytes) -> None:
        """Lines between parts."""
        if not data.isascii():
            raise refuse(b"it has 8-bit bytes outside of its parts")
        self._fingerprint.add_between(data)

    def _add_part(self, part: PartPlan) -> None:
        self._parts.append(part)
        self._fingerprint.add_encoding(part.encoding)
