"""Sessions as connections: their number, their time, what is not read, and the end of the service."""

from __future__ import annotations

import gc
from typing import Any

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import MAX_WAITING, Security
from mailismus.submit.ending import Ending
from mailismus.submit.protocol import CLOSE_TICKS, MIN_RATE, ServerSession
from mailismus.submit.reception import Reception
from tests.net.sockets import Pair
from tests.submit.fakes import SETTINGS, Client, FakeSocket, House

EHLO = b"EHLO client.example\r\n"
ENVELOPE = b"MAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\n"
QUEUED = b"250 2.0.0 Ok: queued as 0000000000000001\r\n"


def test_a_pipelined_group_is_answered_with_one_write() -> None:
    house = House()
    writes: list[bytes] = []
    client = house.connect()
    client.wire.write = writes.append  # type: ignore[method-assign]  # to see each
    client.wire.writeSequence = lambda parts: writes.append(b"".join(parts))  # type: ignore[method-assign]  # to see each
    client.session.dataReceived(EHLO + ENVELOPE + b"DATA\r\n")
    assert len(writes) == 1


def test_a_session_that_is_given_up_within_content_keeps_none_of_it() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\nhalf of it\r\n")
    client.session.give_up()
    assert not client.is_open
    assert house.manager.drafts[0].is_abandoned


def test_quit_closes_behind_its_reply() -> None:
    client = House().connect()
    assert client.say(b"QUIT\r\n").endswith(replies.BYE)
    assert not client.is_open


def test_too_many_errors_close() -> None:
    client = House().connect()
    assert client.say(b"XYZZY\r\n" * 10).endswith(replies.TOO_MANY_ERRORS)
    assert not client.is_open


def test_connections_are_limited_in_all() -> None:
    house = House(attrs.evolve(SETTINGS, maxconnections=2))
    clients = [house.connect(), house.connect()]
    refused = house.connect()
    assert refused.heard() == replies.TOO_MANY_CONNECTIONS
    assert not refused.is_open
    clients[0].wire.drop()
    assert house.connect().heard().startswith(b"220 ")
    assert (house.factory.connections, house.factory.endings.count[Ending.FULL]) == (4, 1)


def test_connections_are_limited_for_each_peer_and_64() -> None:
    house = House(attrs.evolve(SETTINGS, maxpeerconnections=1))
    first = house.connect("2001:db8::1")
    assert house.connect("2001:db8::2").heard() == replies.TOO_MANY_OF_PEER
    assert house.connect("2001:db8:0:1::2").is_open
    assert house.connect("192.0.2.1").is_open
    assert house.connect("192.0.2.2").is_open
    assert not house.connect("192.0.2.1").is_open
    first.wire.drop()
    assert house.connect("2001:db8::2").is_open


def test_an_idle_client_is_told_and_closed() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.heard()
    house.tick(10)
    client.say(b"NOOP\r\n")
    house.tick(10)
    assert client.heard() == b""
    house.tick(1)
    assert client.heard() == replies.TIMED_OUT
    assert not client.is_open
    assert house.factory.endings.count[Ending.TIMED_OUT] == 1


def test_dripping_a_command_gains_no_time() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    for _ in range(11):
        client.session.dataReceived(b"x")
        house.tick(1)
    assert client.heard().endswith(replies.TIMED_OUT)


def test_each_piece_of_content_gains_time_until_it_is_too_slow_in_all() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n")
    for _ in range(20):
        client.say(b"x")
        house.tick(1)
    assert client.is_open
    client.say(b"x")
    house.tick(2)
    assert client.heard() == replies.TOO_SLOW
    assert house.manager.drafts[0].is_abandoned
    assert not client.is_open


def test_content_that_comes_at_the_least_rate_may_take_its_time() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n")
    for _ in range(100):
        client.say(b"x" * (MIN_RATE - 1) + b"\r\n")
        house.tick(1)
    assert client.is_open


def test_content_that_came_fast_at_first_may_not_drip_for_ever() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + b"x" * 90_000 + b"\r\n")
    for _ in range(45):  # two spans of 20, the first of which was well
        client.session.dataReceived(b"x")
        house.tick(1)
    assert client.heard().endswith(replies.TOO_SLOW)
    assert house.maillog.lines[-1] == b"data too slow after DATA from unknown[127.0.0.1]"


