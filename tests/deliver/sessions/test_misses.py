"""Sessions that missed TLS: what follows, what is counted, and one log record in an hour."""

from __future__ import annotations

from twisted.logger import LogLevel, capturedLogs, formatEvent

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.security.fallback import Fallbacks
from mailismus.deliver.security.profile import Profiles, Requirement
from mailismus.deliver.sessions.misses import TlsMisses
from mailismus.smtp.client.starttls import TlsFailure, TlsFault

LABEL = b"mx.example[192.0.2.1]:25"
FAILURE = TlsFailure(TlsFault.HANDSHAKE, b"timed out")
CREDENTIALS = AuthSettings(("PLAIN",), "joe", SecretSource("relay.secret", b"1"), None)
PROFILES = Profiles()
STRICT = PROFILES.of(Requirement(TlsLevel.ENCRYPT, "<tls> in line 42"))
LAX = PROFILES.of(Requirement(TlsLevel.OPPORTUNISTIC, "the default of <tls>"))
SECRET = PROFILES.of(Requirement(TlsLevel.OPPORTUNISTIC, "the default of <tls>"), CREDENTIALS)
REPLY = b"451 4.7.5 Cannot start TLS with host mx.example[192.0.2.1]:25: timed out, demanded by <tls> in line 42"
ENDPOINT = Endpoint("192.0.2.1", 25)


def host(profile: object) -> Host:
    return Host(ENDPOINT, profile, ScheduleLimits())  # type: ignore[arg-type]


def test_what_is_demanded_and_missed_is_a_reply_and_a_warning_an_hour() -> None:
    counters, fallbacks = DeliveryCounters(), Fallbacks()
    misses = TlsMisses(fallbacks, counters)
    with capturedLogs() as events:
        replies = [misses.note(host(STRICT), LABEL, FAILURE, now) for now in (0.0, 1.0, 3600.0)]
    assert {bytes(reply or b"") for reply in replies} == {REPLY}
    assert [(event["log_level"], formatEvent(event)) for event in events] == [
        (LogLevel.warn, f"Mail for {LABEL.decode()} waits: {REPLY.decode()}")
    ] * 2
    assert counters.tls_failures == {("encrypt", "handshake"): 3}
    assert not fallbacks.has(("192.0.2.1", 25), 0.0)


def test_what_is_not_demanded_goes_without_it_for_an_hour() -> None:
    counters, fallbacks = DeliveryCounters(), Fallbacks()
    misses = TlsMisses(fallbacks, counters)
    with capturedLogs() as events:
        assert misses.note(host(LAX), LABEL, FAILURE, 0.0) is None
    (text,) = [formatEvent(event) for event in events]
    assert text.startswith(f"Mail to {LABEL.decode()} goes without TLS for an hour: 451 4.7.5 Cannot start TLS with host")
    assert counters.tls_failures == {("opportunistic", "handshake"): 1}
    assert fallbacks.has(("192.0.2.1", 25), 3600.0)
    assert not fallbacks.has(("192.0.2.1", 25), 3600.1)


def test_mail_with_credentials_waits() -> None:
    fallbacks = Fallbacks()
    reply = TlsMisses(fallbacks, DeliveryCounters()).note(host(SECRET), LABEL, FAILURE, 0.0)
    assert reply is not None
    assert not fallbacks.has(("192.0.2.1", 25), 0.0)


def test_bytes_behind_the_220_are_no_reason_for_plain_text() -> None:
    fallbacks = Fallbacks()
    reply = TlsMisses(fallbacks, DeliveryCounters()).note(host(LAX), LABEL, TlsFailure(TlsFault.INJECTED), 0.0)
    assert reply is not None
    assert reply.enhanced == b"4.7.0"
    assert not fallbacks.has(("192.0.2.1", 25), 0.0)
