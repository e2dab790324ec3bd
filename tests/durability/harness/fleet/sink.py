"""The next hop of a server of the fleet: `python -m tests.durability.harness.fleet.sink FILE PORT SEED`.

As `benchmarks.sinks.flaky`, but it refuses some recipients for good (`is_refused`), and its record has a line for each
recipient of a message, and for each that a report says has failed (`Taken`). From one SIGUSR2 to the next it is late: each
recipient is told to come back once, and then waits `LATE_S` for the answer to its message. A message whose sender has hung
up by then was not taken.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

import attrs

from benchmarks.results.content import digest, number_and_index, skip_trace, unstuff
from benchmarks.results.records import whole_lines
from benchmarks.sinks.flaky import Flaky, Weather
from benchmarks.sinks.recording import keep_record

REFUSED_OF = 10
"""Of so many messages one has a recipient that is refused."""
LATE_S = 8.0
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


class Lateness:
    """Whether the next hop is late, by how much, and whom it has told to come back."""

    def __init__(self, late_s: float = LATE_S, *, puts_off: bool = True) -> None:
        self.late_s, self.is_on, self._puts_off = late_s, False, puts_off
        self._told: set[bytes] = set()

    def change(self) -> None:
        """It begins or ends."""
        self.is_on = not self.is_on

    def puts_off(self, path: bytes) -> bool:
        """Whether this recipient is told to come back, which is done once."""
        if not (self.is_on and self._puts_off) or path in self._told:
            return False
        self._told.add(path)
        return True


class FleetSink(Flaky):
    """One connection."""

    _begun_s = 0.0
    _is_late = False
    """Whether an answer is waited for: what comes behind it waits too."""

    def __init__(self, record: BinaryIO, weather: Weather, lateness: Lateness) -> None:
        super().__init__(record, weather)
        self._lateness = lateness

    def reply_to_recipient(self, path: bytes) -> bytes:
        """As the mood is, but for those that are refused."""
        if path.startswith(b"r") and is_refused(*number_and_index(path)):
            return b"550 5.1.1 No such user\r\n"
        if self._lateness.puts_off(path):
            return b"451 4.2.1 Not now\r\n"
        return super().reply_to_recipient(path)

    def _command(self) -> bool:
        if self._is_late:
            return False
        if self._buffer[:4].upper() == b"MAIL":
            self._begun_s = time.monotonic()
        return super()._command()

    def take(self, wire: bytes, is_answered: bool) -> None:
        """Write down a message, or what a report says; late, if it is to be."""
        if self._lateness.is_on and is_answered:
            self._is_late = True
            asyncio.get_running_loop().call_later(self._lateness.late_s, self._take_late, wire)
        else:
            self._take(wire, is_answered)

    def _take_late(self, wire: bytes) -> None:
        self._is_late = False
        if not self._transport.is_closing():
            self._take(wire, True)
            self.data_received(b"")

    def _take(self, wire: bytes, is_answered: bool) -> None:
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
        if line[:2] in (b"D ", b"R "):
            kind, answered, begun, at, number, index, size, name = line.split(b" ")
            entry, times = (int(number), int(index)), (float(begun), float(at))
            found.append(Taken(*times, answered == b"1", entry, int(size), name.decode(), kind == b"R"))
    return found


async def serve(path: Path, port: int, seed: int) -> None:
    """Until SIGTERM. With seed 0 it is always well."""
    weather, lateness = Weather(seed), Lateness()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, weather.calm.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, lateness.change)
    if not seed:
        weather.calm.set()
    with path.open("ab", buffering=1 << 20) as record:
        changing = asyncio.create_task(weather.go_on(lambda: FleetSink(record, weather, lateness), port))
        await keep_record(record)
        changing.cancel()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
