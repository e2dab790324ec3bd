"""Connections: one request each, few at a time, and none for long."""

from __future__ import annotations

import random

import pytest
from twisted.internet.defer import Deferred

from mailismus.web.wire.answer import FIELDS, WebAnswer
from mailismus.web.wire.channel import (
    ANSWER_S,
    MAX_BODY_BYTES,
    MAX_CONNECTIONS,
    MAX_FIELDS,
    MAX_HEADER_BYTES,
    MAX_LINE_BYTES,
    RECEIVE_S,
    WRONG_S,
    Wanted,
)
from mailismus.web.wire.guard import WebGuard
from mailismus.web.wire.password import Password
from tests.web.browsers import GONE, House, Response, hello
from tests.web.test_guard import RIGHT, basic

GOOD = b"GET /a%20b?q=1&q=2&r= HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_page_is_given_with_every_field_of_a_hardened_one_and_the_connection_is_closed() -> None:
    transport = House(hello).send(GOOD)
    response = Response(transport.said)
    assert response.status == 200
    assert response.text == "<p>Grüße"
    assert response.fields["Connection"] == "close"
    assert int(response.fields["Content-Length"]) == len(response.content)
    for name, value in FIELDS:
        assert response.fields.get_all(name.decode()) == [value.decode()]
    assert "Server" not in response.fields
    assert transport.disconnecting


def test_the_policy_allows_no_inline_code_and_no_other_site() -> None:
    policy = dict(part.split(" ", 1) for part in House(hello).ask("/").fields["Content-Security-Policy"].split("; "))
    assert policy.pop("require-trusted-types-for") == "'script'"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["trusted-types"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}


def test_a_refusal_has_the_fields_too() -> None:
    response = House(hello).ask("/", host="evil.example")
    assert (response.status, response.fields["X-Frame-Options"]) == (421, "DENY")
    assert response.fields["Content-Type"].startswith("text/plain")


def test_a_head_has_no_content() -> None:
    response = House(hello).ask("/", "HEAD")
    assert (response.status, response.content, response.fields["Content-Length"]) == (200, b"", "10")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get"])
def test_other_methods_are_refused(method: str) -> None:
    response = House(hello).ask("/", method)
    assert (response.status, response.fields["Allow"]) == (405, "GET, HEAD")


def test_what_is_asked_for_comes_through() -> None:
    asked: list[Wanted] = []

    async def respond(wanted: Wanted) -> WebAnswer:
        asked.append(wanted)
        return WebAnswer(200, b"")

    House(respond).send(GOOD)
    assert (asked[0].path, asked[0].arguments) == ("/a%20b", {"q": "1", "r": ""})
    House(respond).ask("/x?q=%ff%00%C3%BC&%ff=1")
    assert asked[1].arguments == {"q": "\\xff\x00ü", "\\xff": "1"}


@pytest.mark.parametrize("seed", range(10))
def test_a_request_may_come_in_pieces(seed: int) -> None:
    house, cut = House(hello), random.Random(seed)
    channel, transport = house.connect()
    rest = GOOD
    while rest:
        assert transport.said == b""
        size = cut.randint(1, 9)
        channel.dataReceived(rest[:size])
        rest = rest[size:]
    assert Response(transport.said).status == 200


def test_one_request_is_answered_on_a_connection() -> None:
    channel, transport = House(hello).connect()
    channel.dataReceived(GOOD + GOOD)
    channel.dataReceived(GOOD)
    assert transport.said.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nno field\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\x16\x03\x01\x00\r\n\r\n",
        b"EHLO x\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (MAX_FIELDS + 1) + b"\r\n",
        b"GET / HTTP/1.1\r\n" + (b"a: " + b"b" * 6000 + b"\r\n") * 3 + b"\r\n",
        b"GET /" + b"a" * MAX_LINE_BYTES + b" HTTP/1.1\r\n\r\n",
        b"a" * (MAX_HEADER_BYTES + 1),
    ],
)
def test_what_is_no_request_ends_the_connection(request_: bytes) -> None:
    asked: list[Wanted] = []

    async def respond(wanted: Wanted) -> WebAnswer:
        asked.append(wanted)
        return WebAnswer(200, b"")

    transport = House(respond).send(request_)
    assert transport.disconnecting or transport.aborted
    assert transport.said[:12] in (b"", b"HTTP/1.1 400")
    assert asked == []


