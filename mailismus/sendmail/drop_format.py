"""The format of a file in the drop directory (pure).

    mailismus-drop 1 H N\n      H bytes of envelope and N bytes of message follow
    {"sender": ..., "recipients": [...]}\n
    the message, lines as its program wrote them
    end SHA-256\n               of all bytes before this line, in hex

*Rules*: a file counts if all of this holds and nothing follows. Addresses are bytes, written as the characters of the same
numbers. Sizes are decimal. The envelope is bounded: to read its JSON takes many times its size in memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import attrs

from mailismus.admin.protocol.injecting import MOST_ADDRESS_BYTES_OF_USERS, OBJECT_BYTES

_OPENING = re.compile(rb"mailismus-drop ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,15})\n").fullmatch
_VERSION = 1
MOST_OPENING_BYTES = 64
MOST_ENVELOPE_BYTES = 2 << 20
"""The line of all addresses."""
END_BYTES = len("end ") + 64 + 1
_PIECE_BYTES = 1 << 16


class BadDrop(ValueError):
    """A file is not, or not wholly, what the format says; the text says why."""


@attrs.frozen
class Drop:
    """The envelope of a file that is whole, and where its message lies."""

    sender: bytes
    recipients: tuple[bytes, ...]
    begins_at: int
    size_bytes: int


def encode_opening(sender: bytes, recipients: Sequence[bytes], size_bytes: int) -> bytes:
    """What stands before a message of this size. Raises `BadDrop` for more addresses than a file may have."""
    envelope = {"sender": sender.decode("latin-1"), "recipients": [one.decode("latin-1") for one in recipients]}
    line = json.dumps(envelope).encode("ascii") + b"\n"
    if len(line) > MOST_ENVELOPE_BYTES:
        raise BadDrop("the addresses of the recipients are too long, all together")
    return b"mailismus-drop %d %d %d\n" % (_VERSION, len(line), size_bytes) + line


def encode_end(digest: bytes) -> bytes:
    """The last line. `digest`: SHA-256 of all before it."""
    return b"end %b\n" % digest.hex().encode("ascii")


def read_drop(file: BinaryIO, size_bytes: int) -> Drop:
    """Read a file of this size from its beginning to its end. Raises `BadDrop`, OSError."""
    digest = hashlib.sha256()
    line = file.readline(MOST_OPENING_BYTES)
    found = _OPENING(line)
    if found is None:
        raise BadDrop("it does not begin as a dropped message")
    version, envelope_bytes, message_bytes = (int(number) for number in found.groups())
    if version != _VERSION:
        raise BadDrop(f"it is of format {version}, and this program reads {_VERSION}")
    if envelope_bytes > MOST_ENVELOPE_BYTES or len(line) + envelope_bytes + message_bytes + END_BYTES != size_bytes:
        raise BadDrop(f"it has {size_bytes} bytes, and says that it has others: it is cut, or was changed")
    digest.update(line)
    envelope = file.read(envelope_bytes)
    digest.update(envelope)
    for piece in pieces_of(file, message_bytes):
        digest.update(piece)
    if file.read(END_BYTES + 1) != encode_end(digest.digest()):
        raise BadDrop("its digest is not that of its bytes: it is damaged")
    return Drop(*_addresses(envelope), len(line) + envelope_bytes, message_bytes)


def pieces_of(file: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    """The next bytes of a file, so many, in pieces; fewer if it ends."""
    while size_bytes and (piece := file.read(min(_PIECE_BYTES, size_bytes))):
        size_bytes -= len(piece)
        yield piece


def _addresses(line: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    try:
        value = json.loads(line)
        sender, recipients = value["sender"], value["recipients"]
        if not isinstance(recipients, list):
            raise TypeError
        found = sender.encode("latin-1"), tuple(one.encode("latin-1") for one in recipients)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadDrop(f"its envelope can't be read: {type(error).__name__}") from None
    if not found[1] or not all(found[1]):
        raise BadDrop("its envelope has no recipients, or an empty one")
    if sum(len(one) + OBJECT_BYTES for one in found[1]) > MOST_ADDRESS_BYTES_OF_USERS:
        raise BadDrop("its envelope has too many recipients")
    return found
