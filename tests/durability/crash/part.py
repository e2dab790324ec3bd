"""A part of the long look, so that nights and machines can share it: `MAILISMUS_CRASH_PART=3/10` is the third of ten.

A digest of its names says to which part a workload belongs. So the parts are about as large as each other, the same
everywhere, and nothing is in two of them.
"""

from __future__ import annotations

import os
from hashlib import blake2b

import attrs

VARIABLE = "MAILISMUS_CRASH_PART"


@attrs.frozen
class Part:
    """The part `number` of `count`, from 1 on."""

    number: int = 1
    count: int = 1

    def has(self, name: str) -> bool:
        """Whether the workload of this name belongs to it."""
        digest = blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1


def parse_part(text: str) -> Part:
    """Return the part that `3/10` means; all of it for nothing. Raises `ValueError`."""
    if not text:
        return Part()
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{VARIABLE}={text}: write a part and how many there are, as 3/10")
    return Part(int(number), int(count))


def part_asked_for() -> Part:
    """Return the part that the environment names. Raises `ValueError`."""
    return parse_part(os.environ.get(VARIABLE, ""))
