"""Slow clients beside good ones: `python -m benchmarks.slow_clients [--nofile 64]`.

A thousand strangers say a byte a second, in commands or in content, or read nothing, or say nothing at all; who is closed
comes again a second later. Beside them some good clients, of `relay_clients`, send numbered messages to be relayed, and try
again after a 421, as mail servers do. Then the slow ones leave, and the good ones go on for a while.

Exit code 1 if a good message was not accepted and delivered, if the slowest twentieth of them took a second or more (with
`--nofile` only before and behind the slow ones: connections are fewer than good clients), or if the server has not
recovered. Bounded in number and time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import attrs

from benchmarks.stage.directories import stage
from benchmarks.stage.load import Sink
from benchmarks.stage.pressured import LOCAL, Pressured
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from tests.support.processes import TrialError

HOST = "127.0.0.1"
STEP_S = 1.0
"""Between two bytes of a slow client, and before one that was closed comes again."""
REPLY_TIMEOUT_S = 30.0
AGAIN_S = 0.2
"""Before a good client tries again."""
PAUSE_S = 0.25
"""Between two messages of a good client."""
RECOVERY_S = 5.0
CONTENT = (b"Subject: good\r\n\r\n" + b"x" * 78 + b"\r\n") * 50
GOOD_P95_S = 1.0


class Slow:
    """The slow clients: four kinds, a quarter each."""

    def __init__(self, port: int, count: int) -> None:
        self._port, self._count = port, count
        self.endings: Counter[str] = Counter()
        self.open = 0

    async def run(self) -> None:
        """Until cancelled."""
        kinds = (self._idle, self._drip_commands, self._drip_content, self._never_read)
        await asyncio.gather(*(self._again_and_again(kinds[index % 4], index) for index in range(self._count)))

    async def _again_and_again(self, kind: object, index: int) -> None:
        await asyncio.sleep(index / self._count)
        while True:
            source = (f"127.{1 + index % 200}.{index // 200}.2", 0)
            writer = None
            try:
                reader, writer = await asyncio.open_connection(HOST, self._port, local_addr=source, limit=1 << 12)
                self.open += 1
                try:
                    await kind(reader, writer)  # type: ignore[operator]  # one of four methods
                finally:
                    self.open -= 1
            except (OSError, EOFError) as e:
                self.endings[str(e) or type(e).__name__] += 1
            finally:
                if writer is not None:
                    writer.transport.abort()
            await asyncio.sleep(STEP_S)

    async def _idle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self._look(line)
        raise EOFError("closed")

    async def _drip_commands(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._drip(
            reader, writer, b"EHLO drip.trial.example\r\nNOOP\r\nMAIL FROM:<a@drip.trial.example>\r\nRSET\r\n" * 100
        )

    async def _drip_content(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._look(await reader.readline())
        writer.write(b"EHLO d.trial.example\r\nMAIL FROM:<a@d.trial.example>\r\nRCPT TO:<%b>\r\nDATA\r\n" % LOCAL)
        while not (line := await reader.readline()).startswith(b"354"):
            self._look(line)
        await self._drip(reader, writer, b"Subject: slow\r\n\r\n" + b"x" * 70 + b"\r\n" * 1000)

    async def _drip(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
        for byte in data:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STEP_S):
                    while True:
                        self._look(await reader.readline())
            writer.write(bytes([byte]))

    async def _never_read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._look(await reader.readline())
        sock = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a transport of a socket
        while True:
            writer.write(b"HELP\r\n" * 90)
            await asyncio.sleep(STEP_S)
            if writer.transport.is_closing():
                raise EOFError("closed")

    @staticmethod
    def _look(line: bytes) -> None:
        if not line:
            raise EOFError("closed")
        if line.startswith((b"421", b"554")):
            raise EOFError(line.decode("ascii", "replace").strip())


@attrs.define
class Good:
    """The good clients. Seconds of each message, from its first connection to its 250."""

    port: int
    seconds: list[float] = attrs.Factory(list)
    tries: int = 0
    lost: list[str] = attrs.Factory(list)

    async def run(self, count: int, seconds: float) -> None:
        """So many clients, which begin no message after so many seconds."""
        ends_at = time.monotonic() + seconds
        await asyncio.gather(*(self._client(index, ends_at) for index in range(count)))

    async def _client(self, index: int, ends_at: float) -> None:
        number = 0
        while time.monotonic() < ends_at:
            began, number = time.monotonic(), number + 1
            for _ in range(100):
                self.tries += 1
                try:
                    await asyncio.wait_for(self._send(index, number), REPLY_TIMEOUT_S)
                except (OSError, EOFError, TimeoutError):
                    await asyncio.sleep(AGAIN_S)
                else:
                    self.seconds.append(time.monotonic() - began)
                    break
            else:
                self.lost.append(f"{index}-{number}")
            await asyncio.sleep(PAUSE_S)

    async def _send(self, index: int, number: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.port, local_addr=(HOST, 0))
        try:
            for line, code in (
                (b"", b"220"),
                (b"EHLO good.trial.example\r\n", b"250"),
                (b"MAIL FROM:<a@good.trial.example>\r\n", b"250"),
                (b"RCPT TO:<%d.%d@far.trial.example>\r\n" % (index, number), b"250"),
                (b"DATA\r\n", b"354"),
                (CONTENT + b".\r\n", b"250"),
            ):
                writer.write(line)
                while (reply := await reader.readline())[3:4] == b"-":
                    pass
                if not reply.startswith(code):
                    raise EOFError(reply)
            writer.write(b"QUIT\r\n")
        finally:
            writer.close()

    @property
    def p95_s(self) -> float:
        """The slowest twentieth begins here."""
        return statistics.quantiles(self.seconds, n=20)[-1] if len(self.seconds) > 1 else float("inf")


@attrs.frozen
class Seen:
    """What one phase was like."""

    messages: int
    lost: int
    tries: int
    median_s: float
    p95_s: float
    slowest_s: float


def summary(good: Good) -> Seen:
    """Of one phase."""
    seconds = sorted(good.seconds) or [float("inf")]
    return Seen(
        len(good.seconds),
        len(good.lost),
        good.tries,
        round(statistics.median(seconds), 4),
        round(good.p95_s, 4),
        round(seconds[-1], 4),
    )


@attrs.define
class Watch:
    """The server meanwhile."""

    server: Pressured
    most_rss_kib: int = 0
    most_pss_kib: int = 0
    most_descriptors: int = 0
    most_slow: int = 0

    async def run(self, slow: Slow) -> None:
        """Until cancelled."""
        while True:
            rss, pss = self.server.memory_kib()
            self.most_rss_kib, self.most_pss_kib = max(self.most_rss_kib, rss), max(self.most_pss_kib, pss)
            self.most_descriptors = max(self.most_descriptors, self.server.descriptors())
            self.most_slow = max(self.most_slow, slow.open)
            await asyncio.sleep(0.5)


async def trial(server: Pressured, sink: Sink, options: argparse.Namespace) -> dict[str, object]:
    """All phases. Raises: TrialError."""
    before = server.memory_kib()
    alone = Good(server.port)
    await alone.run(options.good, RECOVERY_S)
    slow, watch, beside, afterwards = Slow(server.port, options.slow), Watch(server), Good(server.port), Good(server.port)
    cpu, began = server.cpu_s(), time.monotonic()
    tasks = [asyncio.create_task(slow.run()), asyncio.create_task(watch.run(slow))]
    await asyncio.sleep(2.0)  # until all of them are there
    await beside.run(options.good, options.seconds)
    share = (server.cpu_s() - cpu) / (time.monotonic() - began)
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    await asyncio.sleep(1.0)
    await afterwards.run(options.good, RECOVERY_S)
    accepted = len(alone.seconds) + len(beside.seconds) + len(afterwards.seconds)
    await asyncio.to_thread(sink.wait_for, accepted, 60.0)
    await asyncio.sleep(2.0)
    after = server.memory_kib()
    return {
        "slow clients at once": watch.most_slow,
        "what they were told": dict(slow.endings.most_common(8)),
        "good ones alone": attrs.asdict(summary(alone)),
        "beside the slow ones": attrs.asdict(summary(beside)),
        "when they had left": attrs.asdict(summary(afterwards)),
        "accepted": accepted,
        "delivered": sink.count(),
        "memory_mib": {
            name: {"rss": round(rss / 1024, 1), "pss": round(pss / 1024, 1)}
            for name, (rss, pss) in (
                ("before", before),
                ("most", (watch.most_rss_kib, watch.most_pss_kib)),
                ("after", after),
            )
        },
        "open files": {"most": watch.most_descriptors, "after": server.descriptors()},
        "processor share": round(share, 3),
    }


def complaints(seen: dict[str, object], is_short_of_files: bool) -> list[str]:
    """What was not as it should be."""
    found = []
    for phase in ("good ones alone", "beside the slow ones", "when they had left"):
        figures = seen[phase]
        assert isinstance(figures, dict)
        if figures["lost"] or not figures["messages"]:
            found.append(f"{phase}: {figures['lost']} messages were not accepted")
        if figures["p95_s"] >= GOOD_P95_S and not (is_short_of_files and phase == "beside the slow ones"):
            found.append(f"{phase}: the slowest twentieth took {figures['p95_s']} s or more")
    if seen["accepted"] != seen["delivered"]:
        found.append(f"{seen['accepted']} accepted, {seen['delivered']} delivered")
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow_clients")
    add_option(parser)
    parser.add_argument("--slow", type=int, default=1000)
    parser.add_argument("--good", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--nofile", type=int, default=0, help="the server's limit of open files (0: as it is)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on a file system with real barriers")
    options = parser.parse_args()
    with stage(options.directory) as at, contextlib.ExitStack() as stack:
        sink = stack.enter_context(contextlib.closing(Sink(at.logs)))
        place = stack.enter_context(at.place(sink.port))
        server = Pressured(provider=chosen(options))
        stack.callback(server.close)
        server.start(place, ["prlimit", f"--nofile={options.nofile}"] if options.nofile else ())
        say(f"{options.slow} slow and {options.good} good clients for {options.seconds:g} s")
        seen = asyncio.run(trial(server, sink, options))
        server.stop()
        lines = server.log.read_bytes().splitlines()
        events = [line for line in lines if b" [mail] " not in line]
        refused = [line for line in lines if b" from unknown[127." in line]
        seen["lines of the log"] = {
            "in all": len(lines),
            "on clients turned away or cut off": len(refused),
            "of the program": len(events),
        }
        for line in refused[:5]:
            say(line.decode("utf-8", "replace"))
        for line in events[:20]:
            say(line.decode("utf-8", "replace"))
    print(json.dumps(seen, indent=1))
    found = complaints(seen, bool(options.nofile))
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TrialError as e:
        sys.exit(f"slow_clients: {e}")
