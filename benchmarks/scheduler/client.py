"""The client that sends the load: any messages over a few sessions, as fast as they are taken, or at a steady rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import attrs

from tests.support.processes import TrialError

REPLY_TIMEOUT_S = 60.0
AHEAD = 500
"""Recipients sent before their replies are read."""
CONTENT = b"Subject: load\r\n\r\n" + (b"x" * 70 + b"\r\n") * 13


@attrs.frozen
class Message:
    """A message to be sent. Its first recipient names it."""

    sender: str
    recipients: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name."""
        return self.recipients[0]


@attrs.frozen
class Sent:
    """A message that the server took: when its MAIL was sent, and when its final dot was answered (monotonic seconds)."""

    message: Message
    began_at_s: float
    taken_at_s: float


class _Session:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: Message) -> Sent:
        """One transaction."""
        began_at_s = time.monotonic()
        commands = [f"RCPT TO:<{recipient}>\r\n".encode() for recipient in message.recipients]
        self._writer.write(f"MAIL FROM:<{message.sender}>\r\n".encode())
        expected = 1
        for begin in range(0, len(commands), AHEAD):
            part = commands[begin : begin + AHEAD]
            self._writer.write(b"".join(part))
            await self._replies(expected + len(part), b"250")
            expected = 0
        self._writer.write(b"DATA\r\n")
        await self._replies(1, b"354")
        self._writer.write(CONTENT + b".\r\n")
        await self._replies(1, b"250")
        return Sent(message, began_at_s, time.monotonic())

    async def command(self, line: bytes, code: bytes) -> None:
        """One command."""
        self._writer.write(line)
        await self._replies(1, code)

    def close(self) -> None:
        """Leave without a word."""
        self._writer.transport.abort()

    async def _replies(self, count: int, code: bytes) -> None:
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            await self._writer.drain()
            while count:
                line = await self._reader.readline()
                if not line.startswith(code):
                    raise TrialError(f"the server did not take the load: {line.decode('ascii', 'replace').strip()!r}")
                count -= line[3:4] == b" "


async def send(port: int, messages: Sequence[Message], rate: float = 0.0, sessions: int = 20) -> list[Sent]:
    """Send all messages, at most so many a second (0: as fast as they are taken). Raises: TrialError."""
    begin_s, todo = time.monotonic(), enumerate(messages)
    try:
        found = await asyncio.gather(
            *(_sender(port, todo, begin_s, rate) for _ in range(max(1, min(sessions, len(messages)))))
        )
    except (OSError, TimeoutError) as e:
        raise TrialError(f"the load was not taken: {e or type(e).__name__}") from e
    return sorted((one for own in found for one in own), key=lambda one: one.began_at_s)


async def _sender(port: int, todo: Iterator[tuple[int, Message]], begin_s: float, rate: float) -> list[Sent]:
    session = _Session(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))
    sent = []
    try:
        await session.command(b"", b"220")
        await session.command(b"EHLO client.load.example\r\n", b"250")
        for index, message in todo:
            if rate:
                await asyncio.sleep(max(0.0, begin_s + index / rate - time.monotonic()))
            sent.append(await session.send(message))
    finally:
        session.close()
    return sent
