"""Who may send what to whom."""

from __future__ import annotations

import attrs
import pytest

from mailismus.mail.directory import Directory
from mailismus.smtp import replies
from mailismus.submit.policy import Policy, Standing
from tests.submit.fakes import DIRECTORY, SETTINGS

POLICY = Policy(DIRECTORY, SETTINGS, 10_000)


def check(recipient: bytes, standing: Standing = Standing.STRANGER) -> bytes:
    return POLICY.check_recipient(recipient, standing, 0)


@pytest.mark.parametrize(
    ("host", "standing"),
    [
        ("127.0.0.1", Standing.RELAY_CLIENT),
        ("2001:db8::5", Standing.RELAY_CLIENT),
        ("127.0.0.2", Standing.STRANGER),
        ("::1", Standing.STRANGER),
        ("unknown", Standing.STRANGER),
    ],
)
def test_the_client_s_address_alone_gives_its_standing(host: str, standing: Standing) -> None:
    assert POLICY.standing_of(host) is standing


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize(
    "recipient",
    [
        b"joe@our.example",
        b"JOE@Our.Example",
        b'"joe"@our.example',
        b'"j\\oe"@our.example',
        b"postmaster@our.example",
        b"PostMaster@OUR.example",
        b"postmaster",
        b"POSTMASTER",
    ],
)
def test_our_users_and_postmaster_get_mail_from_anyone(recipient: bytes, standing: Standing) -> None:
    assert check(recipient, standing) == replies.RECIPIENT_OK


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize(
    "recipient",
    [
        b"nobody@our.example",
        b"user%other.example@our.example",
        b"other.example!user@our.example",
        b'"user@other.example"@our.example',
        b'"joe@our.example"@our.example',
        b'""@our.example',
        b"joe+tag@our.example",
    ],
)
def test_who_is_no_user_of_ours_is_unknown_whoever_asks(recipient: bytes, standing: Standing) -> None:
    assert check(recipient, standing) == replies.UNKNOWN_USER


@pytest.mark.parametrize(
    "recipient",
    [
        b"joe@other.example",
        b"joe@[127.0.0.1]",
        b"joe@[IPv6:::1]",
        b"joe@sub.our.example",
        b"joe@xour.example",
        b"joe%our.example@other.example",
        b"postmaster@other.example",
    ],
)
def test_other_domains_are_for_relay_clients_alone(recipient: bytes) -> None:
    assert check(recipient) == replies.RELAY_DENIED
    assert check(recipient, Standing.RELAY_CLIENT) == replies.RECIPIENT_OK


def test_each_accepted_recipient_counts() -> None:
    assert POLICY.check_recipient(b"joe@our.example", Standing.STRANGER, 4) == replies.RECIPIENT_OK
    assert POLICY.check_recipient(b"joe@our.example", Standing.STRANGER, 5) == replies.TOO_MANY_RECIPIENTS


def test_a_message_declared_too_large_is_refused_at_once() -> None:
    assert POLICY.check_sender(100_000, 0) == replies.SENDER_OK
    assert POLICY.check_sender(100_001, 0) == replies.TOO_LARGE


def test_messages_of_a_session_are_limited() -> None:
    policy = attrs.evolve(POLICY, limits=attrs.evolve(SETTINGS, maxmessages=2))
    assert policy.check_sender(0, 1) == replies.SENDER_OK
    assert policy.check_sender(0, 2) == replies.TOO_MANY_MESSAGES


def test_0_is_no_limit() -> None:
    none = attrs.evolve(SETTINGS, maxmsgsize=0, maxrecips=0, maxmessages=0, maxconnections=0, maxpeerconnections=0)
    policy = Policy(DIRECTORY, none, 1 << 40)
    assert policy.check_sender(10**12, 10**6) == replies.SENDER_OK
    assert policy.check_recipient(b"joe@our.example", Standing.STRANGER, 10**6) == replies.RECIPIENT_OK


def test_without_local_domains_strangers_reach_nobody() -> None:
    policy = Policy(Directory(), SETTINGS, 10_000)
    assert policy.check_recipient(b"joe@our.example", Standing.STRANGER, 0) == replies.RELAY_DENIED
    assert policy.check_recipient(b"postmaster", Standing.STRANGER, 0) == replies.UNKNOWN_USER
