"""The table of blame: each row by a reply that it is for, replies of known servers, the events as sessions report them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.knowledge import blame
from mailismus.deliver.knowledge.blame import (
    CASES,
    Blame,
    Case,
    Culprit,
    Event,
    Sign,
    judge,
    judge_recipient,
    judge_transaction,
)
from mailismus.mail.outcome import RetryClass
from mailismus.mail.reply import Reply
from mailismus.smtp.client.reply_parser import make_reply
from mailismus.smtp.client.transaction import PhaseEvent, Transaction
from tests.deliver.harness import Bench
from tests.fakes.sink import Act, Action, Script, Sink

USUAL, GREYLISTING, QUOTA = RetryClass.USUAL, RetryClass.GREYLISTING, RetryClass.QUOTA
RECIPIENT, MESSAGE, HOST, MX_SET = Culprit.RECIPIENT, Culprit.MESSAGE, Culprit.HOST, Culprit.MX_SET
NONE, TOO_MUCH, TIMED_OUT, RESET = Sign.NONE, Sign.TOO_MUCH, Sign.TIMED_OUT, Sign.RESET


def said(words: str) -> Reply:
    """A reply, as it came over the wire."""
    return make_reply(int(words[:3]), words.encode("ascii"))


EXAMPLES: list[tuple[Event, str, Blame]] = [
    (Event.LOOKUP, "451 4.4.3 no MX record now", Blame(MX_SET, USUAL, NONE)),
    (Event.CONNECT, "451 4.4.1 connect to mx.example[192.0.2.1]:25 failed: timed out", Blame(HOST, USUAL, TIMED_OUT)),
    (Event.CONNECT, "451 4.4.1 connect to mx[192.0.2.1]:25 failed: Connection reset by peer", Blame(HOST, USUAL, RESET)),
    (Event.CONNECT, "451 4.4.1 connect to mx[192.0.2.1]:25 failed: Connection refused", Blame(HOST, USUAL, NONE)),
    (Event.GREETING, "450 busy", Blame(HOST, USUAL, TOO_MUCH)),
    (Event.EHLO, "421 bye", Blame(HOST, USUAL, TOO_MUCH)),
    (Event.EHLO, "452 4.3.2 not now", Blame(HOST, USUAL, TOO_MUCH)),
    (Event.GREETING, "554 Too many connections from your address", Blame(HOST, USUAL, TOO_MUCH)),
    (Event.GREETING, "554 5.7.1 Service unavailable; client host blocked", Blame(HOST, USUAL, NONE)),
    (Event.LOST_OPENING, "451 4.4.2 timed out while the session was set up", Blame(HOST, USUAL, TIMED_OUT)),
    (Event.LOST_ENVELOPE, "451 4.4.2 connection lost before the reply to MAIL", Blame(HOST, USUAL, RESET)),
    (Event.LOST_ENVELOPE, "451 4.4.2 what came is no reply before the reply to RCPT or DATA", Blame(HOST, USUAL, NONE)),
    (Event.LOST_CONTENT, "451 4.4.2 timed out while the message was sent", Blame(MESSAGE, USUAL, TIMED_OUT)),
    (Event.LOST_DOT, "451 4.4.2 connection lost after the final dot: it may have been sent", Blame(MESSAGE, USUAL, RESET)),
    (Event.LOST_DOT, "451 4.4.2 server stopped after the final dot: it may have been sent", Blame(MESSAGE, USUAL, NONE)),
    (Event.DOT, "421 4.7.28 unusual rate of mail with one of your DKIM domains", Blame(MESSAGE, USUAL, TOO_MUCH)),
    (Event.MAIL, "421 4.7.0 [TSS04] Messages temporarily deferred", Blame(HOST, USUAL, TOO_MUCH)),
    (Event.LATER_RECIPIENT, "452 4.5.3 Too many recipients", Blame(Culprit.TRANSACTION, USUAL, NONE)),
    (Event.RECIPIENT, "452 4.2.2 The email account is over quota", Blame(RECIPIENT, QUOTA, NONE)),
    (Event.DOT, "452 4.2.2 mailbox full", Blame(MESSAGE, QUOTA, NONE)),
    (Event.MAILDIR, "452 4.2.2 the user's quota is used up", Blame(RECIPIENT, QUOTA, NONE)),
    (Event.RECIPIENT, "450 4.2.1 The user is receiving mail at a rate that prevents more", Blame(RECIPIENT, USUAL, NONE)),
    (Event.RECIPIENT, "450 4.7.1 Error: too much mail from 192.0.2.1", Blame(MX_SET, GREYLISTING, TOO_MUCH)),
    (Event.RECIPIENT, "451 4.7.1 Greylisting in action, please come back later", Blame(RECIPIENT, GREYLISTING, NONE)),
    (Event.DATA, "451 4.7.1 Service unavailable - try again later", Blame(MESSAGE, GREYLISTING, NONE)),
    (Event.LATER_RECIPIENT, "450 Greylisted, try again later", Blame(RECIPIENT, USUAL, NONE)),
    (Event.MAIL, "451 4.3.0 graylisted, try again later", Blame(MESSAGE, USUAL, NONE)),
    (Event.MAIL, "451 4.7.652 The mail server has been refused", Blame(MX_SET, USUAL, TOO_MUCH)),
    (Event.RECIPIENT, "452 Too many recipients received this hour", Blame(MX_SET, USUAL, TOO_MUCH)),
    (Event.DOT, "451 4.3.0 Please try again later", Blame(MX_SET, USUAL, TOO_MUCH)),
    (Event.RECIPIENT, "450 4.1.8 sender's domain not found, try again later", Blame(RECIPIENT, USUAL, NONE)),
    (Event.MAILDIR, "451 4.3.0 maildir: Not a directory", Blame(RECIPIENT, USUAL, NONE)),
    (Event.MAIL, "452 4.3.1 Insufficient system storage", Blame(MESSAGE, USUAL, NONE)),
    (Event.DOT, "450 4.7.1 try again later", Blame(MESSAGE, USUAL, NONE)),
]
"""One for each row of the table, in its order."""


def _row_of(event: Event, reply: Reply) -> Case:
    """The first row that fits, found plainly."""

    def fits(row: Case) -> bool:
        text = reply.text.decode("ascii", "replace").lower()
        return (
            event in row.events
            and reply.code in row.codes
            and (row.status is None or re.fullmatch(row.status, reply.enhanced.decode()) is not None)
            and (row.words is None or re.search(row.words, text) is not None)
        )

    return next(row for row in CASES if fits(row))


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_each_row_judges_what_it_is_for(place: int) -> None:
    event, words, expected = EXAMPLES[place]
    assert judge(event, said(words)) == expected
    assert CASES.index(_row_of(event, said(words))) == place


def test_each_row_has_an_example_and_a_source() -> None:
    assert len(EXAMPLES) == len(CASES)
    assert all(row.source for row in CASES)


UP_TO_EHLO = (Event.CONNECT, Event.GREETING, Event.EHLO, Event.LOST_OPENING)


@given(
    event=st.sampled_from(Event),
    code=st.integers(400, 599),
    enhanced=st.sampled_from([b"", b"4.7.1", b"4.2.2", b"4.5.3", b"4.7.0", b"5.7.1", b"4.3.2", b"4.99.999"]),
    text=st.binary(max_size=1000) | st.sampled_from([b"exceed " * 140, b"rate " * 200, b"too many " * 100]),
)
def test_every_failure_has_a_judgement(event: Event, code: int, enhanced: bytes, text: bytes) -> None:
    reply = Reply(code, enhanced, text)
    found = judge(event, reply)
    assert found == _row_of(event, reply).blame
    is_before = event in UP_TO_EHLO or event is Event.LOST_ENVELOPE
    if found.culprit is HOST:
        assert is_before or code == 421
    assert not is_before or found.culprit is HOST
    if found.retry is GREYLISTING:
        assert code in (450, 451)
        assert enhanced == b"4.7.1"
        assert event in (Event.MAIL, Event.RECIPIENT, Event.LATER_RECIPIENT, Event.DATA)
    if found.retry is QUOTA:
        assert enhanced == b"4.2.2"


KNOWN: list[tuple[Event, str, Culprit, Sign]] = [
    (Event.GREETING, "421 4.7.0 mx.example Error: too many connections from 192.0.2.1", HOST, TOO_MUCH),  # Postfix
    (Event.GREETING, "421 Too many concurrent SMTP connections; please try again later.", HOST, TOO_MUCH),  # Exim
    (Event.GREETING, "421 4.3.2 Connection rate limit exceeded.", HOST, TOO_MUCH),  # sendmail
    (Event.MAIL, "452 4.3.2 Connection rate limit exceeded.", MX_SET, TOO_MUCH),
    (Event.MAIL, "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume", HOST, TOO_MUCH),
    (Event.RECIPIENT, "421 4.7.28 Our system has detected an unusual rate of unsolicited mail", HOST, TOO_MUCH),  # Gmail
    (Event.DOT, "421 4.7.0 Our system has detected that this message is suspicious", MESSAGE, TOO_MUCH),
    (Event.MAIL, "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77714)", MX_SET, TOO_MUCH),  # Outlook
    (Event.MAIL, "451 4.7.652 The mail server has exceeded the maximum number of connections. (S3115)", MX_SET, TOO_MUCH),
    (Event.RECIPIENT, "450 4.2.1 Mailbox received too much email in a short period of time (G30)", RECIPIENT, NONE),
    (
        Event.RECIPIENT,
        "451 4.7.1 Received too many messages from a new or untrusted IP (G28)",
        MX_SET,
        TOO_MUCH,
    ),  # Rackspace
    (Event.MAIL, "421 4.4.5 Service unavailable, concurrency limit reached", HOST, TOO_MUCH),
    (Event.RECIPIENT, "450 4.2.0 Recipient address rejected: Greylisted", RECIPIENT, NONE),  # Postgrey
    (Event.RECIPIENT, "450 4.1.1 Recipient address rejected: unverified address", RECIPIENT, NONE),
    (Event.RECIPIENT, "450 4.7.1 Client host rejected: cannot find your reverse hostname", RECIPIENT, NONE),
    (Event.RECIPIENT, "554 5.4.6 too many hops", RECIPIENT, NONE),
    (Event.DOT, "554 5.7.1 too many of these are spam", MESSAGE, NONE),
    (Event.DOT, "451 4.3.0 the corporate archive is full", MESSAGE, NONE),
]
"""What known servers say."""


@pytest.mark.parametrize(("event", "words", "culprit", "sign"), KNOWN)
def test_replies_of_known_servers(event: Event, words: str, culprit: Culprit, sign: Sign) -> None:
    found = judge(event, said(words))
    assert (found.culprit, found.sign) == (culprit, sign)


def test_a_lone_recipient_that_is_refused_is_no_full_transaction() -> None:
    transaction = Transaction(b"s@a.example", [b"one", b"two", b"three"], 100, False)
    reply = said("452 4.5.3 Too many recipients")
    transaction.answered, transaction.left = 1, 2  # the first was refused, the others have no reply yet
    assert judge_recipient(transaction, reply).culprit is MX_SET
    transaction.answered, transaction.left = 3, 1  # the second was accepted
    assert judge_recipient(transaction, reply).culprit is Culprit.TRANSACTION


EVENTS: dict[str, tuple[Script, Event]] = {
    "greeting 421": ({"greeting": b"421 4.3.2 full\r\n"}, Event.GREETING),
    "greeting 554": ({"greeting": b"554 5.7.1 no\r\n"}, Event.GREETING),
    "greeting closes": ({"greeting": Act.CLOSE}, Event.LOST_OPENING),
    "greeting garbage": ({"greeting": b"SSH-2.0-OpenSSH\r\n"}, Event.LOST_OPENING),
    "greeting silence": ({"greeting": Act.SILENCE}, Event.LOST_OPENING),
    "EHLO 421": ({"EHLO": b"421 bye\r\n"}, Event.EHLO),
    "EHLO and HELO refused": ({"EHLO": b"550 no\r\n", "HELO": b"550 no\r\n"}, Event.EHLO),
    "MAIL 4xx": ({"MAIL": b"450 4.1.8 later\r\n"}, Event.MAIL),
    "MAIL 421": ({"MAIL": b"421 4.7.0 bye\r\n"}, Event.MAIL),
    "MAIL closes": ({"MAIL": Act.CLOSE}, Event.LOST_ENVELOPE),
    "MAIL silence": ({"MAIL": Act.SILENCE}, Event.LOST_ENVELOPE),
    "too large": ({"EHLO": b"250-sink\r\n250 SIZE 10\r\n"}, Event.MAIL),
    "RCPT 4xx": ({"RCPT": b"450 4.2.0 later\r\n"}, Event.RECIPIENT),
    "RCPT 421": ({"RCPT": b"421 4.7.0 bye\r\n"}, Event.RECIPIENT),
    "RCPT resets": ({"RCPT": Act.ABORT}, Event.LOST_ENVELOPE),
    "DATA 4xx": ({"DATA": b"451 4.3.0 later\r\n"}, Event.DATA),
    "DATA 421": ({"DATA": b"421 4.7.0 bye\r\n"}, Event.DATA),
    "DATA closes": ({"DATA": Act.CLOSE}, Event.LOST_ENVELOPE),
    "dot 4xx": ({"dot": b"450 4.7.1 later\r\n"}, Event.DOT),
    "dot 421": ({"dot": b"421 4.3.2 bye\r\n"}, Event.DOT),
    "dot closes": ({"dot": Act.CLOSE}, Event.LOST_DOT),
    "dot silence": ({"dot": Act.SILENCE}, Event.LOST_DOT),
}


def record(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Event, Reply]]:
    """What the table is asked, in order."""
    asked: list[tuple[Event, Reply]] = []
    plain_judge = blame.judge

    def note(event: Event, reply: Reply) -> Blame:
        asked.append((event, reply))
        return plain_judge(event, reply)

    monkeypatch.setattr(blame, "judge", note)
    return asked


@pytest.mark.parametrize("name", EVENTS)
def test_sessions_report_the_events(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, expected = EVENTS[name]
    asked = record(monkeypatch)
    bench = Bench()
    bench.sink(script)
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(1500 if "silence" in name else 3, 0.5)
    event, reply = asked[-1]
    assert event is expected
    sign = judge(event, reply).sign
    if "silence" in name:
        assert sign is TIMED_OUT
    elif "closes" in name or "resets" in name:
        assert sign is RESET
    elif "421" in name:
        assert sign is TOO_MUCH
        assert reply.code == 421
    elif name in ("greeting 554", "too large"):
        assert (reply.code // 100, sign) == (5, NONE)


@pytest.mark.parametrize(("last_word", "event"), [(b"", Event.LOST_CONTENT), (b"421 4.3.2 going down\r\n", Event.CONTENT)])
def test_a_session_that_ends_in_the_middle_of_the_content(
    last_word: bytes, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(sink: Sink) -> Action:
        sink.leave_after, sink.last_word = 10_000, last_word
        return b"354 go\r\n"

    asked = record(monkeypatch)
    bench = Bench(large_bytes=1000)
    bench.sink({"DATA": leave})
    bench.put(b"r@b.example", content=b"x" * 70 + b"\r\n" + b"line\r\n" * 200_000)
    bench.task.start()
    bench.run(3)
    assert asked[0][0] is event


@pytest.mark.parametrize("step", ["MAIL", "DATA"])
def test_when_mail_or_data_is_refused_no_recipient_is_left(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []

    def note(transaction: Transaction, reply: Reply) -> Blame:
        left.append(transaction.left)
        return judge_transaction(transaction, reply)

    monkeypatch.setattr("mailismus.deliver.sessions.verdicts.judge_transaction", note)
    bench = Bench()
    bench.sink({step: b"450 4.1.8 later\r\n"})
    bench.put(b"a@b.example", b"c@b.example")
    bench.task.start()
    bench.run(1)
    assert left == [0]
    assert bench.statuses() == {"deferred": 2}


def test_an_accepted_message_asks_for_no_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = record(monkeypatch)
    bench = Bench()
    bench.sink()
    bench.put(b"a@b.example", b"c@b.example")
    bench.task.start()
    bench.run(1)
    assert bench.statuses() == {"sent": 2}
    assert asked == []


def test_a_refused_transaction_was_not_sent_and_a_judged_one_was() -> None:
    refused, judged = (Transaction(b"", [b"r"], 1, False) for _ in range(2))
    for transaction in (refused, judged):
        transaction.move(PhaseEvent.MAIL_SENT)
        transaction.move(PhaseEvent.MAIL_ACCEPTED)
        transaction.answered = 1
    refused.refuse()
    for event in (PhaseEvent.DATA_ACCEPTED, PhaseEvent.DOT_SENT, PhaseEvent.DOT_ANSWERED):
        judged.move(event)
    assert judge_transaction(refused, said("451 4.7.1 later")).retry is GREYLISTING
    assert judge_transaction(judged, said("451 4.7.1 later")).retry is USUAL
