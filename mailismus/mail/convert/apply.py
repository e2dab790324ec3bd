"""The conversion of a message by its plan, and the proof that nothing but the encoding changed.

*Rules*: a result counts only if it was read back (`Proof`): bodies are decoded and compared with the original by their
digest, and the result is 7-bit. The same plan gives the same result each time.

*Not here*: what is done with each part (`plan`).
"""

from __future__ import annotations

import binascii
from collections.abc import Callable

from mailismus.mail.convert.dots import Stuffer, Unstuffer
from mailismus.mail.convert.encoding import (
    Base64Decoder,
    Base64Encoder,
    Coder,
    QuotedPrintableDecoder,
    QuotedPrintableEncoder,
    Verbatim,
)
from mailismus.mail.convert.fields import Header, Kind, with_encoding, without_encoding
from mailismus.mail.convert.fingerprint import Fingerprint
from mailismus.mail.convert.plan import Change, Plan
from mailismus.mail.convert.refusal import NotConvertible, refuse
from mailismus.mail.convert.structure import Structure

_ENCODERS: dict[Change, type[Coder]] = {
    Change.QUOTED_PRINTABLE: QuotedPrintableEncoder,
    Change.BASE64: Base64Encoder,
}
_DECODERS: dict[Change, type[Coder]] = {
    Change.QUOTED_PRINTABLE: QuotedPrintableDecoder,
    Change.BASE64: Base64Decoder,
}


class Converter:
    """Converts one message: takes and returns content as on the wire, in pieces. `plan`: that of this content; with that of
    another one `feed` and `end` may raise `NotConvertible`."""

    __slots__ = ("_coder", "_dots", "_out", "_part", "_plan", "_structure", "_stuffer", "_tail")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._dots, self._stuffer = Unstuffer(), Stuffer()
        self._structure = Structure()
        self._part = -1
        self._coder: Coder = Verbatim()
        self._out: list[bytes] = []
        self._tail = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what can be said behind this piece; may be empty."""
        self._structure.feed(self._dots.feed(piece), self)
        return self._take()

    def end(self) -> bytes:
        """Return the rest. The result ends in CRLF."""
        self._structure.end(self)
        rest = self._take()
        return rest if self._tail == b"\r\n" else rest + b"\r\n"

    def _take(self) -> bytes:
        out = b"".join(self._out)
        self._out.clear()
        if out:
            self._tail = (self._tail + out[-2:])[-2:]
        return self._stuffer.feed(out)

    # -- see `structure.PartHandler`

    def on_header(self, header: Header) -> None:
        """A header."""
        self._part += 1
        if self._part >= len(self._plan.parts):
            raise refuse(b"it has more parts than its plan")
        part = self._plan.parts[self._part]
        change = part.change
        raw = header.raw
        self._out.append(raw if change is Change.NONE else with_encoding(raw, part.encoding, part.additions))
        self._coder = _ENCODERS.get(change, Verbatim)()

    def on_body(self, data: bytes) -> None:
        """Bytes of a body."""
        self._out.append(self._coder.feed(data))

    def on_body_end(self) -> None:
        """The end of a body."""
        self._out.append(self._coder.end())

    def on_between(self, data: bytes) -> None:
        """Lines between parts."""
        self._out.append(data)


class Proof:
    """Reads the result of a conversion back. Takes it as on the wire, in pieces.

    `size_bytes`: its size as a message, so far: without dot-stuffing (RFC 1870 3).
    """

    __slots__ = ("_coder", "_dots", "_encoding", "_fingerprint", "_is_broken", "_part", "_plan", "_structure", "size_bytes")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._dots = Unstuffer()
        self._structure = Structure()
        self._fingerprint = Fingerprint()
        self._part = -1
        self._coder: Coder = Verbatim()
        self._encoding = b""
        self._is_broken = False
        self.size_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        data = self._dots.feed(piece)
        self.size_bytes += len(data)
        if not data.isascii():
            self._is_broken = True
        self._run(lambda: self._structure.feed(data, self))

    def end(self) -> bool:
        """Return whether the result is 7-bit and the same message."""
        self._run(lambda: self._structure.end(self))
        return not self._is_broken and self._fingerprint.digest() == self._plan.digest

    def _run(self, read: Callable[[], None]) -> None:
        if not self._is_broken:
            try:
                read()
            except (NotConvertible, binascii.Error, IndexError):  # it is not the message that the plan was made for
                self._is_broken = True

    # -- see `structure.PartHandler`

    def on_header(self, header: Header) -> None:
        """A header."""
        self._part += 1
        part = self._plan.parts[self._part]
        self._fingerprint.add_header(without_encoding(header.raw, part.additions))
        if header.kind is Kind.LEAF or header.kind is Kind.SEALED:
            self._coder, self._encoding = _DECODERS.get(part.change, Verbatim)(), header.encoding
        else:
            self._fingerprint.add_encoding(header.encoding)

    def on_body(self, data: bytes) -> None:
        """Bytes of a body."""
        self._fingerprint.add_body(self._coder.feed(data))

    def on_body_end(self) -> None:
        """The end of a body."""
        self._fingerprint.add_body(self._coder.end())
        self._fingerprint.end_body()
        self._fingerprint.add_encoding(self._encoding)

    def on_between(self, data: bytes) -> None:
        """Lines between parts."""
        self._fingerprint.add_between(data)
