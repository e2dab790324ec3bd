"""A sink that hangs for ever: `python -m benchmarks.sinks.hanging FILE PORT WAY`, WAY one of `greeting` and `dot`.

It takes each connection and never greets, or behaves until the final dot and never answers that. A line `B AT` when it
begins to hang on a connection (seconds of the machine's monotonic clock), a line `E AT` when the peer has given that one up.
"""

from __future__ import annotations

import asyncio
import enum
import sys
import time
from typing import BinaryIO

from benchmarks.results.records import whole_lines
from benchmarks.sinks.recording import Final, Recording, serve


class Way(enum.Enum):
    """What it never does."""

    GREETING = "greeting"
    DOT = "dot"


class Hanging(Recording):
    """One connection."""

    def __init__(self, record: BinaryIO, way: Way) -> None:
        super().__init__(record)
        self._way, self._hangs = way, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets, or never does."""
        if self._way is Way.GREETING:
            self._begin()
        else:
            super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Whoever is left hanging is not answered, whatever comes."""
        if not self._hangs:
            super().data_received(data)

    def final(self) -> Final:
        """The final dot is never answered."""
        self._begin()
        return Final.HANG

    def connection_lost(self, error: Exception | None) -> None:
        """The peer has had enough, or this program ends."""
        if self._hangs:
            self._record.write(b"E %.6f\n" % time.monotonic())

    def _begin(self) -> None:
        self._hangs = True
        self._record.write(b"B %.6f\n" % time.monotonic())


def hung(data: bytes) -> tuple[int, int]:
    """From the record: on how many connections it has hung, and how many of these the peer gave up."""
    lines = whole_lines(data)
    return sum(line.startswith(b"B") for line in lines), sum(line.startswith(b"E") for line in lines)


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        way = Way(sys.argv[3])
        asyncio.run(serve(lambda: Hanging(file, way), file, int(sys.argv[2])))
