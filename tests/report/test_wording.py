"""What a person is told, by what the last reply was."""

from __future__ import annotations

import pytest

from mailismus.mail.reply import Reply
from mailismus.report.wording import Cause, cause_of
from tests.report.samples import FAILED, HOST, bounce, message, notice_of, report_of


@pytest.mark.parametrize(
    ("code", "enhanced", "text", "host", "cause"),
    [
        (550, b"5.1.1", b"no such mailbox", HOST, Cause.NO_MAILBOX),
        (550, b"", b"No such user here", HOST, Cause.NO_MAILBOX),
        (550, b"5.0.0", b"<joe@x.example>... User unknown", HOST, Cause.NO_MAILBOX),
        (550, b"5.4.1", b"Recipient address rejected: Access denied", HOST, Cause.NO_MAILBOX),
        (550, b"", b"Requested action not taken: mailbox unavailable", HOST, Cause.REFUSED),
        (550, b"", b"", HOST, Cause.REFUSED),
        (550, b"", b"temporarily blacked out", HOST, Cause.REFUSED),
        (553, b"5.1.3", b"bad address syntax", HOST, Cause.BAD_ADDRESS),
        (550, b"5.1.2", b"host not found", b"none", Cause.NO_DOMAIN),
        (556, b"5.1.10", b"takes no mail", b"none", Cause.NO_MAIL),
        (550, b"5.2.1", b"account disabled", HOST, Cause.DISABLED),
        (552, b"5.2.2", b"mailbox full", HOST, Cause.MAILBOX_FULL),
        (452, b"4.2.2", b"over quota", HOST, Cause.MAILBOX_FULL),
        (552, b"", b"The user you are trying to reach is over quota", HOST, Cause.MAILBOX_FULL),
        (552, b"5.3.4", b"too big", HOST, Cause.TOO_LARGE),
        (552, b"", b"message size exceeds limit", HOST, Cause.TOO_LARGE),
        (552, b"", b"no", HOST, Cause.TOO_LARGE),
        (554, b"5.7.1", b"<a@b>: Relay access denied", HOST, Cause.NO_RELAY),
        (550, b"5.7.1", b"relaying not permitted", HOST, Cause.NO_RELAY),
        (550, b"5.7.1", b"rejected by our policy", HOST, Cause.POLICY),
        (554, b"5.7.1", b"Service unavailable; client host blocked using zen.spamhaus.org", HOST, Cause.SPAM),
        (550, b"", b"message looks like SPAM", HOST, Cause.SPAM),
        (550, b"5.7.26", b"unauthenticated", HOST, Cause.BAD_SENDER),
        (550, b"5.7.1", b"rejected by DMARC policy", HOST, Cause.BAD_SENDER),
        (550, b"5.1.8", b"sender domain", HOST, Cause.BAD_SENDER),
        (550, b"5.7.10", b"encryption needed", HOST, Cause.ENCRYPTION),
        (550, b"5.6.0", b"bad content", HOST, Cause.CONTENT),
        (554, b"5.4.6", b"routing loop", HOST, Cause.LOOP),
        (554, b"", b"too many hops", HOST, Cause.LOOP),
        (452, b"4.5.3", b"too many recipients", HOST, Cause.TOO_MANY),
        (451, b"4.4.1", b"connect to mx failed: Connection refused", HOST, Cause.NOT_REACHED),
        (451, b"4.4.2", b"connection lost while the message was sent", HOST, Cause.NOT_REACHED),
        (451, b"4.4.2", b"connection lost after the final dot: the message may have been sent", HOST, Cause.IN_DOUBT),
        (550, b"5.1.1", b"user unknown; the message may have been sent", HOST, Cause.NO_MAILBOX),
        (451, b"4.3.0", b"server stopped during delivery: the message may have been delivered", b"local", Cause.IN_DOUBT),
        (451, b"4.4.3", b"the address of x can't be found", b"none", Cause.NO_NAME_SERVICE),
        (451, b"4.7.1", b"Greylisted", HOST, Cause.PUT_OFF),
        (450, b"", b"not now", HOST, Cause.PUT_OFF),
        (451, b"4.3.0", b"out of memory", HOST, Cause.REMOTE_FAILURE),
        (452, b"4.3.1", b"no space for the maildir", b"local", Cause.LOCAL_FAILURE),
        (451, b"", b"no idea", b"none", Cause.NOT_REACHED),
    ],
)
def test_the_cause_is_told_by_the_last_reply(code: int, enhanced: bytes, text: bytes, host: bytes, cause: Cause) -> None:
    assert cause_of(Reply(code, enhanced, text), host) is cause


def test_without_a_reply_nothing_is_made_up() -> None:
    assert cause_of(None, b"-") is Cause.UNKNOWN


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.name.lower())
def test_every_cause_says_what_whose_and_what_to_do(cause: Cause) -> None:
    for sentence in (cause.value.event, cause.value.side, cause.value.advice):
        assert sentence[0].isupper() or sentence.startswith("{domain}")
        assert sentence.endswith(".")
        assert sentence.isascii()


def test_a_person_reads_what_happened_to_which_address_and_what_to_do() -> None:
    told = notice_of(report_of(message(bounce(), of=3)))
    assert "This is the mail server mx.example.net." in told
    assert "could not be delivered to one of its 3 recipients, and will not be tried again" in told
    assert "Subject: hello Received: Sat, 21 Nov 2026 08:31:33 +0000 Our number: 0000000100000003" in told
    assert "<nobody@far.example> The address does not exist: far.example has no mailbox of that name." in told
    assert "What to do: Check its spelling" in told
    assert "The server mx.far.example [192.0.2.1] answered: 550 5.1.1 no such mailbox" in told
    assert "It was tried once, on Sat, 21 Nov 2026 08:32:33 +0000." in told
    assert "For recipients that are not named here the message has arrived" in told


def test_an_expired_message_names_its_attempts_and_its_last_real_reply() -> None:
    reply = Reply(451, b"4.4.1", b"connect to 192.0.2.1[192.0.2.1]:2525 failed: Connection refused")
    entry = bounce(reply=reply, host=b"192.0.2.1[192.0.2.1]:2525", attempts=25, at=1_795_249_893.25 + 72 * 3600)
    told = notice_of(report_of(message(entry)))
    assert "No server for far.example could be reached in all that time" in told
    assert (
        "What came of the last try with 192.0.2.1 port 2525: 451 4.4.1 connect to 192.0.2.1[192.0.2.1]:2525 failed" in told
    )
    assert "It was tried 25 times in 3 days, the last time on Tue, 24 Nov 2026 08:31:33 +0000." in told
    assert "could not be delivered to its recipient" in told
    assert "recipients that are not named" not in told


def test_what_we_noted_ourselves_is_nobody_elses_word() -> None:
    told = notice_of(report_of(message(bounce(reply=Reply(550, b"5.1.1", b"no such user here"), host=b"local"))))
    assert "This server noted: 550 5.1.1 no such user here" in told


def test_recipients_of_the_same_fate_are_listed_together() -> None:
    told = notice_of(report_of(message(bounce(1), bounce(2, b"other@far.example"), bounce(3, b"third@x.example"))))
    assert "<nobody@far.example> <other@far.example> The address does not exist: far.example" in told
    assert "<third@x.example> The address does not exist: x.example" in told
    told = notice_of(report_of(message(bounce(1), bounce(2, b"other@far.example", at=FAILED + 60))))
    assert "<nobody@far.example> The address does not exist" in told
    assert "<other@far.example> The address does not exist" in told
