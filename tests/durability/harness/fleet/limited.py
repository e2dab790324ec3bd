"""A next hop with a limit, of all servers: `python -m tests.durability.harness.fleet.limited FILE PORT CAP REPLY_S`.

It takes CAP connections, 0: all, and greets others with 421, which it writes down: `C` and the time. How many stand it
writes down as one comes or goes: `S`, the time and the number. A message is answered REPLY_S behind its final dot.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import BinaryIO

import attrs

from benchmarks.results.records import whole_lines
from benchmarks.sinks.flaky import Weather
from benchmarks.sinks.recording import keep_record, listen
from tests.durability.harness.fleet.sink import FleetSink, Lateness


@attrs.define
class Standing:
    """Connections that stand. `cap`: how many are taken; 0: all."""

    cap: int
    count: int = 0

    def enter(self) -> bool:
        """One more, if it may."""
        if self.cap and self.count >= self.cap:
            return False
        self.count += 1
        return True

    def leave(self) -> None:
        """One less."""
        self.count -= 1


class LimitedSink(FleetSink):
    """One connection."""

    _is_counted = False

    def __init__(self, record: BinaryIO, weather: Weather, lateness: Lateness, standing: Standing) -> None:
        super().__init__(record, weather, lateness)
        self._standing = standing

    def greeting(self) -> bytes:
        """421 above the cap."""
        self._is_counted = self._standing.enter()
        if self._is_counted:
            self._note_standing()
            return super().greeting()
        self._record.write(b"C %.6f\n" % time.monotonic())
        return b"421 4.7.0 Too many connections\r\n"

    def connection_lost(self, error: Exception | None) -> None:
        """There is room for another one."""
        if self._is_counted:
            self._standing.leave()
            self._note_standing()
        super().connection_lost(error)

    def _note_standing(self) -> None:
        self._record.write(b"S %.6f %d\n" % (time.monotonic(), self._standing.count))


def refusals(data: bytes) -> list[float]:
    """When connections were refused."""
    return [float(line.split()[1]) for line in whole_lines(data) if line.startswith(b"C ")]


def standing_of(data: bytes) -> list[tuple[float, int]]:
    """How many connections stood, from each time on."""
    lines = (line.split() for line in whole_lines(data) if line.startswith(b"S "))
    return [(float(at), int(count)) for _, at, count in lines]


async def serve(path: Path, port: int, cap: int, reply_s: float) -> None:
    """Until SIGTERM."""
    weather, lateness, standing = Weather(0), Lateness(reply_s, puts_off=False), Standing(cap)
    lateness.change()
    with path.open("ab", buffering=1 << 20) as record:
        server = await listen(lambda: LimitedSink(record, weather, lateness, standing), port)
        await keep_record(record)
        server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
