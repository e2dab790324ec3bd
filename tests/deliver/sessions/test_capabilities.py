"""Which messages a host can't take, by what it said to EHLO."""

from __future__ import annotations

import pytest

from mailismus.config.values.settings import EightBit
from mailismus.deliver.sessions.capabilities import ALL_CAPABILITIES, HostCapabilities
from mailismus.smtp.client.opening import NOTHING, Offers

LIMITED = Offers(size=True, max_size_bytes=1000)


@pytest.mark.parametrize(
    ("offers", "size_bytes", "reply"),
    [
        (NOTHING, 1 << 40, b""),
        (Offers(size=True), 1 << 40, b""),
        (LIMITED, 1000, b""),
        (LIMITED, 1001, b"552 5.3.4 the message of 1001 bytes is larger than this host takes, which is 1000"),
        (Offers(size=True, max_size_bytes=10**20 - 1), 1 << 60, b""),
    ],
)
def test_a_message_larger_than_the_host_takes_fails(offers: Offers, size_bytes: int, reply: bytes) -> None:
    refusal = HostCapabilities(offers, EightBit.SEND).refusal(size_bytes, False)
    assert (bytes(refusal) if refusal else b"") == reply


@pytest.mark.parametrize(
    ("offers", "eightbit", "is_eightbit", "fails"),
    [
        (NOTHING, EightBit.SEND, True, False),
        (NOTHING, EightBit.BOUNCE, False, False),
        (NOTHING, EightBit.BOUNCE, True, True),
        (Offers(eightbit=True), EightBit.BOUNCE, True, False),
    ],
)
def test_8_bit_mail_fails_where_it_shall_not_be_sent_as_it_is(
    offers: Offers, eightbit: EightBit, is_eightbit: bool, fails: bool
) -> None:
    refusal = HostCapabilities(offers, eightbit).refusal(10, is_eightbit)
    assert (refusal is not None) is fails
    if refusal is not None:
        assert refusal.is_permanent
        assert refusal.enhanced == b"5.6.3"


def test_nothing_is_held_against_a_host_that_has_said_nothing() -> None:
    assert ALL_CAPABILITIES.refusal(1 << 60, True) is None
