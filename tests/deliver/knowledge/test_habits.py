"""Habits of receivers as delivery notes them: classes, counts, limits, and their bounds."""

from __future__ import annotations

import pytest

from mailismus.deliver.knowledge.habits import HabitBook
from mailismus.deliver.knowledge.hop_habits import DURATIONS, MAX_WATCHED, MOST_COUNTED, class_of, quantiles
from mailismus.deliver.knowledge.recent import RecentOutcomes
from mailismus.deliver.routes.route import HostFinding, NextHop
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.habits import (
    MAX_HOPS,
    MAX_HOSTS,
    MAX_LABELS,
    MAX_REFUSED,
    MAX_REPLY_BYTES,
    NUMBER_OF,
    AttemptClass,
    HopHabits,
    HostHabits,
)
from mailismus.queue.interface import Area, Entry, Message

HOP = NextHop("b.example", 25, HostFinding.MX)
HOST = ("192.0.2.1", 25)
LABEL = b"mx.b.example[192.0.2.1]:25"
GREY = Reply(451, b"4.7.1", b"greylisted")
FULL = Reply(452, b"4.2.2", b"full")
FAST = Reply(450, b"4.7.1", b"you send too fast")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(250, b"2.0.0", b"ok"), AttemptClass.TAKEN),
        (Reply(550, b"5.1.1", b"no such user"), AttemptClass.REFUSED),
        (GREY, AttemptClass.GREY),
        (FULL, AttemptClass.FULL),
        (FAST, AttemptClass.RATE),
        (Reply(421, b"4.7.0", b"too many connections"), AttemptClass.RATE),
        (Reply(451, b"4.4.1", b"connect to mx failed: timed out"), AttemptClass.UNREACHED),
        (Reply(451, b"4.4.3", b"name servers do not answer"), AttemptClass.UNREACHED),
        (Reply(451, b"4.3.0", b"trouble"), AttemptClass.LATER),
    ],
)
def test_a_reply_tells_its_class(reply: Reply, expected: AttemptClass) -> None:
    assert class_of(reply) is expected


def message(sender: bytes = b"s@a.example") -> Message:
    return Message(SpoolId(1), sender, b"-", False, 0.0, 100, 1, [])


def entry(recipient: bytes = b"u@b.example", reply: Reply | None = None) -> Entry:
    return Entry(1, recipient, Area.INCOMING, 0.0, int(reply is not None), reply)


def new_book(max_hops: int = MAX_HOPS, max_hosts: int = MAX_HOSTS) -> HabitBook:
    return HabitBook(RecentOutcomes(max_hops).of_hop, max_hosts)


def hop_of(book: HabitBook, now: float = 0.0) -> HopHabits:
    (found,) = book.hops(now)
    return found


def host_of(book: HabitBook) -> HostHabits:
    (found,) = book.hosts({HOST: 2})
    return found


def test_attempts_are_counted_by_the_one_before() -> None:
    book = new_book()
    book.of(HOP).note_taken([entry(), entry()], message(), 0.5, 1.0)
    book.of(HOP).note_failed([entry()], message(), GREY, LABEL, 2.0)
    book.of(HOP).note_failed([entry(reply=GREY)], message(), GREY, LABEL, 9.0)
    book.of(HOP).note_taken([entry(reply=GREY)], message(), 0.7, 20.0)
    found = hop_of(book, 20.0)
    assert found.first[NUMBER_OF[AttemptClass.TAKEN]] == 2
    assert found.first[NUMBER_OF[AttemptClass.GREY]] == 1
    assert found.later[AttemptClass.GREY][:2] == (1, 1)
    assert found.sending_s == quantiles([0.5, 0.7])
    assert (found.grey_refused_s, found.grey_taken_s) == (7.0, 18.0)
    assert found.labels == (LABEL.decode(),)
    assert found.replies == {AttemptClass.GREY: bytes(GREY)}
    assert found.last_minute == (0, 1, *(0,) * 18, 1)


