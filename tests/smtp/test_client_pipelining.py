"""The client engine and hosts whose pipelining may not work: what is tried again in steps, and what is not."""

from __future__ import annotations

import pytest

from mailismus.smtp.client.pipelining import Pipelining
from tests.fakes.transactions import ACCEPTED, ENVELOPE, PIPELINING, letters, opened

UNPROVEN, PROVEN, DOUBTED = Pipelining.UNPROVEN, Pipelining.PROVEN, Pipelining.DOUBTED
BROKEN, INNOCENT = Pipelining.BROKEN, Pipelining.INNOCENT
LOST = b"(lost)"
MAIL = b"MAIL FROM:<s@a.example>\r\n"

# known before, how many letters, what the server says, the fates, known afterwards
AHEAD: dict[str, tuple[Pipelining, int, list[bytes], list[str], Pipelining]] = {
    "silence": (UNPROVEN, 1, [LOST], ["A untried"], DOUBTED),
    "one reply and silence": (UNPROVEN, 1, [b"250 ok\r\n", LOST], ["A untried"], DOUBTED),
    "two replies and silence": (UNPROVEN, 1, [b"250 ok\r\n250 ok\r\n", LOST], ["A untried"], DOUBTED),
    "nonsense": (UNPROVEN, 1, [b"250 ok\r\nwhat\r\n"], ["A untried", "end"], DOUBTED),
    "250 to DATA": (UNPROVEN, 1, [b"250 ok\r\n" * 3], ["A untried", "end"], DOUBTED),
    "more replies than commands": (UNPROVEN, 1, [ACCEPTED + b"250 ok\r\n"], ["A untried", "end"], DOUBTED),
    "503 to RCPT": (UNPROVEN, 1, [b"250 ok\r\n503 eh\r\n"], ["A untried", "end"], DOUBTED),
    "503 5.5.1 to RCPT": (UNPROVEN, 1, [b"250 ok\r\n503 5.5.1 eh\r\n"], ["A untried", "end"], DOUBTED),
    "500 to DATA": (UNPROVEN, 1, [b"250 ok\r\n250 ok\r\n500 eh\r\n"], ["A untried", "end"], DOUBTED),
    "501 to MAIL": (UNPROVEN, 1, [b"501 eh\r\n"], ["A untried", "end"], DOUBTED),
    "503 of a host that can": (PROVEN, 1, [b"250 ok\r\n503 eh\r\n"], ["A untried", "end"], DOUBTED),
    "silence of a host that can": (PROVEN, 1, [b"250 ok\r\n", LOST], ["A 451"], PROVEN),
    "nonsense of a host that can": (PROVEN, 1, [b"250 ok\r\nwhat\r\n"], ["A 451", "end"], PROVEN),
    "503 with a reason of its own": (
        UNPROVEN,
        1,
        [b"250 ok\r\n503 5.7.0 log in\r\n550 no\r\n"],
        ["A#0 503", "idle"],
        UNPROVEN,
    ),
    "501 with a reason of its own": (UNPROVEN, 1, [b"501 5.1.7 no\r\n503 e\r\n503 e\r\n"], ["A 501", "idle"], UNPROVEN),
    "550": (UNPROVEN, 1, [b"250 ok\r\n550 no\r\n503 no recipient\r\n"], ["A#0 550", "idle"], UNPROVEN),
    "503 to all behind a refused MAIL": (UNPROVEN, 1, [b"550 no\r\n503 e\r\n503 e\r\n"], ["A 550", "idle"], UNPROVEN),
    "421": (UNPROVEN, 1, [b"250 ok\r\n421 bye\r\n"], ["A 421", "end"], UNPROVEN),
    "no one to blame": (INNOCENT, 1, [b"250 ok\r\n503 eh\r\n503 eh\r\n"], ["A#0 503", "idle"], INNOCENT),
    "lost with the content": (UNPROVEN, 1, [ACCEPTED, LOST], ["A 451"], UNPROVEN),
    "a dot lost with what stood behind it": (UNPROVEN, 2, [ACCEPTED, LOST], ["A 451", "B untried"], DOUBTED),
    "nonsense to a dot with something behind it": (
        UNPROVEN,
        2,
        [ACCEPTED, b"what\r\n"],
        ["A 451", "B untried", "end"],
        DOUBTED,
    ),
    "a host that takes one message and no more": (
        UNPROVEN,
        2,
        [ACCEPTED, b"250 ok\r\n", LOST],
        ["A 250", "B untried"],
        UNPROVEN,
    ),
    "the one behind is answered": (UNPROVEN, 2, [ACCEPTED, b"250 ok\r\n250 ok\r\n", LOST], ["A 250", "B 451"], PROVEN),
    "503 to the MAIL behind": (UNPROVEN, 2, [ACCEPTED, b"250 ok\r\n503 nested\r\n"], ["A 250", "B untried", "end"], DOUBTED),
    "that behind and 503 later": (
        UNPROVEN,
        2,
        [ACCEPTED, b"250 ok\r\n250 ok\r\n503 eh\r\n"],
        ["A 250", "B untried", "end"],
        DOUBTED,
    ),
}
STEPS: dict[str, tuple[Pipelining, list[bytes], list[str], Pipelining]] = {
    "all well": (DOUBTED, [b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", b"250 ok\r\n"], ["A 250", "idle"], BROKEN),
    "a refusal that makes sense": (DOUBTED, [b"250 ok\r\n", b"550 no\r\n"], ["A#0 550", "idle"], BROKEN),
    "a refused sender says nothing": (DOUBTED, [b"550 no\r\n"], ["A 550", "idle"], DOUBTED),
    "silence again": (DOUBTED, [LOST], ["A 451"], INNOCENT),
    "silence behind MAIL again": (DOUBTED, [b"250 ok\r\n", LOST], ["A 451"], INNOCENT),
    "silence behind DATA again": (DOUBTED, [b"250 ok\r\n", b"250 ok\r\n", LOST], ["A 451"], INNOCENT),
    "DATA refused with a reason": (DOUBTED, [b"250 ok\r\n", b"250 ok\r\n", b"451 later\r\n"], ["A 451", "idle"], BROKEN),
    "nonsense again": (DOUBTED, [b"250 ok\r\n", b"what\r\n"], ["A 451", "end"], INNOCENT),
    "503 again: it is meant": (DOUBTED, [b"250 ok\r\n", b"503 no\r\n"], ["A#0 503", "idle"], INNOCENT),
    "501 to MAIL again: it is meant": (DOUBTED, [b"501 no\r\n"], ["A 501", "idle"], INNOCENT),
    "503 to DATA again: it is meant": (
        INNOCENT,
        [b"250 ok\r\n250 ok\r\n503 no\r\n"],
        ["A 503", "idle"],
        INNOCENT,
    ),
    "421 says nothing": (DOUBTED, [b"421 bye\r\n"], ["A 421", "end"], DOUBTED),
    "a host known to be broken": (BROKEN, [b"250 ok\r\n", b"503 no\r\n"], ["A#0 503", "idle"], BROKEN),
}


@pytest.mark.parametrize("name", AHEAD)
def test_what_fails_ahead_is_tried_again_unless_pipelining_is_above_suspicion(name: str) -> None:
    known, count, said, fates, learned = AHEAD[name]
    owner = opened(*letters(count), pipelining=known)
    assert owner.take_written() == b"EHLO me.example\r\n" + ENVELOPE
    for data in said:
        if data == LOST:
            owner.client.lost(b"timed out")
        else:
            owner.client.receive(data)
    assert owner.fates == fates
    assert owner.client.trust.known is learned


@pytest.mark.parametrize("name", STEPS)
def test_what_fails_in_steps_too_was_not_for_pipelining(name: str) -> None:
    known, said, fates, learned = STEPS[name]
    owner = opened(*letters(1), pipelining=known)
    assert owner.take_written() == b"EHLO me.example\r\n" + (ENVELOPE if known is INNOCENT else MAIL)
    for data in said:
        if data == LOST:
            owner.client.lost(b"timed out")
        else:
            owner.client.receive(data)
    assert owner.fates == fates
    assert owner.client.trust.known is learned


def test_nothing_travels_behind_a_dot_to_a_host_that_can_not() -> None:
    owner = opened(*letters(2), pipelining=BROKEN)
    for data in [b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"]:
        owner.take_written()
        owner.client.receive(data)
    assert owner.take_written() == b"Hello\r\n.\r\n"
    owner.client.receive(b"250 ok\r\n")
    assert owner.take_written() == MAIL


def test_recipients_refused_before_the_trouble_stay_refused() -> None:
    owner = opened(*letters(1, 3), pipelining=UNPROVEN)
    owner.client.receive(b"250 ok\r\n550 no\r\n250 ok\r\n503 eh\r\n")
    assert owner.fates == ["A#0 550", "A untried", "end"]


def test_a_host_that_does_not_offer_it_teaches_nothing() -> None:
    for known in (UNPROVEN, DOUBTED):
        owner = opened(*letters(1), greeting=b"250 mx\r\n", pipelining=known)
        owner.client.receive(b"250 ok\r\n")
        owner.client.receive(b"503 no\r\n")
        assert owner.fates == ["A#0 503", "idle"]
        assert owner.client.trust.known is known


def test_a_connection_lost_while_a_stop_waits_for_a_dot_tells_every_fate_once() -> None:
    owner = opened(*letters(2), pipelining=UNPROVEN)
    owner.client.receive(ACCEPTED)
    assert owner.client.cut_off()
    owner.client.lost(b"connection lost")
    assert owner.fates == ["B untried", "A 451"]
    assert owner.client.trust.known is UNPROVEN


def test_a_lone_dot_is_answered_before_anything_else_is_said() -> None:
    owner = opened(*letters(2))
    owner.client.receive(b"250 ok\r\n550 no\r\n354 go\r\n")
    owner.take_written()
    assert owner.client.receive(b"") == 0
    assert owner.take_written() == b""
    owner.client.receive(b"354 go on\r\n")
    assert owner.fates == ["A#0 550", "end"]
    assert len(owner.waiting) == 1


def test_the_greeting_of_tests_offers_pipelining() -> None:
    assert opened(greeting=PIPELINING, pipelining=UNPROVEN).client.trust.is_used
