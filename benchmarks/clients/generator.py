"""A numbered generator: `python -m benchmarks.clients.generator RECORD PORT --messages N ...`.

It keeps some sessions to the server, reconnects when they break, and writes a line for each message that was answered, or
whose final dot was not (`records`): that one is in doubt and not sent again, while one that never got so far is. Rules:
content, size and number of recipients follow from the seed; at most `--rate` messages a second begin. On SIGUSR1 no more
messages begin, and it ends once those that have begun are done with.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import signal
import time
from collections.abc import Iterator
from typing import BinaryIO

import attrs

from benchmarks.results.content import Block, Size, recipient, sender
from benchmarks.results.records import Acknowledged, Unanswered

REPLY_TIMEOUT_S = 60.0
RECONNECT_S = 0.05
PER_CONNECTION = 50  # then QUIT and anew, so that both kinds of connection occur


@attrs.frozen
class Numbered:
    """One message to be sent."""

    number: int
    size_bytes: int
    recipients: int


def numbered(
    messages: int, size: Size, recipients: int, seed: int, first: int = 0, *, is_exact: bool = False
) -> Iterator[Numbered]:
    """The messages of a trial, 1 to `recipients` recipients each, or just so many; their numbers begin with `first`. 0
    messages: no end."""
    rng = random.Random(seed)
    for number in range(first, first + messages) if messages else itertools.count(first):
        yield Numbered(number, size.draw(rng), recipients if is_exact else rng.randint(1, recipients))


class Refused(Exception):
    """Another reply than expected."""


LOST = (OSError, EOFError, TimeoutError, ValueError, Refused)  # ValueError: a line without end


class Pace:
    """Hands out the right to begin a message, `rate` a second (0: at once)."""

    def __init__(self, rate: float) -> None:
        self._step, self._next = (1 / rate if rate else 0.0), time.monotonic()

    async def turn(self) -> None:
        """Waits for the next place; time lost waiting for the server is not made up."""
        now = time.monotonic()
        self._next = max(self._next + self._step, now)
        if self._next > now:
            await asyncio.sleep(self._next - now)


class Connection:
    """One SMTP connection. Raises: OSError, EOFError, TimeoutError, Refused from every method."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pipelining: bool) -> None:
        self._reader, self._writer, self._pipelining = reader, writer, pipelining
        self.sent = 0
        self.digest = "-"
        self.in_doubt = False
        self.alive = True

    @classmethod
    async def open(cls, port: int, pipelining: bool) -> Connection:
        """Connects and greets."""
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), REPLY_TIMEOUT_S)
        connection = cls(reader, writer, pipelining)
        try:
            await connection._reply(b"2")
            await connection._command(b"EHLO generator.trial.example\r\n", b"2")
        except BaseException:
            connection.abort()
            raise
        return connection

    async def send(self, message: Numbered, block: Block) -> None:
        """One transaction; returns when the server answered the final dot with 250. `digest` is then what was sent."""
        number, self.in_doubt, self.digest = message.number, False, "-"
        commands = [b"MAIL FROM:<%s>\r\n" % sender(number)]
        commands += [b"RCPT TO:<%s>\r\n" % recipient(number, index) for index in range(message.recipients)]
        if self._pipelining:
            self._writer.write(b"".join([*commands, b"DATA\r\n"]))
            for _ in commands:
                await self._reply(b"2")
            await self._reply(b"3")
        else:
            for command in commands:
                await self._command(command, b"2")
            await self._command(b"DATA\r\n", b"3")
        digest = hashlib.sha256()
        for plain, stuffed in block.pieces(number, message.size_bytes):
            digest.update(plain)
            self._writer.write(stuffed)
            await asyncio.wait_for(self._writer.drain(), REPLY_TIMEOUT_S)
        self.digest, self.in_doubt = digest.hexdigest(), True
        await self._command(b".\r\n", b"2")
        self.sent += 1

    async def quit(self) -> None:
        """Takes leave."""
        await self._command(b"QUIT\r\n", b"2")

    def abort(self) -> None:
        """Closes at once."""
        self.alive = False
        self._writer.transport.abort()

    async def _command(self, command: bytes, expected: bytes) -> None:
        self._writer.write(command)
        await self._reply(expected)

    async def _reply(self, expected: bytes) -> None:
        while True:
            line = await asyncio.wait_for(self._reader.readline(), REPLY_TIMEOUT_S)
            if not line.endswith(b"\n"):
                raise EOFError
            if line[3:4] != b"-":
                break
        if line[:1] != expected:
            raise Refused(line.decode("ascii", "replace").strip())


