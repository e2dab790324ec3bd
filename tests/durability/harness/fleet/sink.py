"""The next hop of a server of the fleet: `python -m tests.durability.harness.fleet.sink FILE PORT SEED`.

As `benchmarks.sinks.flaky`, but it refuses some recipients for good (`is_refused`), and its record has a line for each
recipient of a message, and for each that a report says has failed (`Taken`).
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from pathlib import Path

import attrs

from benchmarks.results.content import digest, number_and_index, skip_trace, unstuff
from benchmarks.results.records import whole_lines
from benchmarks.sinks.flaky import Flaky, Weather
from benchmarks.sinks.recording import keep_record

REFUSED_OF = 10
"""Of so many messages one has a recipient that is refused."""
_FAILED = re.compile(rb"^Final-Recipient: rfc822; (\S+)\r$", re.MULTILINE)


def is_refused(number: int, index: int) -> bool:
    """Whether this recipient is refused for good."""
    return index == 0 and number % REFUSED_OF == 0


@attrs.frozen
class Taken:
    """A copy of a message has come, or a report that names a recipient. `digest`: of the content, by which copies of one
    report are known. Seconds of the machine's monotonic clock."""

    begun_s: float
    """When its MAIL was read."""
    at_s: float
    """When it was answered, or the connection closed in place of that."""
    is_answered: bool
    entry: tuple[int, int]
    size_bytes: int
    digest: str
    is_report: bool = False

    def line(self) -> bytes:
        """Blanks between: kind (`D`, `R`), answered or not (`1`, `0`), begun, at, number, index, size, digest."""
        head = b"%s %d %.6f %.6f" % (b"R" if self.is_report else b"D", self.is_answered, self.begun_s, self.at_s)
        return head + b" %d %d %d %s\n" % (*self.entry, self.size_bytes, self.digest.encode())


class FleetSink(Flaky):
    """One connection."""

    _begun_s = 0.0

    def reply_to_recipient(self, path: bytes) -> bytes:
        """As the mood is, but for those that are refused."""
        if path.startswith(b"r") and is_refused(*number_and_index(path)):
            return b"550 5.1.1 No such user\r\n"
        return super().reply_to_recipient(path)

    def _command(self) -> bool:
        if self._buffer[:4].upper() == b"MAIL":
            self._begun_s = time.monotonic()
        return super()._command()

    def take(self, wire: bytes, is_answered: bool) -> None:
        """Write down a message, or what a report says."""
        plain, is_report = unstuff(wire), not self._sender
        content = memoryview(plain)[skip_trace(plain) :]
        name, now = digest(content), time.monotonic()
        for address in _FAILED.findall(plain) if is_report else self._recipients:
            entry = number_and_index(address)
            self._record.write(Taken(self._begun_s, now, is_answered, entry, len(content), name, is_report).line())
        if is_answered:
            self._replies.append(b"250 2.0.0 Ok: recorded\r\n")
        else:
            self.hang_up()


def parse(data: bytes) -> list[Taken]:
    """What a sink has written down."""
    found = []
    for line in whole_lines(data):
        if not line.startswith(b"B "):
            kind, answered, begun, at, number, index, size, name = line.split(b" ")
            entry, times = (int(number), int(index)), (float(begun), float(at))
            found.append(Taken(*times, answered == b"1", entry, int(size), name.decode(), kind == b"R"))
    return found


async def serve(path: Path, port: int, seed: int) -> None:
    """Until SIGTERM. With seed 0 it is always well."""
    weather = Weather(seed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, weather.calm.set)
    if not seed:
        weather.calm.set()
    with path.open("ab", buffering=1 << 20) as record:
        changing = asyncio.create_task(weather.go_on(lambda: FleetSink(record, weather), port))
        await keep_record(record)
        changing.cancel()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
