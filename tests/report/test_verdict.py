"""Replies that this server made itself: in reports they are nobody else's words, and give nothing away."""

from __future__ import annotations

from email.message import Message

import pytest

from mailismus.config.values.settings import EightBit
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.authentication import failure as auth
from mailismus.deliver.jobs import conversion, smtputf8
from mailismus.deliver.security.failure import reply_of
from mailismus.deliver.security.profile import Requirement
from mailismus.deliver.sessions import capabilities
from mailismus.mail.attempts import DEFERRED, PastAttempt, with_attempt
from mailismus.mail.convert.refusal import CONVERSION, UTF8_HEADER
from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.queue.acts.act import ActKind, Order, new_act
from mailismus.queue.acts.decide import settlement_of
from mailismus.queue.fsck.files import LOST_REPLY
from mailismus.queue.interface import Area, Entry
from mailismus.report.verdict import LOG_ON, find_verdict
from mailismus.report.wording import Cause, cause_of
from mailismus.smtp.auth.exchange import AuthFinding, AuthVerdict
from mailismus.smtp.client.opening import Offers
from mailismus.smtp.client.starttls import TlsFailure, TlsFault
from tests.report.samples import FAILED, HOST, blocks_of, bounce, message, notice_of, parsed, parts_of, report_of

SHOWN = "mx.far.example [192.0.2.1]"
USER, PATH, LINE = "joe@inner.example", "/etc/mailismus/relay.secret", "<auth> in line 138"
REFUSAL = b"535 5.7.8 joe@inner.example may not"


def of_auth(finding: AuthFinding, user: str = USER) -> Reply:
    return auth.of_verdict(AuthVerdict(finding, 535, REFUSAL[4:], b"why"), HOST, user).reply


LOG_ONS = [
    *[of_auth(finding) for finding in AuthFinding],
    of_auth(AuthFinding.REFUSED, "joe" * 1000),
    auth.lost(b"connection lost", USER).reply,
    auth.not_offered(HOST, ["PLAIN", "LOGIN"]).reply,
    auth.not_offered(HOST, []).reply,
    auth.no_secret(PATH, "No such file or directory").reply,
    auth.no_secret("/x" * 1000, "No such file or directory").reply,
]
TLS = [
    reply_of(TlsFailure(fault, words), HOST, Requirement(TlsLevel.VERIFY, LINE))
    for fault in TlsFault
    for words in (b"454 4.7.0 not now, demanded by me", b"x" * 5000)
]
TOO_LARGE = capabilities.HostCapabilities(Offers(size=True, max_size_bytes=10), EightBit.SEND).refusal(20, False)
assert TOO_LARGE is not None
FORMS = [
    (smtputf8.UTF8_SENDER, Cause.UTF8_ADDRESS),
    (smtputf8.UTF8_RECIPIENT, Cause.UTF8_ADDRESS),
    (smtputf8.UTF8_HEADER, Cause.UTF8_HEADER),
    (conversion._refusal(UTF8_HEADER, b"a header has bytes above 127"), Cause.UTF8_HEADER),
    (conversion._refusal(CONVERSION, b"a multipart has no usable boundary"), Cause.EIGHTBIT),
    (capabilities.NOT_EIGHTBIT, Cause.EIGHTBIT),
    (TOO_LARGE, Cause.TOO_LARGE),
]
OURS = [(conversion.UNREADABLE, Cause.LOCAL_FAILURE), (LOST_REPLY, Cause.LOCAL_FAILURE)]
ALL = [*[(reply, Cause.NO_LOG_ON) for reply in LOG_ONS], *[(reply, Cause.ENCRYPTION) for reply in TLS], *FORMS, *OURS]


def status_of(reply: Reply, host: bytes) -> Message:
    return blocks_of(parts_of(parsed(report_of(message(bounce(reply=reply, host=host)))))[1])[1]


@pytest.mark.parametrize("host", [HOST, b"none", b"-"])
@pytest.mark.parametrize(("reply", "cause"), ALL)
def test_what_this_server_decided_is_nobody_elses_word(reply: Reply, cause: Cause, host: bytes) -> None:
    report = report_of(message(bounce(reply=reply, host=host)))
    told = notice_of(report)
    assert "This server noted: " + str(reply.code) + " " + reply.enhanced.decode() in told
    assert "answered:" not in told
    assert cause.value.side in told
    assert cause.value.advice in told
    block = status_of(reply, host)
    assert str(block["Diagnostic-Code"]).startswith(f"x-mailismus; {reply.code} {reply.enhanced.decode()} ")
    assert block["Remote-MTA"] is None
    assert block["Status"] == reply.enhanced.decode()


def returned(attempts: int) -> Entry:
    """An entry that an administrator bounced, a day behind its only attempt if it had one."""
    words = with_attempt(None, PastAttempt(1, int(FAILED), DEFERRED, 5, b"", HOST, 451, b"4.4.1", b"no"))
    deferred = Entry(1, b"a@far.example", Area.DEFERRED, FAILED, attempts, None, HOST, words if attempts else None)
    act = new_act(7, Order(ActKind.BOUNCE, 0, (), "we were asked to"), FAILED + 86400)
    settled = settlement_of(act, message(deferred), deferred, FAILED + 86400, 0.0)
    return bounce(reply=settled.reply, host=settled.host, attempts=attempts, at=settled.due_at, words=settled.words)