def test_a_body_is_dropped_and_a_large_one_ends_the_connection() -> None:
    house = House(hello)
    channel, transport = house.connect()
    channel.dataReceived(
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data\r\nContent-Length: 9\r\n\r\n"
    )
    channel.dataReceived(b"123456789")
    assert Response(transport.said).status == 405
    channel, transport = house.connect()
    channel.dataReceived(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
    for _ in range(MAX_BODY_BYTES // 16384):
        channel.dataReceived(b"a" * 16384)
    assert not transport.aborted
    channel.dataReceived(b"a")
    assert transport.aborted


def test_a_request_that_drips_is_cut_off() -> None:
    house = House(hello)
    channel, transport = house.connect()
    for byte in b"GET / HTT":
        channel.dataReceived(bytes([byte]))
        house.clock.advance(RECEIVE_S / 10)
    assert not transport.aborted
    house.clock.advance(RECEIVE_S / 10)
    assert transport.aborted


def test_an_answer_that_is_not_read_is_cut_off() -> None:
    house = House(hello)
    transport = house.send(GOOD)
    house.clock.advance(ANSWER_S - 0.1)
    assert not transport.aborted
    house.clock.advance(0.2)
    assert transport.aborted


def test_a_connection_that_is_over_leaves_nothing() -> None:
    house = House(hello)
    for request in (b"", b"GET /", GOOD):
        channel, _ = house.connect()
        channel.dataReceived(request)
        channel.connectionLost(GONE)
    assert (list(house.connections.open), house.clock.getDelayedCalls()) == ([], [])


def test_the_oldest_without_a_request_gives_way_and_none_that_is_answered() -> None:
    waiting: list[Deferred[WebAnswer]] = []

    async def respond(wanted: Wanted) -> WebAnswer:
        waiting.append(Deferred())
        return await waiting[-1]

    house = House(respond)
    answered = [house.send(GOOD) for _ in range(MAX_CONNECTIONS - 2)]
    silent = [house.connect()[1] for _ in range(2)]
    house.send(GOOD)
    assert [one.aborted for one in silent] == [True, False]
    house.send(GOOD)
    assert [one.aborted for one in silent] == [True, True]
    assert house.connections.buildProtocol(None) is None
    assert not any(one.aborted for one in answered)
    assert len(house.connections.open) == MAX_CONNECTIONS


def test_who_has_gone_is_told_and_not_written_to() -> None:
    done: Deferred[WebAnswer] = Deferred()
    asked: list[Wanted] = []

    async def respond(wanted: Wanted) -> WebAnswer:
        asked.append(wanted)
        return await done

    channel, transport = House(respond).connect()
    channel.dataReceived(GOOD)
    assert not asked[0].is_lost()
    channel.connectionLost(GONE)
    assert asked[0].is_lost()
    done.callback(WebAnswer(200, b"late"))
    assert transport.said == b""


def test_a_bug_is_a_500_without_a_word_of_it() -> None:
    async def respond(wanted: Wanted) -> WebAnswer:
        raise RuntimeError("secret")

    response = House(respond).ask("/")
    assert response.status == 500
    assert "secret" not in response.text


def test_a_password_is_asked_for_and_a_wrong_one_takes_its_time() -> None:
    guard = WebGuard((), Password("admin", "päss: word".encode(), b"k" * 32), is_loopback=True)
    house = House(hello, guard, peer="192.0.2.1")
    response = house.ask("/")
    assert (response.status, response.fields["WWW-Authenticate"]) == (401, 'Basic realm="Mailismus", charset="UTF-8"')
    assert "Grüße" not in response.text
    transport = house.send(GOOD.replace(b"\r\n\r\n", b"\r\nAuthorization: " + basic(b"admin:x") + b"\r\n\r\n"))
    house.clock.advance(WRONG_S - 0.1)
    assert transport.said == b""
    house.clock.advance(0.2)
    assert Response(transport.said).status == 401
    transport = house.send(GOOD.replace(b"\r\n\r\n", b"\r\nAuthorization: " + RIGHT + b"\r\n\r\n"))
    assert Response(transport.said).status == 200


def test_the_guard_may_be_exchanged() -> None:
    house = House(hello)
    house.connections.change_guard(WebGuard((), Password("a", b"b", b"k" * 32), is_loopback=True))
    assert house.ask("/").status == 401
