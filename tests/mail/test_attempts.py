"""The word of attempts: round trip, bounds, hostile replies, damaged words."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailismus.mail.attempts import (
    BOUNCED,
    DEFERRED,
    EXPIRED,
    LAST,
    LONGEST,
    MAX_HOST,
    PastAttempt,
    attempts_of,
    fitting,
    with_attempt,
    without_attempts,
)
from mailismus.mail.words import LONGEST_WORDS, check_recipient_words, decode_words, encode_words

short = st.binary(max_size=12)
attempts = st.builds(
    PastAttempt,
    number=st.just(1),
    at=st.integers(0, 10**11 - 1),
    decided=st.just(DEFERRED),
    wait_s=st.integers(0, 10**9 - 1),
    tls=st.binary(max_size=8),
    host=short,
    code=st.integers(200, 599),
    enhanced=st.sampled_from([b"", b"4.7.1", b"5.1.1"]),
    text=short,
)


def attempt(number: int, text: bytes = b"try later", host: bytes = b"mx.a.example[192.0.2.9]:25") -> PastAttempt:
    return PastAttempt(number, 1_795_000_000 + 900 * number, DEFERRED, 900, b"encrypt", host, 451, b"4.7.1", text)


def after(*made: PastAttempt, words: bytes | None = None) -> bytes | None:
    for one in made:
        words = with_attempt(words, one)
    return words


@given(attempts)
def test_an_attempt_comes_back_as_it_was(one: PastAttempt) -> None:
    assert attempts_of(with_attempt(None, one)) == (one,)


@given(st.lists(attempts, min_size=1, max_size=3))
def test_few_attempts_come_back_in_order(made: list[PastAttempt]) -> None:
    numbered = [
        PastAttempt(n, one.at, one.decided, one.wait_s, one.tls[:2], one.host[:3], one.code, one.enhanced, one.text[:3])
        for n, one in enumerate(made, 1)
    ]
    assert attempts_of(after(*numbered)) == tuple(numbered)


def test_equal_replies_are_stored_once() -> None:
    one, two = after(attempt(1)), after(attempt(1), attempt(2))
    assert one is not None
    assert two is not None
    assert two.count(b"try+later") == 1
    assert two == one + b"|2,1795001800,d900"


def test_what_was_decided_is_kept() -> None:
    last = PastAttempt(3, 1_795_003_000, EXPIRED, 0, b"", b"none", 451, b"4.4.1", b"no host")
    found = attempts_of(after(attempt(1), last))
    assert found[-1] == last
    assert found[-1].next_at is None
    assert found[0].next_at == found[0].at + 900
    refused = PastAttempt(2, 1_795_003_000, BOUNCED, 0, b"!encrypt", b"mx[::1]:25", 550, b"5.1.1", b"a,b|c+d%e")
    assert attempts_of(after(attempt(1), refused))[-1] == refused


def test_the_first_and_the_last_are_kept() -> None:
    found = attempts_of(after(*map(attempt, range(1, 41))))
    assert [one.number for one in found] == [1, *range(41 - LAST, 41)]


HOSTILE = [b"\0" * 1_000_000, b"\xff" * 1_000_000, b"|,+% \r\n" * 200_000, b"%41%00|1,2,d3" * 70_000, b"a" * 1_000_000]


@pytest.mark.parametrize("text", HOSTILE, ids=["NUL", "8-bit", "separators", "escapes", "long"])
@pytest.mark.parametrize("is_host_too", [False, True])
def test_hostile_replies_stay_within_the_bound_and_harm_no_other_word(text: bytes, is_host_too: bool) -> None:
    words = encode_words({b"act": b"A7", b"was": b"deferred:1"})
    for number in range(1, 12):
        # None is equal to the one before
        own = b"%d" % number + text
        words = with_attempt(words, attempt(number, own, own[:1000] if is_host_too else b"mx[192.0.2.9]:25"))
        assert words is not None
        check_recipient_words(words)
        assert len(words) <= LONGEST + len(b"act=A7 was=deferred:1  ")
        facts = decode_words(words)
        assert (facts[b"act"], facts[b"was"]) == (b"A7", b"deferred:1")
        found = attempts_of(words)
        assert found[-1].number == number
        assert found[-1].host == (own[:MAX_HOST] if is_host_too else b"mx[192.0.2.9]:25")


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300)), max_size=9))
def test_words_are_valid_and_bounded_whatever_was_said(said: list[tuple[bytes, bytes]]) -> None:
    words = None
    for number, (host, text) in enumerate(said, 1):
        words = with_attempt(words, attempt(number, text, host))
        if words is not None:
            check_recipient_words(words)
            assert len(words) <= LONGEST
        found = attempts_of(words)
        assert [one.number for one in found] == sorted({one.number for one in found})


@given(st.binary(max_size=200))
@example(b"1,2,d3")
@example(b"1,2,d3,,,451,,|1,2,d3")
@example(b"2,2,d3,,,451,,|1,2,d3")
@example(b"1,2,d3,,,451,,%4")
@example(b"1,2,q,,,451,,")
def test_a_word_of_another_form_is_no_history_and_the_next_attempt_begins_anew(value: bytes) -> None:
    words = encode_words({b"tries": value, b"zone": b"x"})
    if not attempts_of(words):
        new = with_attempt(words, attempt(4))
        assert attempts_of(new) == (attempt(4),)
        assert decode_words(new)[b"zone"] == b"x"


def test_without_a_word_there_is_no_history() -> None:
    assert attempts_of(None) == attempts_of(b"act=A7") == ()
    assert without_attempts(after(attempt(1))) is None
    assert without_attempts(after(attempt(1), words=b"act=A7")) == b"act=A7"


def test_a_number_that_is_not_new_begins_anew() -> None:
    assert attempts_of(after(attempt(1), attempt(2), attempt(2))) == (attempt(2),)


def test_the_history_gives_way_to_words_that_need_its_room() -> None:
    others = b"act=" + b"A" * (LONGEST_WORDS - 20)
    assert with_attempt(others, attempt(1)) == others
    long = (with_attempt(b"act=A7", attempt(1)) or b"") + b" was=" + b"x" * LONGEST_WORDS
    assert fitting(long) == b"act=A7 was=" + b"x" * LONGEST_WORDS
    assert fitting(b"act=A7") == b"act=A7"