def test_what_an_administrator_returned_is_nobody_elses_decision() -> None:
    report = report_of(message(returned(1)))
    told = notice_of(report)
    assert "The administrator of this server returned the message to you." in told
    assert "This server noted: 554 5.7.0 returned by the administrator: we were asked to" in told
    assert "other server" not in told
    assert "It was tried once, on Sat, 21 Nov 2026 08:32:33 +0000." in told
    block = blocks_of(parts_of(parsed(report))[1])[1]
    assert block["Diagnostic-Code"] == "x-mailismus; 554 5.7.0 returned by the administrator: we were asked to"
    assert block["Last-Attempt-Date"] == "Sat, 21 Nov 2026 08:32:33 +0000"


def test_what_was_returned_untried_has_no_last_attempt() -> None:
    report = report_of(message(returned(0)))
    assert "It was given up untried, on Sun, 22 Nov 2026 08:32:33 +0000." in notice_of(report)
    assert blocks_of(parts_of(parsed(report))[1])[1]["Last-Attempt-Date"] is None


def test_another_server_does_not_speak_for_the_administrator() -> None:
    reply = Reply(554, b"5.7.0", b"returned by the administrator: call 555-0100")
    told = notice_of(report_of(message(bounce(reply=reply))))
    assert f"The server {SHOWN} answered: 554 5.7.0 returned" in told
    assert "administrator of this server" not in told


@pytest.mark.parametrize("host", [HOST, b"none"])
@pytest.mark.parametrize("reply", [*LOG_ONS, *TLS])
def test_no_account_path_or_line_of_the_configuration_is_told(reply: Reply, host: bytes) -> None:
    content = report_of(message(bounce(reply=reply, host=host))).content
    text = b"".join(content.split())
    for inner in ("joe", "inner.example", "/etc", "/x/x", "<auth>", "line138", "LOGIN"):
        assert inner.encode() not in text


@pytest.mark.parametrize("reply", LOG_ONS)
def test_of_credentials_a_sender_reads_only_that_there_was_no_log_on(reply: Reply) -> None:
    told = notice_of(report_of(message(bounce(reply=reply))))
    assert "This server could not log on to the server that passes its mail on to far.example." in told
    assert "other server put the message off" not in told
    assert f"{reply.code} {reply.enhanced.decode()} {LOG_ON.decode()}" in told


def test_a_failure_of_tls_is_told_without_who_demands_it() -> None:
    for reply in TLS:
        verdict = find_verdict(reply, SHOWN)
        assert verdict is not None
        assert verdict.told.text + b", demanded by " + LINE.encode() == reply.text
        assert len(reply.text) <= MAX_TEXT


def test_this_host_gets_its_name() -> None:
    for reply, _ in FORMS:
        verdict = find_verdict(reply, SHOWN)
        assert verdict is not None
        assert SHOWN.encode() in verdict.told.text
        assert b"this host" not in verdict.told.text
        verdict = find_verdict(reply, "")
        assert verdict is not None
        assert verdict.told == reply


def test_a_raw_header_is_told_with_what_to_do() -> None:
    reply = conversion._refusal(UTF8_HEADER, b"a header has bytes above 127")
    told = notice_of(report_of(message(bounce(reply=reply))))
    assert f"This server noted: 554 5.6.9 {SHOWN} does not offer 8BITMIME, and the message can't be converted" in told
    assert "with a mail program that encodes them (RFC 2047)" in told
    assert "plain text, without unusual attachments" not in told


@pytest.mark.parametrize(
    "reply",
    [
        None,
        Reply(451, b"4.7.1", b"authentication as joe failed: no"),
        Reply(550, b"5.7.8", b"authentication as joe failed: no"),
        Reply(451, b"4.7.8", b"my authentication as joe failed: no"),
        Reply(451, b"4.3.5", b"system incorrectly configured"),
        Reply(451, b"4.7.5", b"certificate rejected"),
        Reply(554, b"5.6.3", b"no 8-bit content here"),
        Reply(552, b"5.3.4", b"the message of many bytes is larger than this host takes, which is 7"),
        Reply(451, b"4.3.0", b"the message can't be read now, or ever"),
        Reply(451, b"4.4.2", b"connection lost while the message was sent"),
    ],
)
def test_other_words_are_somebody_elses(reply: Reply | None) -> None:
    assert find_verdict(reply, SHOWN) is None


@pytest.mark.parametrize("reply", [Reply(550, b"5.6.9", b"no UTF-8"), Reply(553, b"5.6.7", b"no UTF-8")])
def test_a_host_that_says_so_itself_has_answered(reply: Reply) -> None:
    assert cause_of(reply, HOST) is Cause.CONTENT
    assert f"The server {SHOWN} answered: {reply.code}" in notice_of(report_of(message(bounce(reply=reply))))
    block = status_of(reply, HOST)
    assert block["Remote-MTA"] == "dns; mx.far.example"
    assert block["Diagnostic-Code"] == f"smtp; {reply.code} {reply.enhanced.decode()} no UTF-8"
