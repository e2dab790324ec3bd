"""The exchange: what is sent for each reply, and the verdict."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp.auth.exchange import (
    REMOVED,
    TRANSITIONS,
    AuthExchange,
    AuthFinding,
    AuthVerdict,
    ExchangeEvent,
    ExchangeState,
    Step,
)
from mailismus.smtp.auth.key_memory import MAX_KEYS, KeyMemory
from mailismus.smtp.auth.mechanism import Derivation, Keys, Mechanism
from mailismus.smtp.auth.scram import ChannelBinding, derive_keys
from mailismus.smtp.auth.selection import MECHANISMS, SCRAM, SCRAM_PLUS, choose, make_mechanism, parse_offer
from mailismus.smtp.transitions import IllegalTransition

PASSWORD = b"pencil"
BINDING = ChannelBinding(b"tls-exporter", b"\0" * 32)


def make(name: str, password: bytes = PASSWORD) -> Mechanism:
    return make_mechanism(name, b"user", bytearray(password), b"rOprNGfwEbeRWgbNEkqO", BINDING, (name,), (name,))


def challenge(data: bytes) -> bytes:
    return b"334 " + base64.b64encode(data)


def play(name: str, *replies: bytes, password: bytes = PASSWORD) -> tuple[list[bytes], AuthVerdict]:
    """The lines sent and the verdict; keys are derived in place."""
    mechanism = make(name, password)
    exchange = AuthExchange(mechanism)
    lines = [bytes(exchange.begin())]
    for raw in replies:
        step: Step = exchange.receive(int(raw[:3]), raw)
        if isinstance(step, Derivation):
            step = exchange.use_keys(derive_keys(bytearray(mechanism.secret), step))
        if isinstance(step, AuthVerdict):
            assert exchange.state is ExchangeState.OVER
            assert not mechanism.secret
            return lines, step
        lines.append(bytes(step))
    raise AssertionError("there is no verdict")


def test_plain_as_in_rfc_4954() -> None:
    lines, verdict = play("PLAIN", b"235 2.7.0 Authentication successful", password=b"1234")
    assert lines == [b"AUTH PLAIN AHVzZXIAMTIzNA==\r\n"]
    assert verdict == AuthVerdict(AuthFinding.AUTHENTICATED, 235, b"235 2.7.0 Authentication successful")


def test_login_answers_two_challenges() -> None:
    lines, verdict = play("LOGIN", b"334 VXNlcm5hbWU6", b"334 UGFzc3dvcmQ6", b"235 ok")
    assert lines == [b"AUTH LOGIN\r\n", b"dXNlcg==\r\n", b"cGVuY2ls\r\n"]
    assert verdict.finding is AuthFinding.AUTHENTICATED


def test_cram_md5_answers_its_challenge() -> None:
    lines, verdict = play("CRAM-MD5", challenge(b"<1@mx>"), b"235 ok")
    assert lines[0] == b"AUTH CRAM-MD5\r\n"
    assert base64.b64decode(lines[1]).startswith(b"user ")
    assert verdict.finding is AuthFinding.AUTHENTICATED


SCRAM_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SCRAM_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_as_in_rfc_7677() -> None:
    lines, verdict = play("SCRAM-SHA-256", challenge(SCRAM_FIRST), challenge(SCRAM_FINAL), b"235 ok")
    assert base64.b64decode(lines[0].removeprefix(b"AUTH SCRAM-SHA-256 ")) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert lines[2] == b"\r\n"
    assert verdict.finding is AuthFinding.AUTHENTICATED


@pytest.mark.parametrize(
    ("replies", "finding"),
    [
        ((b"235 at once",), AuthFinding.UNPROVED),
        ((challenge(SCRAM_FIRST), b"235 without a signature"), AuthFinding.UNPROVED),
        ((challenge(SCRAM_FIRST), challenge(b"e=other-error"), b"235 ok"), AuthFinding.UNPROVED),
        ((challenge(SCRAM_FIRST), challenge(b"v=AAAA"), b"501 cancelled"), AuthFinding.UNPROVED),
        ((challenge(SCRAM_FIRST), challenge(b"v=AAAA"), b"235 all the same"), AuthFinding.UNPROVED),
        ((challenge(b"r=other,s=AAAA,i=4096"), b"235 all the same"), AuthFinding.SENSELESS),
        ((challenge(SCRAM_FIRST), challenge(SCRAM_FINAL), challenge(b"more"), b"501 cancelled"), AuthFinding.SENSELESS),
        ((b"334 !", b"501 cancelled"), AuthFinding.SENSELESS),
        ((b"334-AAAA\n334 AAAA", b"501 cancelled"), AuthFinding.SENSELESS),
        ((b"354 go ahead", b"501 cancelled"), AuthFinding.SENSELESS),
        ((challenge(SCRAM_FIRST), challenge(b"e=invalid-proof"), b"535 5.7.8 no"), AuthFinding.REFUSED),
        ((b"535 5.7.8 no",), AuthFinding.REFUSED),
        ((b"504 5.5.4 unknown",), AuthFinding.REFUSED),
        ((b"454 4.7.0 not now",), AuthFinding.LATER),
        ((challenge(SCRAM_FIRST), b"432 4.7.12 later"), AuthFinding.LATER),
    ],
)
def test_the_verdict_of_each_end(replies: tuple[bytes, ...], finding: AuthFinding) -> None:
    lines, verdict = play("SCRAM-SHA-256", *replies)
    assert verdict.finding is finding
    assert (lines[-1] == b"*\r\n") is (replies[-1] in (b"501 cancelled", b"235 all the same"))


def test_a_refused_token_gets_an_empty_response_to_its_error() -> None:
    lines, verdict = play("XOAUTH2", challenge(b'{"status":"401"}'), b"535 5.7.8 no")
    assert lines[1] == b"\r\n"
    assert verdict.finding is AuthFinding.REFUSED


def test_a_response_that_is_too_long_for_a_command_waits_for_a_challenge() -> None:
    longest = 512 - len("AUTH XOAUTH2 \r\n")
    room = longest // 4 * 3 - len(b"user=user\1auth=Bearer \1\1")
    for size, is_inline in ((room, True), (room + 1, False)):
        lines, _ = play("XOAUTH2", *([] if is_inline else [b"334 "]), b"235 ok", password=b"t" * size)
        assert (lines[0] == b"AUTH XOAUTH2\r\n") is not is_inline
        assert max(map(len, lines)) <= 512 or not is_inline
        assert base64.b64decode(lines[-1].split(b" ")[-1]).endswith(b"t" * size + b"\1\1")


@pytest.mark.parametrize("name", ["PLAIN", "LOGIN", "XOAUTH2"])
def test_words_of_a_server_that_repeat_the_secret_are_removed(name: str) -> None:
    for echo in (b"pencil", base64.b64encode(b"pencil"), base64.b64encode(b"\0user\0pencil")):
        challenges = [b"334 "] * 2 if name == "LOGIN" else []
        raw = b"535-5.7.8 what is\n535 5.7.8 %b good for?" % echo
        _, verdict = play(name, *challenges, raw)
        if name == "PLAIN" or len(echo) < 10:
            assert verdict.raw == b"535-5.7.8 what is\n535 5.7.8 %b good for?" % REMOVED


def test_a_closed_exchange_has_forgotten_the_secret() -> None:
    mechanism = make("PLAIN")
    exchange = AuthExchange(mechanism)
    line = exchange.begin()
    exchange.close()
    exchange.close()
    assert not mechanism.secret
    assert not line


def test_a_line_is_overwritten_when_the_next_reply_has_come() -> None:
    exchange = AuthExchange(make("LOGIN"))
    exchange.begin()
    exchange.receive(334, b"334 ")
    line = exchange.receive(334, b"334 ")
    assert line == b"cGVuY2ls\r\n"
    exchange.receive(235, b"235 ok")
    assert not line


_REPLIES = st.lists(
    st.one_of(
        st.binary(max_size=60).map(challenge),
        st.sampled_from([challenge(SCRAM_FIRST), challenge(SCRAM_FINAL), b"334", b"334 ", b"334 =", b"235 ok", b"535 no"]),
        st.tuples(st.integers(200, 599), st.binary(max_size=40)).map(lambda reply: b"%d %b" % reply),
        st.binary(max_size=40).map(lambda data: b"334 " + data),
    ),
    max_size=6,
)


@given(st.sampled_from(MECHANISMS), _REPLIES)
def test_no_words_of_a_server_break_an_exchange_or_bring_out_the_secret(name: str, replies: list[bytes]) -> None:
    password = b"a very secret password"
    mechanism = make(name, password)
    exchange = AuthExchange(mechanism)
    exchange.begin()
    for raw in replies:
        step = exchange.receive(int(raw[:3]), raw)
        assert password.decode() not in repr(step) or isinstance(step, bytearray)
        if isinstance(step, Derivation):
            step = exchange.use_keys(Keys(b"k" * 32, b"s" * 32))
        if isinstance(step, AuthVerdict):
            assert mechanism.secret == b""
            assert step.finding is not AuthFinding.AUTHENTICATED or not name.startswith("SCRAM")
            break
        assert bytes(step).endswith(b"\r\n")
        if name not in ("PLAIN", "LOGIN", "XOAUTH2"):
            assert password not in base64.b64decode(bytes(step), validate=False)
    exchange.close()
    assert mechanism.secret == b""


@pytest.mark.parametrize("state", ExchangeState)
@pytest.mark.parametrize("event", ExchangeEvent)
def test_an_event_that_the_table_does_not_have_is_a_defect(state: ExchangeState, event: ExchangeEvent) -> None:
    exchange = AuthExchange(make("PLAIN"))
    exchange.state = state
    if event in TRANSITIONS[state]:
        exchange._move(event)
        assert exchange.state is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalTransition):
            exchange._move(event)


# ---------------------------------------------------------------------- selection and memory


@pytest.mark.parametrize(
    ("types", "offered", "can_bind", "chosen"),
    [
        ((SCRAM, "PLAIN"), b"PLAIN LOGIN SCRAM-SHA-256", True, SCRAM),
        (("PLAIN", SCRAM), b"PLAIN SCRAM-SHA-256", True, "PLAIN"),
        ((SCRAM_PLUS, SCRAM), b"scram-sha-256 scram-sha-256-plus", True, SCRAM_PLUS),
        ((SCRAM_PLUS, SCRAM), b"scram-sha-256 scram-sha-256-plus", False, SCRAM),
        ((SCRAM_PLUS,), b"SCRAM-SHA-256-PLUS", False, None),
        (("PLAIN",), b"CRAM-MD5", True, None),
        (("PLAIN",), b"", True, None),
        (("PLAIN",), b"\xff\xfe PLAINER", True, None),
    ],
)
def test_the_first_written_mechanism_that_is_offered_is_used(
    types: tuple[str, ...], offered: bytes, can_bind: bool, chosen: str | None
) -> None:
    assert choose(types, parse_offer(offered), can_bind) == chosen


@pytest.mark.parametrize(
    ("types", "offered", "binding", "flag"),
    [
        ((SCRAM_PLUS, SCRAM), (SCRAM,), BINDING, b"y,,"),
        ((SCRAM_PLUS, SCRAM), (SCRAM,), None, b"n,,"),
        ((SCRAM,), (SCRAM,), BINDING, b"n,,"),
        ((SCRAM, SCRAM_PLUS), (SCRAM, SCRAM_PLUS), BINDING, b"n,,"),
    ],
)
def test_a_removed_offer_of_binding_is_told_to_the_server(
    types: tuple[str, ...], offered: tuple[str, ...], binding: ChannelBinding | None, flag: bytes
) -> None:
    mechanism = make_mechanism(SCRAM, b"user", bytearray(b"p"), b"N", binding, types, offered)
    response = mechanism.begin()
    assert response is not None
    assert response.startswith(flag)


def test_derived_keys_are_remembered_by_version_and_derivation_and_are_bounded() -> None:
    memory = KeyMemory()
    keys = Keys(b"c", b"s")
    derivation = Derivation("sha256", b"salt", 4096)
    memory.note("v1", derivation, keys)
    assert memory.get("v1", derivation) is keys
    assert memory.get("v2", derivation) is None
    assert memory.get("v1", Derivation("sha256", b"salt", 4097)) is None
    for number in range(MAX_KEYS):
        memory.note(number, derivation, keys)
    assert memory.get("v1", derivation) is None
    assert memory.get(0, derivation) is keys
    memory.forget()
    assert memory.get(0, derivation) is None
    assert "s'" not in repr(keys)
