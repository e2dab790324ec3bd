"""A recording sink that is in trouble: `python -m benchmarks.sinks.flaky FILE PORT SEED`.

Its mood changes at random every 0.2 to 1.5 s: well; port closed, the connections that stand too; 421 in place of a greeting;
451 to some recipients; 451 to some final dots; connections closed in place of the answer to some final dots. What it has
taken without answering is in its record as such (`records.Delivery`). On SIGUSR1 it is well for good.

Rules: a connection is closed by its end of the stream, never by a reset, so that what was answered has arrived.
"""

from __future__ import annotations

import asyncio
import enum
import random
import signal
import sys
from typing import BinaryIO

from benchmarks.sinks.recording import Final, Make, Recording, keep_record, listen

SHORTEST_S, LONGEST_S = 0.2, 1.5
SHARE = 0.3
"""Of the recipients or final dots that meet the mood."""


class Mood(enum.Enum):
    """What is wrong."""

    WELL = "well"
    CLOSED = "port closed"
    GREETS_421 = "421 in place of a greeting"
    REFUSES_RECIPIENTS = "451 to some recipients"
    REFUSES_DOTS = "451 to some final dots"
    CLOSES_AT_DOTS = "closes in place of answering some final dots"


class Weather:
    """The mood of the moment, and all connections."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.mood = Mood.WELL
        self.connections: set[Flaky] = set()
        self.calm = asyncio.Event()

    def strikes(self, mood: Mood) -> bool:
        """Whether this mood reigns and the lot falls on this one."""
        return self.mood is mood and self.rng.random() < SHARE

    def change(self) -> None:
        """Another mood, or well for good."""
        others = [mood for mood in Mood if mood is not self.mood]
        self.mood = Mood.WELL if self.calm.is_set() else self.rng.choice(others)

    async def go_on(self, make: Make, port: int) -> None:
        """Changes moods for ever, opening and closing the port. `make`: a connection."""
        server: asyncio.Server | None = None
        while True:
            if self.mood is Mood.CLOSED:
                if server is not None:
                    server.close()
                    server = None
                for connection in list(self.connections):
                    connection.hang_up()
            elif server is None:
                server = await listen(make, port)
            if self.calm.is_set() and self.mood is Mood.WELL:
                return
            try:
                await asyncio.wait_for(self.calm.wait(), self.rng.uniform(SHORTEST_S, LONGEST_S))
            except TimeoutError:
                pass
            self.change()


class Flaky(Recording):
    """One connection."""

    def __init__(self, record: BinaryIO, weather: Weather) -> None:
        super().__init__(record)
        self._weather = weather

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets, or not."""
        self._weather.connections.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self._weather.connections.discard(self)
        super().connection_lost(error)

    def greeting(self) -> bytes:
        """A greeting, or a refusal."""
        if self._weather.mood is Mood.GREETS_421:
            return b"421 4.3.2 sink.trial.example not now\r\n"
        return super().greeting()

    def reply_to_recipient(self, path: bytes) -> bytes:
        """The reply to RCPT."""
        if self._weather.strikes(Mood.REFUSES_RECIPIENTS):
            return b"451 4.2.1 Not now\r\n"
        return super().reply_to_recipient(path)

    def final(self) -> Final:
        """What becomes of a whole message."""
        if self._weather.strikes(Mood.REFUSES_DOTS):
            return Final.REFUSE
        return Final.CLOSE if self._weather.strikes(Mood.CLOSES_AT_DOTS) else Final.TAKE


async def serve(record: BinaryIO, port: int, seed: int) -> None:
    """Until SIGTERM or SIGINT."""
    weather = Weather(seed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, weather.calm.set)
    changing = asyncio.create_task(weather.go_on(lambda: Flaky(record, weather), port))
    await keep_record(record)
    changing.cancel()


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(file, int(sys.argv[2]), int(sys.argv[3])))
