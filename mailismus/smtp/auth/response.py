"""Base64 of challenges and responses (RFC 4648 4), and bytes that hold a secret.

*Rules*: bytes that a secret can be read from are in a `bytearray`, which `wipe` overwrites; nothing here makes a `bytes`
object of them, since Python can't overwrite one. Decoding is strict: no line breaks, no other letters, whole groups.
"""

from __future__ import annotations

import binascii

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def encode(data: bytes | bytearray) -> bytearray:
    """Return the base64 of some bytes."""
    size = len(data)
    found = bytearray(b"=" * ((size + 2) // 3 * 4))
    place = 0
    for start in range(0, size, 3):
        left = min(3, size - start)
        group = data[start] << 16
        if left > 1:
            group |= data[start + 1] << 8
        if left > 2:
            group |= data[start + 2]
        found[place] = _LETTERS[group >> 18]
        found[place + 1] = _LETTERS[group >> 12 & 63]
        if left > 1:
            found[place + 2] = _LETTERS[group >> 6 & 63]
        if left > 2:
            found[place + 3] = _LETTERS[group & 63]
        place += 4
    return found


def decode(text: bytes) -> bytes | None:
    """Return the bytes of a base64 text; None: it is none."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None


def join(*parts: bytes | bytearray) -> bytearray:
    """Return the parts in one array of their size: an array that grows leaves copies of its bytes behind."""
    found = bytearray(sum(map(len, parts)))
    place = 0
    for part in parts:
        found[place : place + len(part)] = part
        place += len(part)
    return found


def wipe(data: bytearray) -> None:
    """Overwrite the bytes, and empty the array."""
    data[:] = bytes(len(data))
    data.clear()
