"""Which calls the benchmark of the shared queue reads from the bytes of a connection."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from benchmarks.distributed.calls import AmqpCalls, Calls, CqlCalls, HttpCalls, name_of_batch, name_of_statement

PIECES = [1, 7, 10_000]
SELECT = 'SELECT "queue_name", "number" FROM mailismus.deleted_mails_v2 WHERE "queue_name" = ? AND ("id") > (?) LIMIT ?'
INSERT = 'INSERT INTO mailismus.enqueued_mails_v3 ("queue_name", "number") VALUES (?, ?) USING TTL ? AND TIMESTAMP ?'


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def tell(hear: Callable[[bytes], None], data: bytes, size: int) -> None:
    for piece in in_pieces(data, size):
        hear(piece)


@pytest.mark.parametrize("size", PIECES)
def test_requests_of_http_are_counted_by_method(size: int) -> None:
    counts: Counter[str] = Counter()
    calls: Calls = HttpCalls(counts)
    requests = b"PUT /bucket/mail/1/2a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nGET /\r\n\r\n"
    requests += b"GET /bucket/mail/1/2a HTTP/1.1\r\nHost: x\r\n\r\nDELETE /bucket/mail/1/2a HTTP/1.1\r\nhost: x\r\n\r\n"
    requests += b"HEAD /bucket HTTP/1.1\r\n\r\nGET /bucket?prefix=mail HTTP/1.1\r\n\r\n"
    tell(calls.sent, requests, size)
    calls.answered(b"HTTP/1.1 200 OK\r\n\r\n")
    assert counts == {"PUT": 1, "GET": 1, "DELETE": 1, "HEAD beside": 1, "GET beside": 1}


def test_a_body_in_chunks_is_not_counted_by_half() -> None:
    with pytest.raises(ValueError, match="no request that is understood"):
        HttpCalls(Counter()).sent(b"PUT /b/mail/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        (SELECT, "read deleted_mails_v2"),
        (INSERT, "write enqueued_mails_v3"),
        ('INSERT INTO k.claims ("id") VALUES (?) IF NOT EXISTS USING TTL ?', "compare claims"),
        ('UPDATE k.servers USING TTL ? SET "name" = ? WHERE "epoch" = ? IF "name" = ?', "compare servers"),
        ('DELETE FROM k.mails USING TIMESTAMP ? WHERE "spool_id" = ?', "write mails"),
        ("SELECT toTimestamp(now()) AS at FROM system.local", "read local beside"),
        ("USE k", "other use beside"),
    ],
)
def test_statements_have_the_name_of_what_they_do(statement: str, name: str) -> None:
    assert name_of_statement(statement) == name


def test_a_batch_is_one_write_of_all_its_tables() -> None:
    delete = "DELETE FROM k.mails WHERE x = ?"
    assert name_of_batch([INSERT, INSERT]) == "write enqueued_mails_v3"
    assert name_of_batch([INSERT, delete, INSERT]) == "write enqueued_mails_v3+mails"


def frame(code: int, body: bytes, stream: int = 1, version: int = 0x04) -> bytes:
    return struct.pack(">BBhBi", version, 0, stream, code, len(body)) + body


def short(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def long(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def prepared(calls: CqlCalls, name: bytes, statement: str, stream: int, size: int) -> None:
    tell(calls.sent, frame(CqlCalls.PREPARE, long(statement), stream), size)
    tell(calls.answered, frame(CqlCalls.RESULT, struct.pack(">i", 4) + short(name) + b"more", stream, 0x84), size)


@pytest.mark.parametrize("size", PIECES)
def test_statements_of_cql_are_counted_by_what_was_prepared_on_any_connection(size: int) -> None:
    counts: Counter[str] = Counter()
    statements: dict[bytes, str] = {}
    one, two = CqlCalls(counts, statements), CqlCalls(counts, statements)
    prepared(one, b"read", SELECT, 3, size)
    prepared(one, b"write", INSERT, 4, size)
    tell(one.sent, frame(0x01, b"startup") + frame(CqlCalls.QUERY, long("SELECT * FROM system.peers")), size)
    tell(two.sent, frame(CqlCalls.EXECUTE, short(b"read") + b"values") * 2, size)
    value = struct.pack(">i", 2) + b"ab" + struct.pack(">i", -1)
    entry = b"\x01" + short(b"write") + struct.pack(">H", 2) + value
    plain = b"\x00" + long("DELETE FROM k.mails WHERE x = 1") + struct.pack(">H", 0)
    batch = b"\x00" + struct.pack(">H", 3) + entry + plain + entry + b"\x00\x06\x00"
    tell(two.sent, frame(CqlCalls.BATCH, batch), size)
    assert counts == {"read peers beside": 1, "read deleted_mails_v2": 2, "write enqueued_mails_v3+mails": 1}


@pytest.mark.parametrize(
    "data", [frame(CqlCalls.EXECUTE, short(b"never")), frame(7, b"", version=5), b"\x04\x01" + bytes(7)]
)
def test_what_of_cql_is_not_understood_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"CQL|prepared before"):
        CqlCalls(Counter(), {}).sent(data)


def method(number: tuple[int, int], arguments: bytes = b"") -> bytes:
    payload = struct.pack(">HH", *number) + arguments
    return struct.pack(">BHI", 1, 1, len(payload)) + payload + b"\xce"


@pytest.mark.parametrize("size", PIECES)
def test_methods_of_amqp_are_counted(size: int) -> None:
    counts: Counter[str] = Counter()
    calls = AmqpCalls(counts)
    publish = b"\0\0" + b"\x00" + b"\x0bmq.incoming" + b"\x01"
    told = b"\0\0" + b"\x07mq.news" + b"\x00" + b"\x00"
    header = struct.pack(">BHI", 2, 1, 3) + b"abc\xce"
    words = method(AmqpCalls.PUBLISH, publish) + header + method(AmqpCalls.PUBLISH, told) + method(AmqpCalls.ACK, bytes(9))
    tell(calls.sent, AmqpCalls.GREETING + words, size)
    tell(calls.answered, method(AmqpCalls.DELIVER, b"x") + method(AmqpCalls.ACK, bytes(9)), size)
    assert counts == {"publish mq.incoming": 1, "publish mq.news beside": 1, "ack": 1, "deliver": 1, "confirm": 1}


def test_another_protocol_is_an_error() -> None:
    with pytest.raises(ValueError, match="no AMQP"):
        AmqpCalls(Counter()).sent(b"HTTP/1.1 200")
