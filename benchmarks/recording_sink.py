"""A fast SMTP sink that keeps a record of what it took: `python -m benchmarks.recording_sink FILE PORT`.

It offers PIPELINING and 8BITMIME, takes everything, and writes a line for each message (`records.Delivery`) at the moment
it answers the final dot. Rules: the record is in the file within 0.1 s of the reply, and the last of it before a clean end
(SIGTERM). Not here: judgement (`verdict`). It is an instrument for one trusted peer: commands are barely checked.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import BinaryIO

from benchmarks.content import digest, skip_trace, unstuff
from benchmarks.records import Delivery

END = b"\r\n.\r\n"
MAX_LINE = 4096
FLUSH_S = 0.1


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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(b"220 sink.trial.example ESMTP\r\n")

    def data_received(self, data: bytes) -> None:
        """All that can be answered is, in one write; the record is made before the reply leaves."""
        self._buffer += data
        while self._content() if self._body else self._command():
            pass
        if self._replies and not self._transport.is_closing():
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
            self._sender, self._recipients = _path(line), []
            self._replies.append(b"250 2.1.0 Ok\r\n")
        elif verb == b"RCPT":
            self._recipients.append(_path(line))
            self._replies.append(b"250 2.1.5 Ok\r\n")
        elif verb == b"DATA":
            self._body, self._scanned = True, 0
            self._replies.append(b"354 End data with <CR><LF>.<CR><LF>\r\n")
        elif verb == b"EHLO":
            self._replies.append(b"250-sink.trial.example\r\n250-PIPELINING\r\n250 8BITMIME\r\n")
        elif verb == b"QUIT":
            self._transport.write(b"".join([*self._replies, b"221 2.0.0 Bye\r\n"]))
            self._transport.close()
            return False
        else:
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
        self._body = False
        plain = unstuff(wire)
        content = memoryview(plain)[skip_trace(plain) :]
        delivery = Delivery(time.monotonic(), self._sender, tuple(self._recipients), len(content), digest(content))
        self._record.write(delivery.line())
        self._replies.append(b"250 2.0.0 Ok: recorded\r\n")
        return True


def _path(line: bytes) -> bytes:
    return line.partition(b"<")[2].rpartition(b">")[0]


async def serve(record: BinaryIO, port: int) -> None:
    """Until SIGTERM or SIGINT."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await loop.create_server(lambda: Recording(record), "127.0.0.1", port, backlog=1000, reuse_port=False)
    while not stopped.is_set():
        try:
            await asyncio.wait_for(stopped.wait(), FLUSH_S)
        except TimeoutError:
            record.flush()
    server.close()


if __name__ == "__main__":
    with open(sys.argv[1], "ab", buffering=1 << 20) as file:
        asyncio.run(serve(file, int(sys.argv[2])))
