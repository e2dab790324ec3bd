"""One changed byte: its position and former value, computed from a CRC-32 that does not match (pure).

The CRCs of two texts of one length differ by a value that depends on the difference of the texts alone. For a single changed
byte this value can be run backwards, position by position, so the byte is found without trying all values.

*Rules*: fewer than one in 10,000 cases of other damage may pass for one changed byte. Position and value together are a
guess at 32 bits, so any change of a byte is searched for in up to 1,684 bytes, a single flipped bit in up to 53,687.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

MOST_GUESSES = (1 << 32) // 10_000
LONGEST_FOR_BYTE = MOST_GUESSES // 255
LONGEST_FOR_BIT = MOST_GUESSES // 8

_POLYNOMIAL = 0xEDB8_8320


class ByteChange(NamedTuple):
    """Position and former value of a byte."""

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
"""By the upper byte of a CRC state: the state before a zero byte was processed."""
for _index, _state in enumerate(_table()):
    _BACKWARDS[_state >> 24] = ((_state << 8) & 0xFFFF_FFFF) | _index


def find_change(data: bytes, crc: int) -> ByteChange | None:
    """The one byte of `data` whose change makes its CRC equal `crc`; None: there is none. The CRC of `data` is another."""
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
    """The one byte of `found` that differs from `wanted`; None: none differs, or several do."""
    if len(found) != len(wanted):
        return None
    changed = [at for at, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other]
    return ByteChange(changed[0], wanted[changed[0]]) if len(changed) == 1 else None
