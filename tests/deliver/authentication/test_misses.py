"""Sessions that were not authenticated: what they keep waiting, what is counted, and one log record in an hour."""

from __future__ import annotations

from twisted.logger import LogLevel, capturedLogs, formatEvent

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.authentication.failure import (
    AuthFailure,
    AuthFailureKind,
    Scope,
    changed,
    no_secret,
    not_offered,
    refused,
)
from mailismus.deliver.authentication.misses import AuthMisses
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.security.profile import Profiles, Requirement
from mailismus.mail.reply import Reply
from mailismus.secret_file import Version

LABEL = b"relay.example[192.0.2.1]:587"
PROFILES = Profiles()
JOE, ANN = (
    PROFILES.of(Requirement(TlsLevel.VERIFY), AuthSettings(("PLAIN",), name, SecretSource(f"{name}.secret", b"1"), None))
    for name in ("joe", "ann")
)
REFUSED = AuthFailure(AuthFailureKind.REFUSED, Reply(451, b"4.7.8", b"authentication as joe failed: 535 no"))


def version(number: int) -> Version:
    return Version(1, number, 10, number, number)


def test_each_kind_keeps_its_own_mail_waiting_and_is_counted() -> None:
    counters = DeliveryCounters()
    misses = AuthMisses(counters)
    failures = (REFUSED, not_offered(LABEL, ["NTLM"]), no_secret("joe.secret", "No such file or directory"))
    scopes = [misses.note(JOE, LABEL, failure, 0.0) for failure in failures]
    assert scopes == [Scope.PROFILE, Scope.HOST, Scope.PROFILE]
    misses.note_success(JOE)
    assert counters.auth_failures == {("refused",): 1, ("not_offered",): 1, ("no_secret",): 1}
    assert counters.auth_sessions == 1


def test_a_renewed_secret_is_tried_once_more_for_each_version_that_was_refused() -> None:
    misses = AuthMisses(DeliveryCounters())
    old, newer = changed(refused(REFUSED, "secret", version(1))), changed(refused(REFUSED, "secret", version(2)))
    assert misses.note(JOE, LABEL, old, 0.0) is Scope.NOTHING
    assert misses.note(JOE, LABEL, old, 0.0) is Scope.NOTHING  # another session that had begun with it
    assert misses.note(JOE, LABEL, newer, 0.0) is Scope.PROFILE
    assert misses.note(ANN, LABEL, newer, 0.0) is Scope.NOTHING
    assert misses.note(JOE, LABEL, newer, 300.0) is Scope.NOTHING  # the next trial


def test_a_success_allows_another_try() -> None:
    misses = AuthMisses(DeliveryCounters())
    assert misses.note(JOE, LABEL, changed(refused(REFUSED, "secret", version(1))), 0.0) is Scope.NOTHING
    misses.note_success(JOE)
    assert misses.note(JOE, LABEL, changed(refused(REFUSED, "secret", version(2))), 0.0) is Scope.NOTHING


def test_each_failure_is_logged_once_an_hour() -> None:
    misses = AuthMisses(DeliveryCounters())
    with capturedLogs() as events:
        for now in (0.0, 10.0, 3599.0, 3600.0):
            misses.note(JOE, LABEL, REFUSED, now)
        misses.note(ANN, LABEL, REFUSED, 3600.0)
        misses.note(JOE, LABEL, changed(refused(REFUSED, "secret", version(1))), 3600.0)  # nothing waits
    texts = [formatEvent(event) for event in events if event["log_level"] is LogLevel.warn]
    words = f"Mail for {LABEL.decode()} as {{}} waits: 451 4.7.8 authentication as joe failed: 535 no"
    assert texts == [words.format(user) for user in ("joe", "joe", "ann")]
