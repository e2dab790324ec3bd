"""A sink that says "not now" to every recipient and writes down when: `python -m benchmarks.sinks.refusing FILE PORT`.

A line a refusal, `AT NUMBER INDEX` (seconds of the machine's monotonic clock; the address's numbers as in `content`).
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks.results.content import number_and_index
from benchmarks.results.records import whole_lines
from benchmarks.sinks.recording import Recording, serve


class Refusing(Recording):
    """One connection."""

    def reply_to_recipient(self, path: bytes) -> bytes:
        """451, always."""
        self._record.write(b"%.6f %d %d\n" % (time.monotonic(), *number_and_index(path)))
        return b"451 4.2.1 Not now\r\n"


def parse_refusals(data: bytes) -> dict[tuple[int, int], list[float]]:
    """The moments of each entry (number, index), in order."""
    found: dict[tuple[int, int], list[float]] = {}
    for line in whole_lines(data):
        at, number, index = line.split(b" ")
        found.setdefault((int(number), int(index)), []).append(float(at))
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(lambda: Refusing(file), file, int(sys.argv[2])))
