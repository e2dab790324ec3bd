"""The sink of the loads on the scheduler: it behaves as its table says, and writes down what it does."""

from __future__ import annotations

import asyncio
import io

from twisted.internet.task import Clock

from benchmarks.scheduler.events import Event, parse_events
from benchmarks.scheduler.sink import Connection, Hosts
from benchmarks.scheduler.world import Behaviour

MESSAGE = b"MAIL FROM:<s@a.example>\r\nRCPT TO:<r@b.example>\r\nRCPT TO:<q@b.example>\r\nDATA\r\n"
CONTENT = b"Subject: x\r\n\r\nx\r\n.\r\n"


class Wire(asyncio.Transport):
    """What was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class Sink:
    """Hosts of one behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._log = io.BytesIO()
        self._clock = Clock()
        self.hosts, self._behaviour = Hosts(self._log, self._clock.callLater), behaviour

    def connect(self) -> tuple[Connection, Wire]:
        wire = Wire()
        connection = Connection(self.hosts, "127.1.0.1", self._behaviour)
        connection.connection_made(wire)
        return connection, wire

    def wait(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def events(self) -> list[Event]:
        return parse_events(self._log.getvalue())

    def words(self) -> list[str]:
        return [event.word for event in self.events()]


def test_what_was_sent_ahead_is_answered_at_once_by_a_healthy_host() -> None:
    sink = Sink(Behaviour())
    connection, wire = sink.connect()
    connection.data_received(b"EHLO x\r\n")
    connection.data_received(MESSAGE)
    assert wire.written[-1] == b"250 2.1.0 Ok\r\n250 2.1.5 Ok\r\n250 2.1.5 Ok\r\n354 Go on\r\n"
    connection.data_received(CONTENT[:-2])
    connection.data_received(CONTENT[-2:] + MESSAGE)
    assert wire.written[-1].startswith(b"250 2.0.0 Ok: taken\r\n250 2.1.0 Ok\r\n")
    assert sink.words() == ["open", "mail", "dot", "mail"]
    dot = sink.events()[2]
    assert (dot.sender, dot.recipients, dot.first) == ("s@a.example", 2, "r@b.example")
    connection.data_received(CONTENT + b"QUIT\r\n")
    assert wire.is_closed
    connection.connection_lost(None)
    assert sink.words()[-1] == "close"


def test_connections_above_a_cap_are_refused_until_it_is_gone() -> None:
    sink = Sink(Behaviour(cap=1))
    first, _ = sink.connect()
    other, wire = sink.connect()
    assert wire.written == [b"421 4.7.0 Too many connections\r\n"]
    assert wire.is_closed
    other.connection_lost(None)
    assert sink.words() == ["open", "refused"]
    first.connection_lost(None)
    sink.connect()
    assert sink.words()[-1] == "open"
    sink.hosts.lift_caps()
    sink.connect()
    assert sink.words()[-1] == "open"


def test_a_mute_host_says_nothing() -> None:
    connection, wire = Sink(Behaviour(is_mute=True)).connect()
    connection.data_received(b"EHLO x\r\n")
    assert wire.written == []


def test_a_slow_host_answers_one_command_after_the_other() -> None:
    sink = Sink(Behaviour(reply_s=2.0))
    connection, wire = sink.connect()
    connection.data_received(b"EHLO x\r\n" + MESSAGE)
    assert [data[:3] for data in wire.written] == [b"220"]
    for count in range(2, 7):
        sink.wait(1.9)
        connection.data_received(b"")
        assert len(wire.written) == count - 1
        sink.wait(0.1)
        assert len(wire.written) == count
    assert wire.written[-1] == b"354 Go on\r\n"


def test_a_distant_host_answers_together_what_came_together() -> None:
    sink = Sink(Behaviour(distance_s=1.0))
    connection, wire = sink.connect()
    sink.wait(1.9)
    assert wire.written == []
    sink.wait(0.1)
    connection.data_received(MESSAGE)
    sink.wait(0.9)
    assert len(wire.written) == 1
    sink.wait(0.1)
    assert wire.written[1].count(b"\r\n") == 4


def test_a_lost_connection_is_not_answered() -> None:
    sink = Sink(Behaviour(reply_s=1.0))
    connection, wire = sink.connect()
    connection.data_received(b"EHLO x\r\n")
    connection.connection_lost(None)
    sink.wait(1.0)
    assert len(wire.written) == 1
