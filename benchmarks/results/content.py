"""The numbered messages of a trial: content and recipients follow from number and size alone (pure).

Content is 7-bit lines ended by CRLF, with leading dots, dots alone on a line and empty lines among them, and long
lines. A message of 0 bytes carries its number in its addresses alone; so these name it always.
"""

from __future__ import annotations

import hashlib
import random
import re
from bisect import bisect_right
from collections.abc import Iterator

PIECE_BYTES = 65536
BLOCK_BYTES = 1 << 20
SENDER_DOMAIN, RECIPIENT_DOMAIN = b"from.trial.example", b"to.trial.example"
ADDRESS = re.compile(rb"<?[rs](\d+)\.n(\d+)@")


def sender(number: int) -> bytes:
    """The reverse-path of a message."""
    return b"s0.n%d@%s" % (number, SENDER_DOMAIN)


def recipient(number: int, index: int) -> bytes:
    """One forward-path of a message."""
    return b"r%d.n%d@%s" % (index, number, RECIPIENT_DOMAIN)


def number_and_index(address: bytes) -> tuple[int, int]:
    """What an address of ours says. Raises: ValueError for another's."""
    found = ADDRESS.match(address)
    if found is None:
        raise ValueError(f"not an address of the trial: {address!r}")
    return int(found[2]), int(found[1])


class Size:
    """How large messages are: all alike, or log-uniform from 0 to `largest` bytes (their mean is largest / ln(largest))."""

    def __init__(self, largest: int, fixed: bool = False) -> None:
        self.largest, self.fixed = largest, fixed

    def draw(self, rng: random.Random) -> int:
        """The size of one message: never 1, since content ends with CRLF or is empty."""
        if self.fixed:
            return self.largest
        size = int((self.largest + 1.0) ** rng.random()) - 1
        return 2 if size == 1 else min(size, self.largest)


def _line(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.05:
        return b"\r\n"
    if kind < 0.08:
        return b".\r\n"
    if kind < 0.10:
        return b"..\r\n"
    length = rng.randrange(200, 990) if kind < 0.15 else rng.randrange(2, 100)
    text = b"|" + rng.randbytes(length - 1).translate(PRINTABLE)  # a blank first would fold into the field above
    return (b"." + text if kind < 0.25 else text) + b"\r\n"


PRINTABLE = bytes(32 + byte % 95 for byte in range(256))


class Block:
    """A fixed run of pseudo-random lines from which every message takes a stretch, plain and with its dots stuffed."""

    def __init__(self, seed: int = 1) -> None:
        rng, plain, stuffed = random.Random(seed), bytearray(), bytearray()
        self._at, self._stuffed_at = [0], [0]
        while len(plain) < BLOCK_BYTES:
            line = _line(rng)
            plain += line
            stuffed += b"." + line if line[:1] == b"." else line
            self._at.append(len(plain))
            self._stuffed_at.append(len(stuffed))
        self._plain, self._stuffed = bytes(plain), bytes(stuffed)

    def pieces(self, number: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """The content of a message, exactly `size` bytes (not 1), as pairs of plain bytes and the same as on the wire."""
        head = b"X-Number: %d\r\nX-Size: %d\r\n\r\n" % (number, size)
        left = size
        if left >= len(head) and left - len(head) != 1:
            yield head, head
            left -= len(head)
        line = number * 7919 % (len(self._at) - 1)
        while left:
            start = self._at[line]
            stop_line = bisect_right(self._at, start + min(left, PIECE_BYTES)) - 1
            if self._at[stop_line] - start == left - 1:  # a lone byte would be left, and a line needs two
                stop_line -= 1
            if stop_line <= line:
                filler = b"x" * (left - 2) + b"\r\n"  # shorter than the next line
                yield filler, filler
                return
            stop = self._at[stop_line]
            yield self._plain[start:stop], self._stuffed[self._stuffed_at[line] : self._stuffed_at[stop_line]]
            left -= stop - start
            line = stop_line % (len(self._at) - 1)


def digest(plain: bytes | bytearray | memoryview) -> str:
    """The digest of a message's content."""
    return hashlib.sha256(plain).hexdigest()


def skip_trace(message: bytes | bytearray) -> int:
    """Where the content begins behind the Received fields that servers put on top (with their folded lines)."""
    at = 0
    while message[at : at + 9].lower() == b"received:":
        while True:
            end = message.find(b"\n", at)
            if end < 0:
                return len(message)
            at = end + 1
            if message[at : at + 1] not in (b" ", b"\t"):
                break
    return at


def unstuff(wire: bytes) -> bytes:
    """Content as it came on the wire (whole, without the final dot) with its dots unstuffed."""
    plain = wire.replace(b"\r\n.", b"\r\n")
    return plain[1:] if plain[:1] == b"." else plain
