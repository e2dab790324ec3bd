"""What each word of a FILTER means, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.mail.reply import Reply
from mailismus.queue.filter import FilterError, parse_filter, parse_subject
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.redirect import Redirect, with_redirects

NOW = 1_700_000_000.0
SPOOL_ID = SpoolId(0x10000002A)


def message(sender: bytes = b"Joe@A.example", *, age_s: float = 60.0, size_bytes: int = 1000) -> Message:
    return Message(SPOOL_ID, sender, b"192.0.2.1", False, NOW - age_s, size_bytes, 2, [])


def entry(recipient: bytes = b"jane@B.example", *, number: int = 2, reply: Reply | None = None) -> Entry:
    return Entry(number, recipient, Area.DEFERRED, NOW, 1, reply)


def matches(words: list[str], of: Message | None = None, at: Entry | None = None) -> bool:
    wanted = parse_filter(words, NOW)
    return wanted.matches(of or message(), at or entry())


def test_no_word_means_everything() -> None:
    wanted = parse_filter([], NOW)
    assert (wanted.spool_id, wanted.area) == (None, None)
    assert matches([])


def test_a_spool_id_means_its_message() -> None:
    wanted = parse_filter(["000000010000002A"], NOW)
    assert wanted.spool_id == SPOOL_ID
    assert wanted.matches(message(), entry())


def test_a_queue_id_means_one_recipient() -> None:
    wanted = parse_filter(["000000010000002A-2"], NOW)
    assert wanted.spool_id == SPOOL_ID
    assert wanted.matches(message(), entry(number=2))
    assert not wanted.matches(message(), entry(number=12))


def test_two_different_ids_mean_nothing() -> None:
    assert not matches(["000000010000002A", "000000010000002B"])
    assert matches(["000000010000002A", "000000010000002A-2"])


def test_an_area() -> None:
    for area in Area:
        assert parse_filter([f"area={area.value}"], NOW).area is area
    assert not matches(["area=deferred", "area=bounces"])


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("sender=joe@a.example", True),
        ("sender=JOE@*", True),
        ("sender=*", True),
        ("sender=joe", False),
        ("sender=<>", False),
        ("recipient=jane@b.example", True),
        ("recipient=j?ne@*.example", True),
        ("recipient=j?@b.example", False),
        ("domain=b.example", True),
        ("domain=*.EXAMPLE", True),
        ("domain=a.example", False),
        ("domain=b.exampl", False),
        ("client=192.0.2.*", True),
        ("client=192.0.3.*", False),
        ("older=59s", True),
        ("older=1m1s", False),
        ("younger=1m1s", True),
        ("younger=59000", False),
        ("larger=999", True),
        ("larger=1K", False),
        ("reply=x", False),
    ],
)
def test_what_each_word_means(word: str, verdict: bool) -> None:
    assert matches([word]) is verdict


def test_all_words_must_be_true() -> None:
    assert matches(["sender=joe*", "domain=b.example", "older=1s"])
    assert not matches(["sender=joe*", "domain=c.example", "older=1s"])


def test_the_null_reverse_path_can_be_asked_for() -> None:
    assert matches(["sender=<>"], message(b""))
    assert not matches(["sender=<>"])


def test_brackets_are_address_literals() -> None:
    assert matches(["domain=[192.0.2.*]"], at=entry(b"jane@[192.0.2.7]"))
    assert not matches(["domain=[b].example"])


def test_a_glob_matches_whole_lines_of_odd_bytes() -> None:
    assert matches(["recipient=gr?ße@*"], at=entry("grüße@b.example".encode()))
    assert matches(["recipient=*@b.example"], at=entry(b"x\n\xff@b.example"))
    assert not matches(["recipient=x"], at=entry(b"x\n"))


def test_a_redirected_entry_has_its_other_recipient_and_who_asks_about_either_finds_it() -> None:
    moved = entry(b"jane@b.example")
    moved.words = with_redirects(None, [Redirect(1, "jürgen@new.example")])
    for word in ("recipient=jürgen@*", "domain=new.example"):
        assert matches([word], at=moved)
        assert not matches([word], at=entry())
    assert not matches(["recipient=jane@*"], at=moved)
    assert not matches(["domain=b.example"], at=moved)
    for subject in ("Jürgen@new.example", "new.example", "Jane@B.example", "b.example"):
        assert parse_subject(subject).wanted.matches(message(), moved)
    assert not parse_subject("other@b.example").wanted.matches(message(), moved)


def test_a_part_of_the_last_reply() -> None:
    refused = entry(reply=Reply(451, b"4.7.1", b"Greylisted, try later"))
    for part in ("greylisted", "451", "4.7.1", "451 4.7.1 Grey"):
        assert matches([f"reply={part}"], at=refused)
    assert not matches(["reply=timeout"], at=refused)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("", "write ID"),
        ("hello", "is no filter: write ID"),
        ("hello", "16 upper-case"),
        ("slow.test", r"did you mean domain=slow\.test\? Else write ID"),
        ("ann@slow.test", r"did you mean recipient=ann@slow\.test\?"),
        ("slow.\x07test", "is no filter: write ID"),
        ("000000010000002a", "16 upper-case"),
        ("000000010000002A-0", "16 upper-case"),
        ("colour=red", "write ID"),
        ("area=held", "area=incoming"),
        ("older=soon", "1h30m"),
        ("younger=", "1h30m"),
        ("larger=big", "128Ki"),
        ("reply=", "reply=timeout"),
        ("sender=", r"^sender=: write a value, as in sender=joe@\*, or 'sender=<>' for reports"),
        ("recipient=", r"^recipient=: write a value, as in recipient=joe@\*$"),
        ("domain=", "domain=example.org"),
        ("client=", "client=192.0.2.7"),
        ("=x", "write ID"),
        ("Sender=x", "write ID"),
    ],
)
def test_a_wrong_word_is_refused_with_what_to_write(word: str, hint: str) -> None:
    with pytest.raises(FilterError, match=hint):
        parse_filter([word], NOW)


@given(st.lists(st.text(max_size=30), max_size=3))
def test_whatever_is_typed_is_a_filter_or_refused(words: list[str]) -> None:
    try:
        wanted = parse_filter(words, NOW)
    except FilterError as error:
        assert str(error).isprintable()  # noqa: PT017 - both ways out are right
    else:
        assert wanted.matches(message(), entry()) in (True, False)


def test_many_stars_take_no_time() -> None:
    assert not matches(["recipient=" + "*a" * 60 + "b"], at=entry(b"a" * 250 + b"@c"))


def test_deleted_entries_match_where_they_are_asked_for_alone() -> None:
    one = Message(SpoolId(1), b"a@b.example", b"192.0.2.1", False, 0.0, 10, 1, [])
    deleted = Entry(1, b"c@d.example", Area.DELETED, 0.0)
    for words in (["sender=*"], ["recipient=*", "older=1s"], [format_spool_id(SpoolId(1))], ["domain=*"]):
        assert not parse_filter(words, 100.0).matches(one, deleted)
        assert parse_filter([*words, "area=deleted"], 100.0).matches(one, deleted)
    assert parse_filter([], 100.0).matches(one, deleted)