def test_content_has_its_end_however_steadily_it_comes() -> None:
    house = House(attrs.evolve(SETTINGS, maxmsgsize=0))
    house.factory.content_ticks = 1000
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n")
    for _ in range(1001):
        client.say(b"x" * MIN_RATE + b"\r\n")
        house.tick(1)
    assert client.is_open
    house.tick(1)
    assert client.heard() == replies.TOO_LONG
    assert house.manager.drafts[0].is_abandoned


def test_content_that_waits_for_our_disk_is_not_slow() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\nx\r\n")
    house.tick(1)
    for _ in range(5):
        wait: Deferred[None] = Deferred()
        house.manager.waits.append(wait)
        client.say(b"x\r\n")
        house.tick(100)
        wait.callback(None)
    assert client.is_open
    house.tick(21)
    assert not client.is_open


def test_the_time_of_one_message_is_not_counted_to_the_next() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    house.manager.is_quick = True
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n")
    for _ in range(20):  # at each tick content is coming
        house.tick(9)
        client.say(b".\r\n" + ENVELOPE + b"DATA\r\n")
    assert client.is_open


def test_what_waits_for_us_costs_the_client_no_time() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    house.tick(100)
    assert client.is_open
    house.manager.fire()
    house.tick(10)
    assert client.heard() == QUEUED
    house.tick(1)
    assert client.heard() == replies.TIMED_OUT


def test_no_timeout_is_no_limit() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=0.0))
    client = house.connect()
    house.tick(100_000)
    assert client.is_open


def test_reading_stops_while_too_much_waits_behind_a_dot() -> None:
    house = House(attrs.evolve(SETTINGS, maxbadreqs=0))
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    client.say(b"NOOP\r\n")
    assert client.wire.producerState == "producing"
    client.say(b"NOOP\r\n" * (MAX_WAITING // 6))
    assert client.wire.producerState == "paused"
    house.manager.fire()
    assert client.wire.producerState == "producing"
    heard = client.heard()
    assert heard.startswith(QUEUED)
    assert heard.count(b"\r\n") == MAX_WAITING // 6 + 2


def connect_pair(house: House) -> Pair:
    return Pair(house.factory.admit("127.0.0.1", FakeSocket(b"", 10)))  # type: ignore[arg-type]  # all that is asked of it


def test_reading_stops_while_the_client_does_not_read() -> None:
    house = House(attrs.evolve(SETTINGS, maxbadreqs=0))
    pair = connect_pair(house)
    session = pair.protocol
    count = 0
    while pair.transport in pair.reactor.readers:
        session.dataReceived(b"HELP\r\n" * 1000)
        count += 1000
        assert count < 100_000
    assert 0 < pair.transport.waiting_bytes < 30_000
    heard = pair.drain()
    assert heard.count(replies.HELP[:3]) + heard.count(b"500 ") >= count
    assert pair.transport in pair.reactor.readers
    pair.close()


def test_a_client_that_never_reads_is_dropped() -> None:
    house = House(attrs.evolve(SETTINGS, maxbadreqs=0, timeout_s=10.0))
    pair = connect_pair(house)
    while pair.transport in pair.reactor.readers:
        pair.protocol.dataReceived(b"HELP\r\n" * 1000)
    house.tick(11)
    pair.reactor.advance(0)
    assert not house.factory.sessions
    assert house.maillog.lines == [b"replies not read after CONNECT from unknown[127.0.0.1]"]


def test_a_client_that_reads_a_little_now_and_then_is_dropped_too() -> None:
    house = House(attrs.evolve(SETTINGS, maxbadreqs=0, timeout_s=10.0))
    pair = connect_pair(house)
    while pair.transport in pair.reactor.readers:
        pair.protocol.dataReceived(b"HELP\r\n" * 1000)
    for _ in range(11):
        pair.peer.recv(1)
        pair.turn()
        house.tick(1)
    pair.reactor.advance(0)
    assert not house.factory.sessions


def test_a_client_that_does_not_read_our_last_words_is_dropped() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=1000.0))
    pair = connect_pair(house)
    pair.transport.write(b"x" * 500_000)
    pair.protocol.dataReceived(b"QUIT\r\n")
    house.tick(CLOSE_TICKS)
    assert house.factory.sessions
    house.tick(1)
    pair.reactor.advance(0)
    assert not house.factory.sessions


def stop(house: House) -> None:
    house.desk.is_closing = True
    for session in tuple(house.factory.sessions):
        session.shut_down()