def test_what_was_taken_in_the_minute_before_a_refusal_is_the_rate() -> None:
    book = new_book()
    for second in range(100):
        book.of(HOP).note_taken([entry()], message(), 0.1, 1000.2 + second)
        if second == 70:
            book.of(HOP).note_too_fast(FAST, 1000.2 + second)
    found = hop_of(book, 1099.5)
    assert found.most_a_minute == 60
    assert found.last_minute == (1,) * 60
    assert hop_of(book, 1129.0).last_minute == (*(0,) * 30, *(1,) * 30)
    assert hop_of(book, 5000.0).last_minute == ()


def test_a_message_counts_in_the_second_in_which_it_began() -> None:
    book = new_book()
    for _ in range(3):
        book.of(HOP).note_taken([entry()], message(), 20.2, 1030.5)
    book.of(HOP).note_taken([entry()], message(), 300.0, 1030.5)
    assert hop_of(book, 1032.0).last_minute == (*(0,) * 22, 3)
    book.of(HOP).note_too_fast(FAST, 1040.0)
    assert hop_of(book, 1040.0).most_a_minute == 3


def test_a_rate_that_refuses_everything_is_none() -> None:
    book = new_book()
    book.of(HOP).note_too_fast(FAST, 5.0)
    assert hop_of(book).most_a_minute == 0


def test_refused_recipients_are_remembered_until_they_are_taken() -> None:
    book = new_book()
    for number in range(MAX_REFUSED + 10):
        book.of(HOP).note_failed([entry(b"u%d@b.example" % number)], message(), FULL, LABEL, 1.0)
    found = hop_of(book)
    assert len(found.refused) == MAX_REFUSED
    assert b"u9@b.example" not in found.refused
    book.of(HOP).note_taken([entry(b"u20@b.example", FULL)], message(), 0.1, 2.0)
    assert b"u20@b.example" not in hop_of(book).refused


def test_hosts_tell_how_sessions_begin() -> None:
    book = new_book()
    book.note_session([HOP], LABEL, HOST, 0.25, False)
    book.note_refused_session(HOST, 3, Reply(421, b"4.7.0", b"too many"))
    book.note_no_session(HOST, 30.0)
    found = host_of(book)
    assert found == HostHabits(*HOST, (0.25,) * 10, 3, b"421 4.7.0 too many", False, 30.0, 2)
    assert hop_of(book).labels == (LABEL.decode(),)


def test_everything_is_bounded() -> None:
    book = new_book(max_hops=3, max_hosts=2)
    for number in range(10):
        book.note_session([HOP._replace(host=f"d{number}.example")], LABEL, (f"192.0.2.{number}", 25), 0.1, True)
    assert [one.host for one in book.hops(0.0)] == ["d7.example", "d8.example", "d9.example"]
    assert len(list(book.hosts({}))) == 2
    book = new_book()
    for number in range(4 * MOST_COUNTED):
        book.of(HOP).note_failed(
            [entry(b"u%d@b.example" % number)], message(), GREY, b"mx%d[192.0.2.1]:25" % number, number / 9
        )
        book.of(HOP).note_taken([entry(b"w@b.example", GREY)], message(), 1.0, number / 9)
    book.of(HOP).note_failed([entry()], message(), Reply(450, b"4.2.0", b"x" * 900), LABEL, 9e9)
    found = hop_of(book, 9e9)
    assert sum(found.first) < MOST_COUNTED
    assert sum(found.later[AttemptClass.GREY]) < MOST_COUNTED
    assert len(found.labels) == MAX_LABELS
    assert len(found.replies[AttemptClass.LATER]) == MAX_REPLY_BYTES
    hop = book.of(HOP)
    assert len(hop.watched) <= MAX_WATCHED
    assert len(hop.sending_s) <= DURATIONS


def test_quantiles_of_nothing_are_none() -> None:
    assert quantiles([]) == ()
    assert quantiles(range(10)) == tuple(range(10))
