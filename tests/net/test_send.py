"""Sending and closing at once, on real sockets: connections of accepted clients, and Twisted's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.testing import StringTransport

from mailismus.net.close import close_now
from mailismus.net.connection import AcceptedConnection
from mailismus.net.send import Sent, is_backed_up, send_now, when_drained
from tests.net.sockets import Pair


@pytest.fixture(params=["accepted", "twisted"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(is_accepted=request.param == "accepted")
    yield made
    made.close()


@pytest.fixture
def twisted_pair() -> Iterator[Pair]:
    made = Pair(is_accepted=False)
    yield made
    made.close()


def test_what_fits_is_sent_in_the_call_and_the_reactor_is_not_asked(pair: Pair) -> None:
    assert send_now(pair.transport, (b"one ", b"two")) is Sent.ALL
    assert pair.received() == b"one two"
    assert not pair.reactor.writers


def test_what_does_not_fit_follows_in_order(pair: Pair) -> None:
    big = bytes(range(256)) * 4096
    assert send_now(pair.transport, (b"head", big, b"tail")) is Sent.WAITING
    assert is_backed_up(pair.transport)
    assert send_now(pair.transport, (b"later",)) is Sent.WAITING
    assert pair.drain() == b"head" + big + b"tail" + b"later"
    assert not is_backed_up(pair.transport)


def test_nothing_passes_what_was_written_the_usual_way(twisted_pair: Pair) -> None:
    twisted_pair.transport.write(b"first ")
    assert send_now(twisted_pair.transport, (b"second",)) is Sent.WAITING
    assert twisted_pair.received() == b""
    assert twisted_pair.drain() == b"first second"


def test_more_parts_than_a_call_takes_are_sent_all_the_same(twisted_pair: Pair) -> None:
    assert send_now(twisted_pair.transport, [b"x"] * 3000) is Sent.WAITING
    assert twisted_pair.drain() == b"x" * 3000


def test_an_accepted_connection_sends_each_write_at_once(pair: Pair) -> None:
    if isinstance(pair.transport, AcceptedConnection):
        pair.transport.write(b"first ")
        pair.transport.writeSequence([b"x"] * 3000)
        assert pair.received() == b"first " + b"x" * 3000


def test_a_closing_connection_sends_what_the_usual_way_sends(pair: Pair) -> None:
    pair.transport.write(b"waits")
    pair.transport.loseConnection()
    send_now(pair.transport, (b" too",))
    assert pair.drain() == b"waits too"
    assert pair.protocol.losses == 1


def test_on_a_lost_connection_nothing_happens(pair: Pair) -> None:
    close_now(pair.transport)
    assert send_now(pair.transport, (b"x",)) is Sent.ALL
    assert not is_backed_up(pair.transport)


def test_a_peer_that_has_gone_is_left_to_the_usual_way(pair: Pair) -> None:
    pair.peer.close()
    assert send_now(pair.transport, (b"x",)) is Sent.WAITING
    pair.turn()
    assert pair.protocol.losses == 1


def test_other_transports_are_written_to() -> None:
    transport: Any = StringTransport()  # type: ignore[no-untyped-call]  # Twisted's
    assert send_now(transport, (b"a", b"b")) is Sent.ALL
    assert transport.value() == b"ab"


def test_drained_is_told_once_when_all_has_gone(pair: Pair) -> None:
    told: list[int] = []
    send_now(pair.transport, (b"x" * 500000,))
    when_drained(pair.transport, lambda: told.append(1))
    pair.turn()
    assert not told
    assert pair.drain().count(b"x") < 500001
    assert told == [1]
    assert send_now(pair.transport, (b"y",)) is Sent.ALL
    assert told == [1]


def test_drained_is_not_told_when_the_connection_goes_first(pair: Pair) -> None:
    told: list[int] = []
    send_now(pair.transport, (b"x" * 500000,))
    when_drained(pair.transport, lambda: told.append(1))
    pair.peer.close()
    pair.turn()
    assert pair.protocol.losses == 1
    assert not told


def test_closing_with_nothing_to_send_is_done_in_the_call(pair: Pair) -> None:
    close_now(pair.transport)
    assert pair.protocol.losses == 1
    assert pair.peer.recv(1) == b""
    assert not pair.reactor.readers
    assert not pair.reactor.writers


def test_closing_sends_what_waits_first(pair: Pair) -> None:
    big = b"x" * 500000
    send_now(pair.transport, (big,))
    close_now(pair.transport)
    assert pair.protocol.losses == 0
    assert pair.drain() == big
    assert pair.protocol.losses == 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["now", "write", "turn", "read"]), st.integers(1, 9000)), max_size=20), st.booleans()
)
def test_bytes_arrive_in_the_order_of_the_calls(steps: list[tuple[str, int]], is_accepted: bool) -> None:
    pair, sent, got = Pair(is_accepted=is_accepted), b"", b""
    for number, (step, size) in enumerate(steps):
        data = b"%d:" % number * size
        if step == "now":
            send_now(pair.transport, (data, b"|"))
            sent += data + b"|"
        elif step == "write":
            pair.transport.write(data)
            sent += data
        elif step == "turn":
            pair.turn()
        else:
            got += pair.received()
    assert got + pair.drain() == sent
    pair.close()


def test_an_accepted_connection_has_no_second_end(pair: Pair) -> None:
    pair.transport.abortConnection()
    pair.transport.abortConnection()
    close_now(pair.transport)
    send_now(pair.transport, (b"x",))
    pair.transport.resumeProducing()
    pair.reactor.advance(0)
    assert pair.protocol.losses == 1
    assert not pair.reactor.writers
    assert pair.received() == b""


def test_the_end_of_the_peer_is_the_end() -> None:
    for end in (b"", b"last words"):
        pair = Pair()
        pair.peer.sendall(end)
        pair.peer.close()
        while pair.transport in pair.reactor.readers:
            pair.transport.doRead()
        assert (pair.protocol.data, pair.protocol.losses, pair.transport.fileno()) == (end, 1, -1)
        pair.transport.doRead()
        assert pair.protocol.losses == 1
