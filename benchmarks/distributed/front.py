"""Ports before the services, one for each server and service, where all that passes is counted.

    python -m benchmarks.distributed.front '{"one": {"swift": 8080, "cassandra": 9042, "rabbitmq": 5672}}'

It tells its own ports by the same names, then answers each line of its input with all counts so far, and ends with its
input. *Rules*: what is passed on is not changed, and waits for the slower side. A protocol that is not understood ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from benchmarks.distributed.calls import AmqpCalls, Calls, CqlCalls, HttpCalls

LOOPBACK = "127.0.0.1"
PIECE_BYTES = 1 << 16


@attrs.define
class Wire:
    """All that passed between a server and a service. `to`, `back`: bytes to the service, and from it."""

    calls: Counter[str] = attrs.field(factory=Counter)
    to: int = 0
    back: int = 0
    statements: dict[bytes, str] = attrs.field(factory=dict)

    def connection(self, service: str) -> Calls:
        """A connection with this service begins."""
        if service == "cassandra":
            return CqlCalls(self.calls, self.statements)
        return AmqpCalls(self.calls) if service == "rabbitmq" else HttpCalls(self.calls)

    def passed(self, count: int, *, is_to: bool) -> None:
        """So many bytes have."""
        if is_to:
            self.to += count
        else:
            self.back += count

    def told(self) -> dict[str, object]:
        """As JSON has it."""
        return {"calls": dict(self.calls), "to": self.to, "back": self.back}


class Front:
    """All ports."""

    def __init__(self, targets: Mapping[str, Mapping[str, int]]) -> None:
        self._targets = targets
        self.wires = {server: {service: Wire() for service in services} for server, services in targets.items()}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self) -> dict[str, dict[str, int]]:
        """Listen, and return the ports."""
        ports: dict[str, dict[str, int]] = {}
        for server, services in self._targets.items():
            for service, target in services.items():
                listening = await asyncio.start_server(self._taker(self.wires[server][service], service, target), LOOPBACK)
                ports.setdefault(server, {})[service] = listening.sockets[0].getsockname()[1]
        return ports

    def _taker(self, wire: Wire, service: str, target: int) -> Callable[..., Any]:
        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there, to = await asyncio.open_connection(LOOPBACK, target)
            except OSError:
                writer.transport.abort()
                return
            calls = wire.connection(service)
            passing = (self._pass(reader, to, wire, calls, is_to=True), self._pass(there, writer, wire, calls, is_to=False))
            await asyncio.gather(*passing)

        return take

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire, calls: Calls, *, is_to: bool
    ) -> None:
        tell = calls.sent if is_to else calls.answered
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE_BYTES):
                wire.passed(len(data), is_to=is_to)
                try:
                    tell(data)
                except ValueError as error:
                    if not self.failed.done():
                        self.failed.set_exception(error)
                    return
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()


async def serve(targets: Mapping[str, Mapping[str, int]]) -> None:
    """Until the input ends. Raises: ValueError."""
    front = Front(targets)
    print(json.dumps(await front.open()), flush=True)
    asked = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    while True:
        line = asyncio.ensure_future(asked.readline())
        waiting: list[asyncio.Future[Any]] = [line, front.failed]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if front.failed.done():
            front.failed.result()
        if not line.result():
            return
        counts = {server: {name: wire.told() for name, wire in wires.items()} for server, wires in front.wires.items()}
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    asyncio.run(serve(json.loads(sys.argv[1])))
