"""The file of due times: when messages are due, by their numbers. A hint which of them a start reads first (pure).

    header   "due 1 ORDER COUNT CRC" LF: ORDER of the bytes, as this machine has them; CRC-32 of all behind the header
    numbers  COUNT of 8 bytes; 0: of no message
    times    COUNT of 8 bytes: UTC seconds, IEEE 754

Source: `docs/formats/chunk`.
"""

from __future__ import annotations

import re
import sys
import zlib
from array import array
from typing import NamedTuple

_HEADER = re.compile(rb"due 1 ([a-z]{3,6}) (0|[1-9][0-9]{0,9}) ([0-9a-f]{8})\n")
LONGEST_HEADER = 40
ITEM_BYTES = 8
"""Of a number, and of a time."""


class DueTimesHeader(NamedTuple):
    """What the header says."""

    size_bytes: int
    """Of the header itself."""
    messages: int
    crc: int


def format_due_times(numbers: array[int], times: array[float]) -> list[bytes]:
    """The pieces of the file."""
    body = [numbers.tobytes(), times.tobytes()]
    crc = zlib.crc32(body[1], zlib.crc32(body[0]))
    return [b"due 1 %b %d %08x\n" % (sys.byteorder.encode("ascii"), len(numbers), crc), *body]


def parse_due_header(data: bytes) -> DueTimesHeader | None:
    """The header at the begin of these bytes; None: there is none of this machine."""
    found = _HEADER.match(data)
    if found is None or found[1] != sys.byteorder.encode("ascii"):
        return None
    return DueTimesHeader(found.end(), int(found[2]), int(found[3], 16))
