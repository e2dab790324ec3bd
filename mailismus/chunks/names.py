"""Unique names: their parts, and the strategies that choose them (pure).

    time . PARTS . host          1700000000.M250000P42Q1.mx.example

*Rules*: time is UTC seconds. A strategy is a list of parts, written in its order; each part is its letter and a value. No
part of an address or of a message is in a name. In the host `/` is written `\\057` and `:` `\\072`, as readers of maildirs
expect. The inode's number, `I`, is known when the file is there: the name under which the file is made has no such part.

Source: seed 003 (b, Unique File Name Creation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

RANDOM_BYTES = 8


@attrs.frozen
class Stamp:
    """What tells one write from all others. The generator gives no stamp twice."""

    at: float
    """UTC seconds."""
    process_id: int
    count: int
    """Which write of the process it is, from 1."""
    random: bytes
    """`RANDOM_BYTES` of the system's source."""
    boots: int = 0
    """How often the machine was booted, if something counts that."""
    sequence: int = 0
    """Which write since the boot it is, of all processes, from 0; if something counts that."""

    @property
    def seconds(self) -> int:
        """Whole UTC seconds."""
        return int(self.at * 1_000_000) // 1_000_000

    @property
    def micros(self) -> int:
        """Microseconds of that second."""
        return int(self.at * 1_000_000) % 1_000_000


PARTS: Mapping[str, Callable[[Stamp], str]] = {
    "#": lambda stamp: f"#{stamp.sequence:x}",
    "X": lambda stamp: f"X{stamp.boots:x}",
    "M": lambda stamp: f"M{stamp.micros:06d}",
    "P": lambda stamp: f"P{stamp.process_id}",
    "Q": lambda stamp: f"Q{stamp.count}",
    "R": lambda stamp: f"R{stamp.random.hex()}",
}
"""The parts that are known before the file is there, by letter."""

INODE = "I"


class NameStrategy(Protocol):
    """Makes names of stamps. Different stamps have different names."""

    def made_name(self, stamp: Stamp) -> str:
        """The name under which the file is made and written."""

    def final_name(self, stamp: Stamp, inode_number: int) -> str:
        """The name under which the file counts."""


class PartStrategy:
    """Names of modern delivery identifiers: `parts` are letters of `PARTS`, and `I`. Raises `ValueError` for others, and for
    parts that do not tell two writes of one process apart."""

    def __init__(self, parts: str, host: bytes) -> None:
        unknown = "".join(sorted(set(parts) - PARTS.keys() - {INODE}))
        if unknown or len(set(parts)) != len(parts):
            raise ValueError(f'"{parts}" is not a list of different parts out of {", ".join((*PARTS, INODE))}')
        if not {"Q", "R", "#"} & set(parts):
            raise ValueError(f'"{parts}" does not tell two writes of one moment apart: add Q, R or #')
        if not ({"P", "R"} & set(parts) or {"#", "X"} <= set(parts)):
            raise ValueError(f'"{parts}" does not tell two processes apart: add P or R, or # with X')
        self._host = _host_in_names(host)
        self._parts = parts

    def made_name(self, stamp: Stamp) -> str:
        return self._name(stamp, "")

    def final_name(self, stamp: Stamp, inode_number: int) -> str:
        return self._name(stamp, f"{INODE}{inode_number:x}")

    def _name(self, stamp: Stamp, inode: str) -> str:
        middle = "".join(inode if part == INODE else PARTS[part](stamp) for part in self._parts)
        return f"{stamp.seconds}.{middle}.{self._host}"


class OldStrategy:
    """Names of old delivery identifiers: the process, and which write of it this is: time, `n_m`, host. `n` alone is no
    strategy: this process makes many writes."""

    def __init__(self, host: bytes) -> None:
        self._host = _host_in_names(host)

    def made_name(self, stamp: Stamp) -> str:
        return f"{stamp.seconds}.{stamp.process_id}_{stamp.count}.{self._host}"

    def final_name(self, stamp: Stamp, inode_number: int) -> str:
        return self.made_name(stamp)


def _host_in_names(host: bytes) -> str:
    text = "".join(chr(byte) if 33 <= byte < 127 else "_" for byte in host) or "localhost"
    return text.replace("/", r"\057").replace(":", r"\072")


class InodeStrategy:
    """Names of qmail's queue: while it is made, a file has a name that tells one write of one process from all others; then
    the number of its inode, in decimal."""

    def made_name(self, stamp: Stamp) -> str:
        return f"{stamp.seconds}.{stamp.process_id}.{stamp.count}.{stamp.random.hex()}"

    def final_name(self, stamp: Stamp, inode_number: int) -> str:
        return str(inode_number)
