"""The order of name servers."""

from __future__ import annotations

import itertools

import pytest

from mailismus.dns.servers import DEAD_S, MAX_DEAD_S, NameServer, ServerStates, parse_server

A, B, C = (NameServer(f"192.0.2.{number}") for number in (1, 2, 3))
ALL = (A, B, C)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("192.0.2.1", NameServer("192.0.2.1", 53)),
        ("127.0.0.1:5353", NameServer("127.0.0.1", 5353)),
        ("2001:db8::1", NameServer("2001:db8::1", 53)),
        ("[2001:DB8::1]:5353", NameServer("2001:db8::1", 5353)),
        ("[::1]", NameServer("::1", 53)),
        ("[::ffff:192.0.2.1]:5353", NameServer("192.0.2.1", 5353)),
        ("::ffff:c000:201", NameServer("192.0.2.1", 53)),
        ("0:0:0:0:0:0:0:1", NameServer("::1", 53)),
        ("fe80::1%eth0", NameServer("fe80::1%eth0", 53)),
        ("ns.example", None),
        ("192.0.2.1:", None),
        ("192.0.2.1:0", None),
        ("192.0.2.1:65536", None),
        ("192.0.2.1:x", None),
        ("192.0.2.1:²", None),
        ("[::1", None),
        ("[::1]53", None),
        ("", None),
    ],
)
def test_a_server_is_an_address_and_perhaps_a_port(text: str, server: NameServer | None) -> None:
    assert parse_server(text) == server


def test_a_server_is_shown_as_it_is_written() -> None:
    assert str(NameServer("127.0.0.1", 5353)) == "127.0.0.1:5353"
    assert str(NameServer("::1")) == "[::1]:53"


def test_servers_are_asked_in_the_order_of_the_configuration() -> None:
    assert ServerStates().order(ALL, 0.0) == [A, B, C]


def test_a_dead_server_comes_last_and_one_question_tries_it_after_a_while() -> None:
    states = ServerStates()
    assert states.note_failure(A, 0.0)
    assert not states.note_failure(A, 0.0)
    assert states.order(ALL, DEAD_S - 1) == [B, C, A]
    assert states.order(ALL, DEAD_S) == [A, B, C]
    assert states.order(ALL, DEAD_S) == [B, C, A]
    assert states.note_answer(A)
    assert not states.note_answer(A)
    assert states.order(ALL, DEAD_S) == [A, B, C]


def test_a_server_that_stays_dead_is_tried_ever_less_often() -> None:
    states, now, tries = ServerStates(), 0.0, []
    states.note_failure(A, now)
    while now < 4 * MAX_DEAD_S:
        now += 1.0
        if states.order(ALL, now)[0] == A:
            tries.append(now)
            states.note_failure(A, now)
            states.note_failure(A, now)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert gaps == [60, 120, 240, 480, 900, 900]


def test_a_server_whose_try_was_never_finished_is_tried_again() -> None:
    states = ServerStates()
    states.note_failure(A, 0.0)
    assert states.order(ALL, DEAD_S)[0] == A
    assert states.order(ALL, 2 * DEAD_S)[0] == A


def test_when_all_are_dead_all_are_asked() -> None:
    states = ServerStates()
    for server in ALL:
        states.note_failure(server, 0.0)
    assert states.order(ALL, 1.0) == [A, B, C]


def test_a_server_that_is_no_longer_configured_is_forgotten() -> None:
    states = ServerStates()
    states.note_failure(A, 0.0)
    states.order((B, C), 0.0)
    assert states.order(ALL, 0.0) == [A, B, C]