@pytest.mark.parametrize("sent", [b"", EHLO, EHLO + ENVELOPE])
def test_at_the_end_an_idle_session_is_told(sent: bytes) -> None:
    house = House()
    client = house.connect()
    client.say(sent)
    stop(house)
    assert client.heard().endswith(replies.SHUTTING_DOWN)
    assert not client.is_open


@pytest.mark.parametrize("is_behind", [False, True])
def test_at_the_end_a_message_before_its_dot_is_cut_off(is_behind: bool) -> None:
    house = House()
    wait: Deferred[None] = Deferred()
    house.manager.waits.extend([wait] * is_behind)
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\nx\r\n")
    stop(house)
    assert client.heard() == replies.SHUTTING_DOWN
    assert house.manager.drafts[0].is_abandoned
    assert not client.is_open
    wait.callback(None)


def test_at_the_end_a_message_behind_its_dot_is_answered() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    stop(house)
    assert client.is_open
    assert client.session.is_awaited
    house.manager.fire()
    assert client.heard() == QUEUED + replies.SHUTTING_DOWN
    assert not client.is_open


def test_at_the_end_what_is_pipelined_behind_the_dot_begins_nothing() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n" + ENVELOPE + b"DATA\r\n.\r\n")
    stop(house)
    house.manager.fire()
    assert client.heard() == QUEUED + replies.SHUTTING_DOWN
    assert len(house.manager.drafts) == 1
    assert not client.is_open


def test_who_comes_at_the_end_is_told() -> None:
    house = House()
    stop(house)
    client: Client = house.connect()
    assert client.heard() == replies.SHUTTING_DOWN
    assert not client.is_open
    assert not house.factory.sessions


class SilentTls:
    """TLS whose handshake goes on until the test ends it."""

    def begin(self, transport: object, session: object) -> object:
        return transport


def test_a_handshake_that_is_complete_after_the_session_gave_it_up_revives_nothing() -> None:
    house = House()
    tls: Any = SilentTls()
    house.factory.adopt(house.desk.policy, 1.0, tls, Security.FIRST)
    client = house.connect()
    client.session.give_up()
    client.session.handshake_completed(b"TLSv1.3")
    assert client.say(EHLO) == b""


def parts_of_sessions() -> list[object]:
    """Those in memory."""
    return [one for one in gc.get_objects() if isinstance(one, ServerSession | Reception | ServerEngine)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([], id="nothing"),
        pytest.param([EHLO + ENVELOPE], id="a part of a transaction"),
        pytest.param([EHLO + ENVELOPE + b"DATA\r\nx\r\n"], id="a part of content"),
        pytest.param([EHLO + ENVELOPE + b"DATA\r\nx\r\n.\r\n"], id="a message"),
        pytest.param([EHLO + ENVELOPE + b"DATA\r\nx\r\n.\r\n", b"QUIT\r\n"], id="a message and QUIT"),
        pytest.param([EHLO, b"VRFY x\r\n" * 20], id="too many errors"),
    ],
)
def test_a_session_that_has_ended_leaves_nothing_to_the_garbage_collector(said: list[bytes]) -> None:
    gc.collect()
    gc.disable()
    try:
        of_others = parts_of_sessions()
        house = House()
        pair = connect_pair(house)
        for data in said:
            pair.protocol.dataReceived(data)
            if house.manager.accepted:
                house.manager.fire()
                house.manager.accepted.clear()
        house.manager.drafts.clear()
        pair.peer.close()
        pair.transport.connectionLost(Failure(ConnectionDone()))  # type: ignore[no-untyped-call]  # Twisted's
        pair.protocol = pair.transport = None
        pair.reactor.readers.clear()
        assert [one for one in parts_of_sessions() if not any(one is other for other in of_others)] == []
    finally:
        gc.enable()


def test_a_message_that_becomes_durable_behind_the_end_of_its_connection_is_logged_and_answered_to_nobody() -> None:
    house = House()
    pair = connect_pair(house)
    pair.protocol.dataReceived(EHLO + ENVELOPE + b"DATA\r\nx\r\n.\r\n")
    pair.received()
    pair.transport.connectionLost(Failure(ConnectionDone()))  # type: ignore[no-untyped-call]  # Twisted's
    house.manager.fire()
    assert house.desk.messages == 1
    assert house.maillog.lines[-1].startswith(b"0000000000000001: from=<a@x.example>")
    assert pair.received() == b""
