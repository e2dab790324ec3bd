"""A next hop with a limit, of all servers: `python -m tests.durability.harness.fleet.limited FILE PORT CAP`.

It takes CAP connections, 0: all, and greets others with 421, which it writes down: `C` and the time. A message is answered
`REPLY_S` behind its final dot.
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

REPLY_S = 0.1


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
            return super().greeting()
        self._record.write(b"C %.6f\n" % time.monotonic())
        return b"421 4.7.0 Too many connections\r\n"

    def connection_lost(self, error: Exception | None) -> None:
        """There is room for another one."""
        if self._is_counted:
            self._standing.leave()
        super().connection_lost(error)


def refusals(data: bytes) -> list[float]:
    """When connections were refused."""
    return [float(line.split()[1]) for line in whole_lines(data) if line.startswith(b"C ")]


async def serve(path: Path, port: int, cap: int) -> None:
    """Until SIGTERM."""
    weather, lateness, standing = Weather(0), Lateness(REPLY_S, puts_off=False), Standing(cap)
    lateness.change()
    with path.open("ab", buffering=1 << 20) as record:
        server = await listen(lambda: LimitedSink(record, weather, lateness, standing), port)
        await keep_record(record)
        server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