class Generator:
    """The sessions together."""

    def __init__(self, record: BinaryIO, port: int, source: Iterator[Numbered], rate: float) -> None:
        self._record, self._port, self._source, self._pace = record, port, source, Pace(rate)
        self._block = Block()

    def end(self) -> None:
        """No more messages begin."""
        self._source = iter(())

    async def session(self, pipelining: bool) -> None:
        """Sends until there is nothing left, connecting as often as needed."""
        connection: Connection | None = None
        while (message := next(self._source, None)) is not None:
            await self._pace.turn()
            answered = False
            while not answered:
                current = connection or await self._connect(pipelining)
                answered = await self._attempt(current, message)
                connection = current if current.alive else None
            if connection is not None and connection.sent >= PER_CONNECTION:
                await self._leave(connection)
                connection = None
        if connection is not None:
            await self._leave(connection)

    async def _attempt(self, connection: Connection, message: Numbered) -> bool:
        """Whether the message is done with: answered or in doubt. False: its final dot was never sent, it may go again."""
        began_at_s, head = time.monotonic(), (message.number, message.recipients, message.size_bytes)
        try:
            await connection.send(message, self._block)
        except LOST as e:
            connection.abort()
            reply = str(e) if isinstance(e, Refused) else ""
            if not reply and not connection.in_doubt:
                return False
            self._write(Unanswered(time.monotonic(), *head, connection.digest, reply).line())
            return True
        self._write(Acknowledged(time.monotonic(), *head, connection.digest, began_at_s).line())
        return True

    async def _connect(self, pipelining: bool) -> Connection:
        while True:
            try:
                return await Connection.open(self._port, pipelining)
            except LOST:
                await asyncio.sleep(RECONNECT_S)

    async def _leave(self, connection: Connection) -> None:
        try:
            await connection.quit()
        except LOST:
            pass
        finally:
            connection.abort()

    def _write(self, line: bytes) -> None:
        self._record.write(line)
        self._record.flush()


async def generate(options: argparse.Namespace, record: BinaryIO) -> None:
    """All sessions, every second of which pipelines."""
    size = Size(options.size, options.fixed)
    source = numbered(options.messages, size, options.recipients, options.seed, options.first, is_exact=options.exact)
    generator = Generator(record, options.port, source, options.rate)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, generator.end)
    await asyncio.gather(*(generator.session(index % 2 == 1) for index in range(options.sessions)))


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients.generator")
    parser.add_argument("record", help="the file for the record")
    parser.add_argument("port", type=int, help="where the server listens on 127.0.0.1")
    parser.add_argument("--messages", type=int, default=10000, help="how many (0: until SIGUSR1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--size", type=int, default=4096, help="bytes of content: the largest, or with --fixed each")
    parser.add_argument("--fixed", action="store_true", help="all of one size, not log-uniform from 0")
    parser.add_argument("--recipients", type=int, default=1, help="1 to this many for each message")
    parser.add_argument("--exact", action="store_true", help="each message has so many recipients, not 1 to so many")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second (0: as fast as it goes)")
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    chosen = arguments().parse_args()
    with open(chosen.record, "ab") as file:
        asyncio.run(generate(chosen, file))
