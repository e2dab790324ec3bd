"""Posted bytes: sent together, in order, and never after the end of their connection."""

from __future__ import annotations

import pytest

from mailismus.net.outbox import LIMIT, Outbox
from tests.net.sockets import Lost, Pair


class Posting(Lost):
    """A protocol that posts, and hears of bytes that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def bytes_wait(self) -> None:
        self.waits += 1


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def protocol() -> Posting:
    return Posting()


@pytest.fixture
def pair(outbox: Outbox, protocol: Posting) -> Pair:
    return Pair(protocol, outbox=outbox)


def test_bytes_are_sent_when_all_are_flushed(outbox: Outbox, pair: Pair) -> None:
    assert pair.transport.post(b"reply")
    assert pair.received() == b""
    outbox.flush()
    assert pair.received() == b"reply"
    outbox.flush()
    assert pair.received() == b""


def test_enough_sends_are_done_at_once(outbox: Outbox) -> None:
    pairs = [Pair(Posting(), outbox=outbox) for _ in range(LIMIT)]
    for number, pair in enumerate(pairs):
        assert pair.transport.post(b"reply")
        assert [one.received() for one in pairs] == [b"reply" if number == LIMIT - 1 else b""] * LIMIT


def test_a_connection_without_an_outbox_sends_at_once() -> None:
    pair = Pair(Posting())
    assert pair.transport.post(b"reply")
    assert pair.received() == b"reply"


def test_bytes_that_are_sent_at_once_do_not_pass_posted_ones(outbox: Outbox, pair: Pair) -> None:
    pair.transport.post(b"first ")
    pair.transport.send(b"second ")
    pair.transport.post(b"third ")
    pair.transport.write(b"fourth ")
    pair.transport.post(b"fifth")
    outbox.flush()
    assert pair.received() == b"first second third fourth fifth"


def test_several_posts_of_a_connection_keep_their_order_when_the_kernel_is_full(outbox: Outbox, pair: Pair) -> None:
    pieces = [bytes([65 + number]) * 100_000 for number in range(3)]
    for piece in pieces:
        pair.transport.post(piece)
    outbox.flush()
    assert pair.transport.waiting_bytes > 0
    assert not pair.transport.post(b"end")
    assert pair.drain() == b"".join(pieces) + b"end"


def test_the_protocol_is_told_that_posted_bytes_wait(outbox: Outbox, pair: Pair, protocol: Posting) -> None:
    pair.transport.post(b"x" * 500_000)
    assert protocol.waits == 0
    outbox.flush()
    assert protocol.waits == 1


def test_a_post_that_is_sent_at_once_and_does_not_fit_says_so(outbox: Outbox, pair: Pair) -> None:
    others = [Pair(Posting(), outbox=outbox) for _ in range(LIMIT - 1)]
    for other in others:
        other.transport.post(b"x")
    assert not pair.transport.post(b"x" * 500_000)


@pytest.mark.parametrize("end", ["close", "loseConnection"])
def test_a_connection_that_is_closed_sends_what_was_posted(pair: Pair, end: str) -> None:
    pair.transport.post(b"221 bye")
    getattr(pair.transport, end)()
    assert pair.drain() == b"221 bye"
    assert pair.protocol.losses == 1


def test_a_connection_that_is_reset_sends_nothing_more(outbox: Outbox, pair: Pair) -> None:
    pair.transport.post(b"reply")
    pair.transport.abortConnection()
    outbox.flush()
    assert pair.received() == b""


def test_a_connection_that_ended_meanwhile_hurts_no_other(outbox: Outbox, pair: Pair) -> None:
    other = Pair(Posting(), outbox=outbox)
    pair.transport.post(b"reply")
    other.transport.post(b"reply")
    pair.peer.close()
    pair.transport.doRead()
    assert pair.protocol.losses == 1
    outbox.flush()
    assert other.received() == b"reply"
    assert pair.reactor.writers == []
