"""The one generator of names in a process: every write of the process gets a stamp of its own.

*Rules*: the process id is read for each stamp, because a daemon is another process than the one that made the generator.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import cache

from mailismus.chunks.names import RANDOM_BYTES, Stamp

BootCounter = Callable[[], tuple[int, int]]
"""The number of boots, and that of a write since the last one; blocks, may raise OSError."""


class NameGenerator:
    """Makes stamps; safe from several threads (the count is one step of the interpreter). A program uses the one of
    `process_generator`."""

    def __init__(self, process_id: Callable[[], int] = os.getpid, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._process_id, self._random_bytes = process_id, random_bytes
        self._count = itertools.count(1)
        self._boot_counter: BootCounter | None = None

    def use_boot_counter(self, counter: BootCounter | None) -> None:
        """Count boots, and the writes since a boot, by this from now on; None: both are 0."""
        self._boot_counter = counter

    def next(self, now: float) -> Stamp:
        """The stamp of a write at `now` (UTC seconds). Raises OSError if there is a counter of boots and it fails."""
        boots, sequence = (0, 0) if self._boot_counter is None else self._boot_counter()
        return Stamp(now, self._process_id(), next(self._count), self._random_bytes(RANDOM_BYTES), boots, sequence)


@cache
def process_generator() -> NameGenerator:
    """Return the generator of this process: always the same one."""
    return NameGenerator()
