"""Which calls a connection with a service carries, read from its bytes: HTTP, CQL version 4, AMQP 0-9-1. Pure.

Each kind is told the bytes of both directions, in their order and in any pieces, and counts under names: PUT, read
enqueued_mails_v3, publish mq.incoming. What is not the queue's (a probe, the driver's own questions) has names that end
with BESIDE. A protocol that is not understood is a `ValueError`: nothing is counted by half.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

BESIDE = " beside"
CONTENT = b"/mail/"
"""In the path of a message's content."""
_STATEMENT = re.compile(
    r"(?P<verb>SELECT|INSERT INTO|UPDATE|DELETE)\b(?:.*?\bFROM)?\s+(?:\"?(?P<keyspace>\w+)\"?\.)?\"?(?P<table>\w+)\"?", re.S
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.I)


class Calls(Protocol):
    """One connection."""

    def sent(self, data: bytes) -> None:
        """By the client. Raises: ValueError."""

    def answered(self, data: bytes) -> None:
        """By the service. Raises: ValueError."""


class HttpCalls:
    """Requests by method."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts, self._buffer, self._left = counts, bytearray(), 0

    def sent(self, data: bytes) -> None:
        self._buffer += data
        while self._buffer:
            if self._left:
                taken = min(self._left, len(self._buffer))
                del self._buffer[:taken]
                self._left -= taken
            elif not self._head():
                return

    def _head(self) -> bool:
        """Read the head of a request, if it is whole."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        method, _, rest = head.partition(b" ")
        if _CHUNKED.search(head) or not rest:
            raise ValueError(f"no request that is understood: {head[:80]!r}")
        path = rest.partition(b" ")[0]
        self._counts[method.decode("ascii") + ("" if CONTENT in path else BESIDE)] += 1
        found = _LENGTH.search(head)
        self._left = int(found[1]) if found else 0
        return True

    def answered(self, data: bytes) -> None:
        pass


class CqlCalls:
    """Statements by what they do and their table. `statements`: those that were prepared over any connection."""

    HEAD = struct.Struct(">BBhBi")
    QUERY, RESULT, PREPARE, EXECUTE, BATCH = 0x07, 0x08, 0x09, 0x0A, 0x0D
    PREPARED = 4

    def __init__(self, counts: Counter[str], statements: dict[bytes, str]) -> None:
        self._counts, self._statements = counts, statements
        self._out, self._in = bytearray(), bytearray()
        self._asked: dict[int, str] = {}

    def sent(self, data: bytes) -> None:
        for stream, code, body in self._frames(self._out, data, 0x04):
            if code == self.PREPARE:
                self._asked[stream] = _long(body, 0)[0].decode()
            elif code == self.QUERY:
                self._counts[name_of_statement(_long(body, 0)[0].decode())] += 1
            elif code == self.EXECUTE:
                self._counts[name_of_statement(self._known(_short(body, 0)[0]))] += 1
            elif code == self.BATCH:
                self._counts[name_of_batch(list(self._batch(body)))] += 1

    def answered(self, data: bytes) -> None:
        for stream, code, body in self._frames(self._in, data, 0x84):
            statement = self._asked.pop(stream, None)
            if statement is not None and code == self.RESULT and body[:4] == struct.pack(">i", self.PREPARED):
                self._statements[bytes(_short(body, 4)[0])] = statement

    def _frames(self, buffer: bytearray, data: bytes, version: int) -> Iterator[tuple[int, int, bytes]]:
        buffer += data
        while len(buffer) >= self.HEAD.size:
            found, flags, stream, code, length = self.HEAD.unpack_from(buffer)
            if found != version or flags & 0x01:
                raise ValueError(f"no frame of CQL that is understood: version {found:#x}, flags {flags:#x}")
            if len(buffer) < self.HEAD.size + length:
                return
            body = bytes(buffer[self.HEAD.size : self.HEAD.size + length])
            del buffer[: self.HEAD.size + length]
            yield stream, code, body

    def _known(self, name: bytes) -> str:
        if name not in self._statements:
            raise ValueError("a statement that was prepared before")
        return self._statements[name]

    def _batch(self, body: bytes) -> Iterator[str]:
        (count,) = struct.unpack_from(">H", body, 1)
        at = 3
        for _ in range(count):
            is_prepared, at = body[at], at + 1
            if is_prepared:
                name, at = _short(body, at)
                yield self._known(name)
            else:
                text, at = _long(body, at)
                yield text.decode()
            (values,) = struct.unpack_from(">H", body, at)
            at += 2
            for _ in range(values):
                (length,) = struct.unpack_from(">i", body, at)
                at += 4 + max(0, length)


def _short(body: bytes, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from(">H", body, at)
    return body[at + 2 : at + 2 + length], at + 2 + length


def _long(body: bytes, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from(">i", body, at)
    return body[at + 4 : at + 4 + length], at + 4 + length


def _parts_of(statement: str) -> tuple[str, str, bool]:
    """What it does, its table, and whether that is one of the database's own."""
    found = _STATEMENT.search(statement)
    if found is None:
        return "other", statement.split(maxsplit=1)[0].lower(), True
    verb = "read" if found["verb"] == "SELECT" else "compare" if re.search(r"\bIF\b", statement) else "write"
    return verb, found["table"], (found["keyspace"] or "").startswith("system")


def name_of_statement(statement: str) -> str:
    """Under which a statement is counted."""
    verb, table, is_own = _parts_of(statement)
    return f"{verb} {table}" + (BESIDE if is_own else "")


def name_of_batch(statements: list[str]) -> str:
    """Under which a batch is counted: one write, of all its tables."""
    return "write " + "+".join(sorted({_parts_of(statement)[1] for statement in statements}))


class AmqpCalls:
    """Publishes by queue, deliveries, acks, and confirms, of which one may be for many."""

    HEAD = struct.Struct(">BHI")
    METHOD, END = 1, 0xCE
    GREETING = b"AMQP\x00\x00\x09\x01"
    PUBLISH, DELIVER, ACK = (60, 40), (60, 60), (60, 80)

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._out, self._in = bytearray(), bytearray()
        self._is_greeted = False

    def sent(self, data: bytes) -> None:
        self._out += data
        if not self._is_greeted:
            if len(self._out) < len(self.GREETING):
                return
            if not self._out.startswith(self.GREETING):
                raise ValueError("no AMQP 0-9-1")
            del self._out[: len(self.GREETING)]
            self._is_greeted = True
        for method, arguments in self._methods(self._out):
            if method == self.PUBLISH:
                length = arguments[2]
                exchange = arguments[3 : 3 + length].decode()
                key = arguments[4 + length : 4 + length + arguments[3 + length]].decode()
                self._counts[f"publish {key}" if not exchange else f"publish {exchange}{BESIDE}"] += 1
            elif method == self.ACK:
                self._counts["ack"] += 1

    def answered(self, data: bytes) -> None:
        self._in += data
        for method, _ in self._methods(self._in):
            if method == self.DELIVER:
                self._counts["deliver"] += 1
            elif method == self.ACK:
                self._counts["confirm"] += 1

    def _methods(self, buffer: bytearray) -> Iterator[tuple[tuple[int, int], bytes]]:
        while len(buffer) >= self.HEAD.size:
            kind, _, length = self.HEAD.unpack_from(buffer)
            end = self.HEAD.size + length
            if len(buffer) <= end:
                return
            if buffer[end] != self.END:
                raise ValueError("no frame of AMQP")
            payload = bytes(buffer[self.HEAD.size : end])
            del buffer[: end + 1]
            if kind == self.METHOD:
                yield struct.unpack_from(">HH", payload), payload[4:]
