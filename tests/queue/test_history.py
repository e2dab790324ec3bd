"""What the history of an entry says of an outcome, and when there is none."""

from __future__ import annotations

from mailismus.mail.attempts import attempts_of
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry
from mailismus.queue.outcome.disposition import Disposition
from mailismus.queue.outcome.history import with_outcome

LATER = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.7.1", b"later"), b"mx[192.0.2.9]:25", tls=b"!encrypt")


def test_an_outcome_becomes_an_attempt_with_host_tls_reply_and_decision() -> None:
    entry = Entry(1, b"c@d.example", Area.INCOMING, 0.0, words=b"act=A7")
    words = with_outcome(entry, LATER, Disposition.DEFERRED, 1000.9, 300.4)
    (made,) = attempts_of(words)
    assert (made.number, made.at, made.decided, made.next_at) == (1, 1000, "deferred", 1300)
    assert (made.host, made.tls, made.reply) == (b"mx[192.0.2.9]:25", b"!encrypt", b"451 4.7.1 later")
    assert words.startswith(b"act=A7 ")
    later = with_outcome(Entry(1, b"c@d.example", Area.DEFERRED, 0.0, 1, words=words), LATER, Disposition.EXPIRED, 2000.0)
    assert [(made.number, made.decided) for made in attempts_of(later)] == [(1, "deferred"), (2, "expired")]


def test_clocks_that_are_wrong_make_no_damage() -> None:
    (made,) = attempts_of(with_outcome(Entry(1, b"c@d", Area.INCOMING, 0.0), LATER, Disposition.DEFERRED, -5.0, 1e12))
    assert (made.at, made.wait_s) == (0, 999_999_999)
    (made,) = attempts_of(with_outcome(Entry(1, b"c@d", Area.INCOMING, 0.0), LATER, Disposition.DEFERRED, 1e18, -5.0))
    assert (made.at, made.wait_s) == (99_999_999_999, 0)
