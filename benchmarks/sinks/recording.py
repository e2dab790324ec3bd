"""A fast SMTP sink that keeps a record of what it took: `python -m benchmarks.sinks.recording FILE PORT`.

It offers PIPELINING and 8BITMIME, takes everything, and writes a line for each message (`records.Delivery`) at the moment
it answers the final dot, and for each transaction that its peer broke off (`records.Broken`). Rules: the record is in the
file within 0.1 s of the reply, and the last of it before a clean end (SIGTERM). Not here: judgement (`verdict`); sinks that
refuse or hang (`sinks.flaky`, `sinks.refusing`, `sinks.hanging`) override what is answered. It is an instrument for one
trusted peer: commands are barely checked.
"""

from __future__ import annotations

import asyncio
import enum
import signal
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

from benchmarks.results.content import digest, skip_trace, unstuff
from benchmarks.results.records import Broken, Delivery

END = b"\r\n.\r\n"
MAX_LINE = 4096
FLUSH_S = 0.1


class Final(enum.Enum):
    """What becomes of a whole message."""

    TAKE = "taken and answered"
    REFUSE = "refused with 451"
    CLOSE = "taken, and the connection closed in place of an answer"
    HANG = "neither taken nor ever answered"


class Recording(asyncio.Protocol):
    """One connection."""

    def __init__(self, record: BinaryIO) -> None:
        self._record = record
        self._buffer = bytearray()
        self._body = False
        self._scanned = 0
        self._sender = b""
        self._recipients: list[bytes] = []
        self._replies: list[bytes] = []
        self._is_hung_up = False
        self._is_open = False

    # ------------------------------------------------------------------ what is answered

    def greeting(self) -> bytes:
        """The greeting; what is not 220 is the last that is said."""
        return b"220 sink.trial.example ESMTP\r\n"

    def reply_to_recipient(self, path: bytes) -> bytes:
        """The reply to RCPT."""
        return b"250 2.1.5 Ok\r\n"

    def final(self) -> Final:
        """What becomes of the message that has come."""
        return Final.TAKE

    # ------------------------------------------------------------------ the protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        greeting = self.greeting()
        transport.write(greeting)
        if not greeting.startswith(b"220"):
            self.hang_up()

    def connection_lost(self, error: Exception | None) -> None:
        """A transaction that was open is broken off; but not by us."""
        if self._is_open and not self._is_hung_up:
            self._record.write(Broken(time.monotonic(), len(self._recipients)).line())

    def data_received(self, data: bytes) -> None:
        """All that can be answered is, in one write; the record is made before the reply leaves."""
        if self._is_hung_up:
            return
        self._buffer += data
        while not self._is_hung_up and (self._content() if self._body else self._command()):
            pass
        self._answer()

    def hang_up(self) -> None:
        """Says no more, and reads what still comes, so that what was answered before arrives (a reset would destroy it)."""
        if not self._is_hung_up:
            self._answer()
            self._is_hung_up = True
            if not self._transport.is_closing():
                self._transport.write_eof()

    def _answer(self) -> None:
        if self._replies and not self._transport.is_closing() and not self._is_hung_up:
            self._transport.write(b"".join(self._replies))
            self._replies.clear()

    def _command(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > MAX_LINE:
                self._transport.abort()
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        verb = line[:4].upper()
        if verb == b"MAIL":
            self._sender, self._recipients, self._is_open = _path(line), [], True
            self._replies.append(b"250 2.1.0 Ok\r\n")
        elif verb == b"RCPT":
            path = _path(line)
            reply = self.reply_to_recipient(path)
            if reply.startswith(b"2"):
                self._recipients.append(path)
            self._replies.append(reply)
        elif verb == b"DATA" and not self._recipients:
            self._replies.append(b"554 5.5.1 No valid recipients\r\n")
        elif verb == b"DATA":
            self._body, self._scanned = True, 0
            self._replies.append(b"354 End data with <CR><LF>.<CR><LF>\r\n")
        elif verb == b"EHLO":
            self._replies.append(b"250-sink.trial.example\r\n250-PIPELINING\r\n250 8BITMIME\r\n")
        elif verb == b"QUIT":
            self._is_open = False
            self._transport.write(b"".join([*self._replies, b"221 2.0.0 Bye\r\n"]))
            self._transport.close()
            return False
        else:
            self._is_open = self._is_open and verb != b"RSET"
            self._replies.append(b"250 2.0.0 Ok\r\n" if verb in (b"HELO", b"RSET", b"NOOP") else b"500 5.5.2 Unknown\r\n")
        return True

    def _content(self) -> bool:
        if self._buffer[:3] == b".\r\n":
            wire, end = b"", 3
        else:
            found = self._buffer.find(END, self._scanned)
            if found < 0:
                self._scanned = max(0, len(self._buffer) - 4)
                return False
            wire, end = bytes(memoryview(self._buffer)[: found + 2]), found + 5
        del self._buffer[:end]
        self._body = self._is_open = False
        final = self.final()
        if final is Final.REFUSE:
            self._replies.append(b"451 4.3.0 Not now\r\n")
            return True
        if final is Final.HANG:
            return False  # what comes behind it has no answer either
        self.take(wire, final is Final.TAKE)
        return True

    def take(self, wire: bytes, is_answered: bool) -> None:
        """Write down a message, as it came on the wire, and answer it if it is to be answered."""
        plain = unstuff(wire)
        content = memoryview(plain)[skip_trace(plain) :]
        recipients = tuple(self._recipients)
        taken = Delivery(time.monotonic(), self._sender, recipients, len(content), digest(content), is_answered)
        self._record.write(taken.line())
        if is_answered:
            self._replies.append(b"250 2.0.0 Ok: recorded\r\n")
        else:
            self.hang_up()


def _path(line: bytes) -> bytes:
    return line.partition(b"<")[2].rpartition(b">")[0]


Make = Callable[[], asyncio.Protocol]


async def listen(make: Make, port: int) -> asyncio.Server:
    """Listens on 127.0.0.1, alone."""
    return await asyncio.get_running_loop().create_server(make, "127.0.0.1", port, backlog=1000, reuse_port=False)


async def keep_record(record: BinaryIO) -> None:
    """Writes the record out now and then, until SIGTERM or SIGINT."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    while not stopped.is_set():
        try:
            await asyncio.wait_for(stopped.wait(), FLUSH_S)
        except TimeoutError:
            record.flush()


async def serve(make: Make, record: BinaryIO, port: int) -> None:
    """Until SIGTERM or SIGINT."""
    server = await listen(make, port)
    await keep_record(record)
    server.close()


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(lambda: Recording(file), file, int(sys.argv[2])))
