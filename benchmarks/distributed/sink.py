"""The next hop of all servers: `python -m benchmarks.distributed.sink FILE PORT TURNS`.

As `benchmarks.sinks.recording`, but each recipient is taken at its attempt behind so many that are told "not now".
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import BinaryIO

from benchmarks.results.content import number_and_index
from benchmarks.sinks.recording import Recording, serve


class Deferring(Recording):
    """One connection. `refused`: of all connections, how often each recipient was."""

    def __init__(self, record: BinaryIO, turns: int, refused: Counter[tuple[int, int]]) -> None:
        super().__init__(record)
        self._turns, self._refused = turns, refused

    def reply_to_recipient(self, path: bytes) -> bytes:
        """451, so many times; then 250."""
        entry = number_and_index(path)
        if self._refused[entry] >= self._turns:
            return super().reply_to_recipient(path)
        self._refused[entry] += 1
        return b"451 4.2.1 Not now\r\n"


if __name__ == "__main__":
    refusals: Counter[tuple[int, int]] = Counter()
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(lambda: Deferring(file, int(sys.argv[3]), refusals), file, int(sys.argv[2])))
