"""All next hops in one process: `python -m benchmarks.scheduler.sink LOG TABLE PORT`.

It listens at each address of the table (`world.table`), behaves as the table says, and writes a line for each event
(`events`). On SIGUSR1 caps are gone. It says `ready` once it listens everywhere. It offers PIPELINING and takes all mail.

Rules: a line of the log is in the file 0.1 s later at most; commands are barely checked.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from benchmarks.scheduler.events import Event
from benchmarks.scheduler.world import Behaviour, parse_table
from benchmarks.sinks.recording import keep_record

END = b"\r\n.\r\n"
EHLO = b"250-sink.load.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n"


Later = Callable[[float, Callable[[], None]], object]
"""Call this function in so many seconds."""


class Hosts:
    """What all connections share: the log, the clock, and how many stand at each address."""

    def __init__(self, log: BinaryIO, later: Later) -> None:
        self._log = log
        self.later = later
        self._numbers = itertools.count(1)
        self.standing: Counter[str] = Counter()
        self.has_caps = True

    def number(self) -> int:
        """The number of the next connection."""
        return next(self._numbers)

    def lift_caps(self) -> None:
        """From now on every connection is taken."""
        self.has_caps = False

    def note(self, event: Event) -> None:
        """Write down."""
        self._log.write(event.line())


class Connection(asyncio.Protocol):
    """One connection. Units of work, commands and whole messages, are done one after the other."""

    def __init__(self, hosts: Hosts, address: str, behaviour: Behaviour) -> None:
        self._hosts, self._address, self._behaviour = hosts, address, behaviour
        self._number = hosts.number()
        self._buffer = bytearray()
        self._is_content = self._is_busy = self._is_refused = self._is_lost = False
        self._sender, self._recipients = "", list[str]()

    # Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet, or refuse."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        cap = self._behaviour.cap if self._hosts.has_caps else 0
        if cap and self._hosts.standing[self._address] >= cap:
            self._is_refused = True
            self._note("refused")
            transport.write(b"421 4.7.0 Too many connections\r\n")
            transport.close()
            return
        self._hosts.standing[self._address] += 1
        self._note("open")
        if not self._behaviour.is_mute:
            # the client has waited for a round trip less than it would have at that distance: for the connection itself
            self._send(b"220 sink.load.example ESMTP\r\n", 2 * self._behaviour.distance_s)

    def data_received(self, data: bytes) -> None:
        """Do what can be done."""
        if self._behaviour.is_mute or self._is_refused:
            return
        self._buffer += data
        if not self._is_busy:
            self._work()

    def connection_lost(self, error: Exception | None) -> None:
        """Write it down."""
        self._is_lost = True
        if not self._is_refused:
            self._hosts.standing[self._address] -= 1
            self._note("close")

    # Internal

    def _work(self) -> None:
        replies = []
        while not self._is_lost and (reply := self._take()) is not None:
            if self._behaviour.reply_s:
                self._is_busy = True
                self._hosts.later(self._behaviour.reply_s, partial(self._finish, reply))
                return
            self._note_dot(reply)
            replies.append(reply)
        if replies:
            self._send(b"".join(replies), self._behaviour.distance_s)

    def _finish(self, reply: bytes) -> None:
        self._is_busy = False
        if self._is_lost:
            return
        self._note_dot(reply)
        self._send(reply, self._behaviour.distance_s)
        self._work()

    def _send(self, data: bytes, delay_s: float) -> None:
        if delay_s:
            self._hosts.later(delay_s, partial(self._write, data))
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
            if data.endswith(b"221 2.0.0 Bye\r\n"):
                self._transport.close()

    def _take(self) -> bytes | None:
        """The reply to the next unit of work; None: it is not there yet."""
        if self._is_content:
            return self._take_content()
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        verb = line[:4].upper()
        if verb == b"MAIL":
            self._sender, self._recipients = _path(line), []
            self._note("mail", self._sender)
            return b"250 2.1.0 Ok\r\n"
        if verb == b"RCPT":
            self._recipients.append(_path(line))
            return b"250 2.1.5 Ok\r\n"
        if verb == b"DATA":
            self._is_content = True
            return b"354 Go on\r\n"
        if verb in (b"EHLO", b"HELO"):
            return EHLO
        return b"221 2.0.0 Bye\r\n" if verb == b"QUIT" else b"250 2.0.0 Ok\r\n"

    def _take_content(self) -> bytes | None:
        found = self._buffer.find(END)
        if found < 0:
            return None
        del self._buffer[: found + len(END)]
        self._is_content = False
        return b"250 2.0.0 Ok: taken\r\n"

    def _note_dot(self, reply: bytes) -> None:
        if reply.endswith(b"taken\r\n"):
            first = self._recipients[0] if self._recipients else "-"
            self._hosts.note(
                Event(time.monotonic(), self._address, self._number, "dot", self._sender, len(self._recipients), first)
            )

    def _note(self, word: str, sender: str = "") -> None:
        self._hosts.note(Event(time.monotonic(), self._address, self._number, word, sender))


def _path(line: bytes) -> str:
    return line.partition(b"<")[2].partition(b">")[0].decode("ascii", "replace") or "<>"


async def serve(log: BinaryIO, behaviours: dict[str, Behaviour], port: int) -> None:
    """Until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    hosts = Hosts(log, loop.call_later)

    loop.add_signal_handler(signal.SIGUSR1, hosts.lift_caps)
    servers = [
        await loop.create_server(
            partial(Connection, hosts, address, behaviour), address, port, backlog=1000, reuse_port=False
        )
        for address, behaviour in behaviours.items()
    ]
    print("ready", flush=True)
    await keep_record(log)
    for server in servers:
        server.close()


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(file, parse_table(Path(sys.argv[2]).read_text()), int(sys.argv[3])))
