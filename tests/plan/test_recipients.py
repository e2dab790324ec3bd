"""What single recipients get: states, draws, and the time of greylisting."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mailismus.observe.habits import AttemptClass
from mailismus.plan.recipients import GREY_S, RecipientAnswers, grey_s_of, said_grey_s
from mailismus.plan.site import TOO_FAST
from tests.plan.samples import counts, hop

SENDER = b"s@a.example"


def answers(**facts: object) -> RecipientAnswers:
    return RecipientAnswers(hop("b.example", **facts) if facts else None, random.Random(1))


def test_without_knowledge_everybody_is_taken() -> None:
    assert answers().answer(SENDER, b"u@b.example", 0.0) is None


def test_who_is_refused_stays_refused_and_who_is_taken_stays_taken() -> None:
    found = answers(first=counts(TAKEN=50, REFUSED=50))
    replies = {number: found.answer(SENDER, b"u%d@b.example" % number, 0.0) for number in range(200)}
    again = {number: found.answer(SENDER, b"u%d@b.example" % number, 9.0) for number in range(200)}
    assert replies == again
    assert 60 <= sum(reply is None for reply in replies.values()) <= 140


def test_a_full_mailbox_is_emptied_as_often_as_lately() -> None:
    found = answers(later={AttemptClass.FULL: counts(FULL=90, TAKEN=10)})
    got: Counter[bool] = Counter()
    for number in range(1000):
        found.remember(SENDER, b"u%d@b.example" % number, AttemptClass.FULL, 0.0)
        got[found.answer(SENDER, b"u%d@b.example" % number, 0.0) is None] += 1
    assert 60 <= got[True] <= 140
    assert RecipientAnswers(None, random.Random(1)).answer(SENDER, b"u@b.example", 0.0) is None


def test_greylisting_goes_by_sender_recipient_and_time() -> None:
    found = answers(first=counts(GREY=1000), grey_refused_s=10.0, grey_taken_s=20.0)
    assert found.answer(SENDER, b"u@b.example", 0.0) == b"451 4.7.1 greylisted"
    assert found.answer(SENDER, b"u@b.example", 14.0) is not None
    assert found.answer(SENDER, b"u@b.example", 15.0) is None
    assert found.answer(SENDER, b"u@b.example", 16.0) is None
    assert found.answer(b"other@a.example", b"u@b.example", 16.0) is not None


def test_one_attempt_that_is_known_tells_of_its_host_and_little_of_other_recipients() -> None:
    def taken(**facts: object) -> int:
        found = answers(**facts)
        return sum(found.answer(SENDER, b"u%d@b.example" % number, 0.0) is None for number in range(1000))

    assert taken(first=counts(GREY=1)) == 0
    assert 750 <= taken(first=counts(FULL=1)) <= 850
    assert 750 <= taken(first=counts(REFUSED=1)) <= 850
    assert 400 <= taken(first=counts(LATER=1)) <= 600
    assert 400 <= taken(first=counts(RATE=1)) <= 600
    assert taken(first=counts(RATE=1), most_a_minute=5) == 1000
    assert taken(first=counts(UNREACHED=1)) == 1000


def test_what_was_too_fast_is_drawn_where_no_limit_is_known() -> None:
    found, limited = answers(first=counts(TAKEN=1)), answers(first=counts(TAKEN=1), most_a_minute=5)
    for number in range(100):
        for one in (found, limited):
            one.remember(SENDER, b"u%d@b.example" % number, AttemptClass.RATE, 0.0)
    got = [found.answer(SENDER, b"u%d@b.example" % number, 0.0) for number in range(100)]
    assert 30 <= got.count(None) <= 70
    assert set(got) == {None, TOO_FAST}
    assert all(limited.answer(SENDER, b"u%d@b.example" % number, 0.0) is None for number in range(100))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"451 4.7.1 Greylisted, try again in 16 seconds", 16.0),
        (b"450 4.2.0 greylisted for 5 minutes", 300.0),
        (b"451 4.7.1 greylisted, come back in 99999min", 86400.0),
        (b"451 4.7.1 greylisted", 0.0),
        (b"451 4.7.1 greylisted 10 messages", 0.0),
        (b"451 4.7.1 greylisted by 0sec", 0.0),
    ],
)
def test_greylisting_may_say_how_long_it_refuses(reply: bytes, expected: float) -> None:
    assert said_grey_s(reply) == expected
    assert grey_s_of(hop("b.example", replies={AttemptClass.GREY: reply})) == (expected or GREY_S)
    found = answers()
    found.remember(SENDER, b"u@b.example", AttemptClass.GREY, 0.0, reply)
    assert found.answer(SENDER, b"u@b.example", (expected or GREY_S) - 0.1) is not None
    assert found.answer(SENDER, b"u@b.example", expected or GREY_S) is None


def test_the_words_are_those_of_the_host() -> None:
    found = answers(replies={AttemptClass.FULL: b"452 4.2.2 no room"})
    found.remember(SENDER, b"u@b.example", AttemptClass.FULL, 0.0)
    assert found.answer(SENDER, b"u@b.example", 0.0) == b"452 4.2.2 no room"


@pytest.mark.parametrize(
    ("refused_s", "taken_s", "expected"),
    [(0.0, 0.0, GREY_S), (10.0, 20.0, 15.0), (0.0, 20.0, 10.0), (30.0, 20.0, 20.0), (900.0, 0.0, 900.0)],
)
def test_the_time_of_greylisting_lies_between_what_was_seen(refused_s: float, taken_s: float, expected: float) -> None:
    assert grey_s_of(hop("b.example", grey_refused_s=refused_s, grey_taken_s=taken_s)) == expected
