"""One changed byte: which one it is and what it was, told by a CRC-32 that does not fit (pure).

The CRC of two texts of one length differs by something that depends on their difference alone, and what one changed byte
makes of it can be run backwards, place by place. So the byte is found without trying.

*Rules*: other damage must hardly ever pass for one byte: fewer than one time in 10,000. A place and a value together are one
guess of 32 bits; so any change of a byte is looked for in up to 1,684 bytes, a single flipped bit in up to 53,687.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

MOST_GUESSES = (1 << 32) // 10_000
LONGEST_FOR_BYTE = MOST_GUESSES // 255
LONGEST_FOR_BIT = MOST_GUESSES // 8

_POLYNOMIAL = 0xEDB8_8320


class ByteChange(NamedTuple):
    """A byte and what it was."""

    position: int
    value: int


def _table() -> list[int]:
    table = []
    for index in range(256):
        for _ in range(8):
            index = index >> 1 ^ (_POLYNOMIAL if index & 1 else 0)
        table.append(index)
    return table


_BACKWARDS = [0] * 256
"""By the upper byte of a state: what it was before a zero byte was taken in."""
for _index, _state in enumerate(_table()):
    _BACKWARDS[_state >> 24] = ((_state << 8) & 0xFFFF_FFFF) | _index


def find_change(data: bytes, crc: int) -> ByteChange | None:
    """The one byte of `data` that must have been another for its CRC to be this; None: more than one, as far as can be told.
    The data does not fit the CRC."""
    size = len(data)
    if size > LONGEST_FOR_BIT:
        return None
    state = zlib.crc32(data) ^ crc
    for behind in range(size):
        state = ((state << 8) & 0xFFFF_FFFF) ^ _BACKWARDS[state >> 24]
        if 0 < state < 256 and (size <= LONGEST_FOR_BYTE or state & (state - 1) == 0):
            position = size - 1 - behind
            return ByteChange(position, data[position] ^ state)
    return None


def find_one_difference(found: bytes, wanted: bytes) -> ByteChange | None:
    """The one byte of `found` that is not as in `wanted`; None: none, or more than one."""
    if len(found) != len(wanted):
        return None
    changed = [at for at, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other]
    return ByteChange(changed[0], wanted[changed[0]]) if len(changed) == 1 else None
