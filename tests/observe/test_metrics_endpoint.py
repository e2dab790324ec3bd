"""The endpoint: one small question, one answer."""

from __future__ import annotations

import random

import pytest
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailismus.observe.metrics_endpoint import MAX_CONNECTIONS, MAX_REQUEST_BYTES, TIMEOUT_S, HttpResponse, MetricsAnswers

GOOD = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"


class Transport(StringTransport):
    """What was written is `said`."""

    aborted = False

    @property
    def said(self) -> bytes:
        return bytes(self.value())  # type: ignore[no-untyped-call]  # Twisted's

    def abortConnection(self) -> None:
        self.aborted = True


GONE = Failure(ConnectionDone())  # type: ignore[no-untyped-call]  # Twisted's


class House:
    """An endpoint whose page is `page`."""

    def __init__(self, page: bytes = b"a 1\n") -> None:
        self.clock = Clock()
        self.asked = 0
        self.page = page
        self.answers = MetricsAnswers(self.make, b"text/x", self.clock)

    def make(self) -> bytes:
        self.asked += 1
        if not self.page:
            raise RuntimeError("a bug")
        return self.page

    def connect(self) -> tuple[HttpResponse, Transport]:
        answer = self.answers.buildProtocol(None)
        transport = Transport()  # type: ignore[no-untyped-call]  # Twisted's
        assert answer is not None
        answer.makeConnection(transport)  # type: ignore[no-untyped-call]  # Twisted's
        return answer, transport

    def ask(self, request: bytes) -> bytes:
        answer, transport = self.connect()
        answer.dataReceived(request)
        return transport.said


def test_the_page_is_given_and_the_connection_closed() -> None:
    house = House()
    answer, transport = house.connect()
    answer.dataReceived(GOOD)
    assert transport.said == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 4\r\nConnection: close\r\n\r\na 1\n"
    )
    assert transport.disconnecting


@pytest.mark.parametrize("seed", range(20))
def test_a_request_may_come_in_pieces(seed: int) -> None:
    house, cut = House(), random.Random(seed)
    answer, transport = house.connect()
    rest = GOOD
    while rest:
        size = cut.randint(1, 9)
        assert transport.said == b""
        answer.dataReceived(rest[:size])
        rest = rest[size:]
    assert transport.said.endswith(b"\r\n\r\na 1\n")
    assert house.asked == 1


def test_what_comes_behind_the_question_is_not_looked_at() -> None:
    house = House()
    answer, transport = house.connect()
    answer.dataReceived(GOOD + GOOD)
    answer.dataReceived(GOOD)
    assert (house.asked, transport.said.count(b"HTTP/1.1")) == (1, 1)


@pytest.mark.parametrize(("path", "size"), [(b"/metrics", 4), (b"/other", 29)])
def test_a_head_has_the_length_and_no_content(path: bytes, size: int) -> None:
    answer = House().ask(GOOD.replace(b"GET", b"HEAD").replace(b"/metrics", path))
    assert answer.endswith(b"Content-Length: %d\r\nConnection: close\r\n\r\n" % size)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GOOD.replace(b"/metrics", b"/"), b"404"),
        (GOOD.replace(b"/metrics", b"/metrics/../x"), b"404"),
        (GOOD.replace(b"/metrics", b"/metrics?name=x"), b"200"),
        (GOOD.replace(b"\r", b""), b"200"),
        (GOOD.replace(b"GET", b"POST"), b"405"),
        (GOOD.replace(b"GET", b"get"), b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x00\n\n", b"400"),
        (GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"), b"400"),
        (b"EHLO x\r\nMAIL FROM:<>\r\n\r\n", b"400"),
        (b"x" * (MAX_REQUEST_BYTES + 1), b"431"),
    ],
)
def test_only_the_one_question_is_answered(request_: bytes, status: bytes) -> None:
    assert House().ask(request_).split(b" ")[1] == status


def test_a_bug_is_a_500() -> None:
    assert House(b"").ask(GOOD).startswith(b"HTTP/1.1 500 ")


def test_who_is_slow_is_cut_off() -> None:
    house = House()
    answer, transport = house.connect()
    answer.dataReceived(b"GET /")
    house.clock.advance(TIMEOUT_S - 0.1)
    assert not transport.aborted
    house.clock.advance(0.2)
    assert transport.aborted


def test_a_connection_that_is_over_leaves_nothing() -> None:
    house = House()
    answer, _ = house.connect()
    answer.connectionLost(GONE)
    assert (house.answers.open, house.clock.getDelayedCalls()) == (set(), [])


def test_there_are_no_more_than_so_many_at_once() -> None:
    house = House()
    made = [house.connect()[0] for _ in range(MAX_CONNECTIONS)]
    assert house.answers.buildProtocol(None) is None
    made[0].connectionLost(GONE)
    assert house.answers.buildProtocol(None) is not None
