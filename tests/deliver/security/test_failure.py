"""Failures: the texts byte for byte, and when mail goes without TLS."""

from __future__ import annotations

import pytest

from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.security.failure import may_go_plain, reply_of
from mailismus.deliver.security.fallback import MAX_HOSTS, REMEMBERED_S, Fallbacks
from mailismus.deliver.security.profile import Profiles, Requirement
from mailismus.deliver.security.warnings import EVERY_S, Warnings
from mailismus.mail.reply import MAX_TEXT
from mailismus.net.tls_sessions import KEPT_S, MAX_SESSIONS, TlsSessions
from mailismus.smtp.client.starttls import TlsFailure, TlsFault

HOST = b"mx.example[192.0.2.1]:25"
REQUIREMENT = Requirement(TlsLevel.VERIFY, "<tls> in line 42")
TEXTS = {
    TlsFault.NOT_OFFERED: b"451 4.7.4 TLS is required, but was not offered by host H",
    TlsFault.REFUSED: b"451 4.7.4 TLS is required, but host H refused to start TLS: WORDS",
    TlsFault.HANDSHAKE: b"451 4.7.5 Cannot start TLS with host H: WORDS",
    TlsFault.UNTRUSTED: b"451 4.7.5 Server certificate not trusted: WORDS",
    TlsFault.WRONG_NAME: b"451 4.7.5 Server certificate not verified: WORDS",
    TlsFault.INJECTED: b"451 4.7.0 Host H sent bytes behind its reply to STARTTLS; nothing of them is used",
}


@pytest.mark.parametrize("fault", TlsFault)
def test_each_text_ends_with_who_demands_it(fault: TlsFault) -> None:
    reply = reply_of(TlsFailure(fault, b"WORDS"), HOST, REQUIREMENT)
    assert bytes(reply) == TEXTS[fault].replace(b"H ", HOST + b" ").replace(b"H:", HOST + b":").replace(
        b"host H", b"host " + HOST
    ) + (b", demanded by <tls> in line 42")


def test_a_long_reply_of_a_host_cuts_off_no_end() -> None:
    reply = reply_of(TlsFailure(TlsFault.REFUSED, b"x" * 5000), HOST, REQUIREMENT)
    assert len(reply.text) == MAX_TEXT
    assert reply.text.endswith(b"x, demanded by <tls> in line 42")


@pytest.mark.parametrize("fault", TlsFault)
@pytest.mark.parametrize("level", TlsLevel)
def test_only_opportunistic_mail_goes_without_tls_and_not_where_bytes_came_early(fault: TlsFault, level: TlsLevel) -> None:
    profile = Profiles().of(Requirement(level))
    expected = level is TlsLevel.OPPORTUNISTIC and fault is not TlsFault.INJECTED
    assert may_go_plain(TlsFailure(fault), profile) is expected


def test_a_host_without_tls_is_forgotten_after_an_hour() -> None:
    hosts = Fallbacks()
    hosts.note(("192.0.2.1", 25), 0.0)
    assert hosts.has(("192.0.2.1", 25), REMEMBERED_S)
    assert not hosts.has(("192.0.2.1", 26), 0.0)
    assert not hosts.has(("192.0.2.1", 25), REMEMBERED_S + 0.1)
    assert len(hosts) == 0


def test_a_flush_lets_tls_be_tried_again() -> None:
    hosts = Fallbacks()
    for number in range(3):
        hosts.note(("192.0.2.1", number), 0.0)
    hosts.forget(("192.0.2.1", 1))
    hosts.forget(("192.0.2.1", 9))
    assert [hosts.has(("192.0.2.1", number), 0.0) for number in range(3)] == [True, False, True]
    hosts.clear()
    assert len(hosts) == 0


def test_a_bounded_number_of_hosts_is_remembered_the_newest() -> None:
    hosts = Fallbacks()
    for number in range(MAX_HOSTS + 5):
        hosts.note(("192.0.2.1", number), float(number))
    hosts.note(("192.0.2.1", MAX_HOSTS), 1.0)  # known already
    assert len(hosts) == MAX_HOSTS
    assert not hosts.has(("192.0.2.1", 4), 5.0)
    assert hosts.has(("192.0.2.1", 5), 5.0)


def test_a_warning_is_given_once_an_hour_and_a_bounded_number_is_remembered() -> None:
    warnings = Warnings(max_known=2)
    assert [warnings.tell("a", now) for now in (0.0, 1.0, EVERY_S - 1, EVERY_S, EVERY_S + 1)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert warnings.tell("b", EVERY_S + 1)
    assert warnings.tell("c", EVERY_S + 1)
    assert warnings.tell("a", EVERY_S + 2)  # it was the oldest


def test_a_tls_session_is_resumed_for_an_hour_by_its_own_key() -> None:
    sessions: TlsSessions[str] = TlsSessions()
    sessions.keep(("profile", "host"), "one", 0.0)
    assert sessions.of(("profile", "host"), KEPT_S) == "one"
    assert sessions.of(("other", "host"), 0.0) is None
    assert sessions.of(("profile", "host"), KEPT_S + 0.1) is None
    assert len(sessions) == 0


def test_a_session_that_was_resumed_gets_no_more_time() -> None:
    """A certificate that has ended counts no longer because mail goes there all the time."""
    sessions: TlsSessions[str] = TlsSessions()
    sessions.keep("key", "whole", 0.0)
    sessions.keep("key", "resumed", KEPT_S / 2, "whole")
    assert sessions.of("key", KEPT_S) == "resumed"
    assert sessions.of("key", KEPT_S + 0.1) is None
    sessions.keep("key", "of an older connection", KEPT_S + 0.2, "resumed")
    assert sessions.of("key", KEPT_S + 0.2) is None
    sessions.keep("key", "whole again", KEPT_S + 0.3)
    sessions.keep("key", "of an older connection", KEPT_S + 0.4, "resumed")
    assert sessions.of("key", KEPT_S + 0.4) == "whole again"


def test_a_thousand_sessions_are_kept_the_newest() -> None:
    sessions: TlsSessions[int] = TlsSessions()
    for number in range(MAX_SESSIONS + 1):
        sessions.keep(number, number, 0.0)
    sessions.keep(1, 11, 0.0)  # known already
    assert len(sessions) == MAX_SESSIONS
    assert (sessions.of(0, 0.0), sessions.of(1, 0.0), sessions.of(2, 0.0)) == (None, 11, 2)
    sessions.forget(1)
    assert sessions.of(1, 0.0) is None
    sessions.clear()
    assert len(sessions) == 0
