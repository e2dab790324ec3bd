r"""The domain name: our text form and the wire form (pure).

*Rules*: our text is ASCII, lower case, absolute, without a final dot; the root is `""`. An octet other than a letter, digit,
hyphen or underscore is written `\DDD`, so that no name can forge a log line. UTF-8 becomes A-labels. Reading is linear in
the message: each position is read once, pointers may only lead backwards, and a name ends after 255 octets.

*Not here*: which names may be mail hosts, records (`message`). RFC 1035 3.1 and 4.1.4, RFC 5890, RFC 5891.
"""

from __future__ import annotations

import re

import idna

MAX_WIRE = 255
"""Octets of a name on the wire (RFC 1035 3.1)."""
MAX_UNICODE = 1000
"""Longest domain, in characters, that is converted to A-labels."""

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*").fullmatch
_PLAIN = re.compile(rb"[a-z0-9_-]*").fullmatch
_OCTET = re.compile(rb"[^a-z0-9_-]")
_ESCAPED = re.compile(rb"\\(\d\d\d)")


class BadName(ValueError):
    """A name that can't be read or written."""


def is_host_name(name: str) -> bool:
    """Whether it may name a host: letters, digits, hyphens, and underscores, which the RFCs forbid but are in use."""
    return len(name) < MAX_WIRE - 1 and _HOST(name) is not None


def to_ascii(domain: str) -> str | None:
    """The domain of an address in our text form, with A-labels; None: it can't be a domain."""
    if not domain.isascii():
        if len(domain) > MAX_UNICODE:
            return None
        try:
            domain = idna.encode(domain, uts46=True).decode("ascii")
        except UnicodeError:
            return None
    name = domain.lower().removesuffix(".")
    return name if is_host_name(name) else None


def encode_name(name: str) -> bytes:
    """The wire form of a name. Raises `BadName`."""
    if not name.isascii():
        raise BadName(name)
    wire = bytearray()
    for label in name.encode("ascii").split(b".") if name else ():
        octets = _ESCAPED.sub(_octet, label) if b"\\" in label else label
        if not 0 < len(octets) < 64:
            raise BadName(name)
        wire.append(len(octets))
        wire += octets
    wire.append(0)
    if len(wire) > MAX_WIRE:
        raise BadName(name)
    return bytes(wire)


def _octet(found: re.Match[bytes]) -> bytes:
    value = int(found[1])
    if value > 255:
        raise BadName(found[0].decode("ascii"))
    return bytes((value,))


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\%03d" % found[0][0]


class NameReader:
    """Reads the names of one message, and remembers each by its position."""

    def __init__(self, wire: bytes) -> None:
        self._wire = wire
        self._known: dict[int, tuple[str, int]] = {}

    def read(self, start: int) -> tuple[str, int]:
        """The name that begins at `start`, and the position after it. Raises `BadName`."""
        wire, known = self._wire, self._known
        passed: list[tuple[int, bytes]] = []
        position = segment = start
        end = -1
        size = 0
        tail, tail_size = "", 1
        while True:
            if position in known:
                tail, tail_size = known[position]
                if end < 0:
                    end = _end_of_name(wire, position)
                break
            if position >= len(wire):
                raise BadName("a name beyond the end")
            length = wire[position]
            if length == 0:
                end = position + 1 if end < 0 else end
                break
            if length >= 0xC0:
                if position + 1 >= len(wire):
                    raise BadName("half a pointer")
                end = position + 2 if end < 0 else end
                target = (length & 0x3F) << 8 | wire[position + 1]
                if target >= segment:
                    raise BadName("a pointer that does not lead back")
                position = segment = target
                continue
            if length > 63:
                raise BadName("an unknown kind of label")
            label = wire[position + 1 : position + 1 + length]
            size += length + 1
            if len(label) < length or size >= MAX_WIRE:
                raise BadName("a label beyond the end" if len(label) < length else "a name of more than 255 octets")
            passed.append((position, label))
            position += 1 + length
        for at, label in reversed(passed):
            tail_size += len(label) + 1
            if tail_size > MAX_WIRE:
                raise BadName("a name of more than 255 octets")
            label = label.lower()
            text = (label if _PLAIN(label) else _OCTET.sub(_escape, label)).decode("ascii")
            tail = f"{text}.{tail}" if tail else text
            known[at] = tail, tail_size
        return tail, end


def _end_of_name(wire: bytes, position: int) -> int:
    """The position after a name that was read before and is well-formed."""
    while wire[position]:
        if wire[position] >= 0xC0:
            return position + 2
        position += 1 + wire[position]
    return position + 1
