"""Who may ask, and with which password."""

from __future__ import annotations

import base64

import attrs
import pytest

from mailismus.web.wire.guard import RequestFacts, Ruling, WebGuard, name_of_host
from mailismus.web.wire.password import Password

GOOD = RequestFacts(b"GET", (b"127.0.0.1:8080",), "127.0.0.1")
AT_HOME = WebGuard((), None, is_loopback=True)
SECRET = Password("admin", b"p\xc3\xa4ss: word", b"k" * 32)
OUTSIDE = WebGuard(("mx.example.net", "Queue.Example"), SECRET, is_loopback=False)


def basic(name_and_password: bytes, scheme: bytes = b"Basic") -> bytes:
    return scheme + b" " + base64.b64encode(name_and_password)


RIGHT = basic(b"admin:p\xc3\xa4ss: word")


@pytest.mark.parametrize(
    "host",
    [
        b"127.0.0.1:8080",
        b"127.0.0.1",
        b"localhost:8080",
        b"LOCALHOST",
        b"localhost.",
        b"[::1]:8080",
        b"127.9.9.9",
        b"localhost:",
    ],
)
def test_addresses_and_localhost_are_ours(host: bytes) -> None:
    assert AT_HOME.judge(attrs.evolve(GOOD, hosts=(host,))) is Ruling.ANSWERED


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        (b"127.0.0.1", b"127.0.0.1"),
        (b"",),
        (b"evil.example",),
        (b"evil.example:8080",),
        (b"127.0.0.1.evil.example",),
        (b"localhost.evil.example",),
        (b"127.0.0.1:8080.evil.example",),
        (b"evil.example@127.0.0.1",),
        (b"[::1].evil.example",),
        (b"[::1",),
        (b"192.0.2.1",),
        (b"0.0.0.0:8080",),
        (b"mx.example.net",),
        (b"127.0.0.1\xff",),
        (b"localhost:80a",),
        (b"localhost:\xd9\xa1",),
    ],
)
def test_other_names_are_refused(hosts: tuple[bytes, ...]) -> None:
    assert AT_HOME.judge(attrs.evolve(GOOD, hosts=hosts)) is Ruling.OTHER_NAME


def test_a_server_for_others_may_be_asked_by_its_addresses_and_names() -> None:
    for host in (b"192.0.2.1:8080", b"mx.example.net", b"queue.example:1", b"QUEUE.EXAMPLE", b"localhost"):
        assert OUTSIDE.judge(attrs.evolve(GOOD, hosts=(host,), authorization=RIGHT)) is Ruling.ANSWERED
    assert OUTSIDE.judge(attrs.evolve(GOOD, hosts=(b"evil.example",), authorization=RIGHT)) is Ruling.OTHER_NAME


@pytest.mark.parametrize("peer", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "", "a name"])
def test_without_a_password_strangers_get_nothing(peer: str) -> None:
    assert AT_HOME.judge(attrs.evolve(GOOD, peer=peer)) is Ruling.STRANGER
    assert OUTSIDE.judge(attrs.evolve(GOOD, peer=peer, authorization=RIGHT)) is Ruling.ANSWERED


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.1.2.3"])
def test_this_host_is_no_stranger(peer: str) -> None:
    assert AT_HOME.judge(attrs.evolve(GOOD, peer=peer)) is Ruling.ANSWERED


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"get", b"", b"\xff"])
def test_it_is_read_only(method: bytes) -> None:
    assert AT_HOME.judge(attrs.evolve(GOOD, method=method)) is Ruling.METHOD
    assert AT_HOME.judge(attrs.evolve(GOOD, method=b"HEAD")) is Ruling.ANSWERED


def test_other_sites_may_link_and_no_more() -> None:
    other = attrs.evolve(GOOD, fetch_site=b"cross-site", fetch_mode=b"no-cors")
    assert AT_HOME.judge(other) is Ruling.OTHER_SITE
    assert AT_HOME.judge(attrs.evolve(other, fetch_site=b"same-site")) is Ruling.OTHER_SITE
    assert AT_HOME.judge(attrs.evolve(other, fetch_mode=b"navigate")) is Ruling.ANSWERED
    assert AT_HOME.judge(attrs.evolve(other, fetch_site=b"same-origin")) is Ruling.ANSWERED
    assert AT_HOME.judge(attrs.evolve(other, fetch_site=b"none")) is Ruling.ANSWERED


@pytest.mark.parametrize(
    "authorization",
    [
        basic(b"admin:wrong"),
        basic(b"other:p\xc3\xa4ss: word"),
        basic(b"admin:p\xc3\xa4ss: word "),
        basic(b"admin"),
        basic(b""),
        b"Basic",
        b"Basic !!!!",
        b"Basic \xff",
        b"Basic " + b"A" * 7000,
        RIGHT.replace(b"Basic", b"Bearer"),
        RIGHT[6:],
    ],
)
def test_a_wrong_password_is_refused(authorization: bytes) -> None:
    assert OUTSIDE.judge(attrs.evolve(GOOD, authorization=authorization)) is Ruling.WRONG_PASSWORD


def test_the_right_password_is_known_and_none_is_asked_for() -> None:
    assert OUTSIDE.judge(attrs.evolve(GOOD, authorization=RIGHT)) is Ruling.ANSWERED
    assert OUTSIDE.judge(attrs.evolve(GOOD, authorization=RIGHT.replace(b"Basic", b"bAsIc"))) is Ruling.ANSWERED
    assert OUTSIDE.judge(GOOD) is Ruling.NO_PASSWORD


def test_the_password_itself_is_not_kept() -> None:
    assert all(b"word" not in value for value in vars(SECRET).values())


def test_names_of_hosts() -> None:
    assert name_of_host(b"[::1]:80") == "::1"
    assert name_of_host(b" Mx.Example. ") == "mx.example"
    assert name_of_host(b"[::1]x") == ""
    assert name_of_host(b"a:b") == ""
