"""Records of hosts: merged, believed, bounded, and as lines of text."""

from __future__ import annotations

import random
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.knowledge.host_records import (
    FUTURE_S,
    MAX_TEXT,
    HostRecord,
    Key,
    believed,
    bounded,
    format_line,
    merge,
    newer,
    parse_line,
)
from mailismus.mail.reply import Reply
from mailismus.queue.files.state_file import MAX_LINE

NOW = 1_795_363_200.0
FORGET_S = 7200.0
REFUSED = Reply(451, b"4.4.1", b"connect to mx.example[192.0.2.1]:25 failed: 100 % refused")

TIMES = st.integers(1, 10**12).map(lambda ms: ms / 1000)
NEAR = st.integers(-200_000_000, 200_000_000).map(lambda ms: NOW + ms / 1000)
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=MAX_TEXT).map(str.encode)
REPLIES = st.none() | st.builds(Reply, st.integers(400, 599), st.sampled_from([b"", b"4.4.1", b"5.999.999"]), TEXTS)
ADDRESSES = st.ip_addresses().map(str)


def records(addresses: st.SearchStrategy[str], times: st.SearchStrategy[float]) -> st.SearchStrategy[HostRecord]:
    """Records of hosts that died, live, or whose connections were closed."""
    ports, never, no_reply = st.sampled_from([25, 26, 65535]), st.just(0.0), st.none()
    dead = st.tuples(addresses, ports, times, times, st.integers(1, 99), REPLIES, never | times)
    alive = st.tuples(addresses, ports, times, never, st.just(0), no_reply, never | times)
    closed = st.tuples(addresses, ports, never, never, st.just(0), no_reply, times)
    return (dead | alive | closed).map(HostRecord._make)


FEW = st.lists(records(st.sampled_from(["192.0.2.1", "2001:db8::1"]), st.sampled_from([NOW, NOW + 1, NOW + 2])), max_size=6)


def copy_of(heard: list[HostRecord]) -> dict[Key, HostRecord]:
    """What one copy knows that heard this."""
    return merge({}, heard)


@given(FEW, FEW)
def test_the_order_in_which_copies_hear_of_hosts_does_not_matter(one: list[HostRecord], other: list[HostRecord]) -> None:
    assert merge(copy_of(one), other) == merge(copy_of(other), one)


@given(FEW, FEW, FEW)
def test_nor_does_it_by_what_ways_they_do(one: list[HostRecord], two: list[HostRecord], three: list[HostRecord]) -> None:
    together = merge(copy_of(one), merge(copy_of(two), three).values())
    assert together == merge(merge(copy_of(one), two), three)
    shuffled = [*one, *two, *three]
    random.Random(len(shuffled)).shuffle(shuffled)
    assert copy_of(shuffled) == together


@given(FEW, FEW)
def test_repetitions_change_nothing(one: list[HostRecord], other: list[HostRecord]) -> None:
    known = merge(copy_of(one), other)
    assert merge(known, [*other, *one, *known.values()]) == known


def test_the_newer_state_counts_and_the_newer_connection_of_either() -> None:
    died = HostRecord("192.0.2.1", 25, NOW, NOW + 300, 1, REFUSED, made_at=NOW - 50)
    again = HostRecord("192.0.2.1", 25, NOW + 300, NOW + 900, 2, REFUSED)
    alive = HostRecord("192.0.2.1", 25, NOW + 900, made_at=NOW - 90)
    assert newer(died, again) == again._replace(made_at=NOW - 50)
    assert newer(again, died) == again._replace(made_at=NOW - 50)
    assert reduce(newer, (died, again, alive)) == alive._replace(made_at=NOW - 50)


def test_nothing_is_believed_beyond_the_time_after_which_it_is_forgotten() -> None:
    def left(noted_at: float = 0.0, retry_at: float = 0.0, failures: int = 0, made_at: float = 0.0) -> HostRecord | None:
        return believed(HostRecord("192.0.2.1", 25, noted_at, retry_at, failures, None, made_at), NOW, FORGET_S)

    assert left(noted_at=NOW - 9000, retry_at=NOW - 7201, failures=3) is None
    assert left(noted_at=NOW - 9000, retry_at=NOW - 7199, failures=3) is not None
    far = left(noted_at=NOW - 10, retry_at=NOW + 10**9, failures=3)
    assert far is not None
    assert far.retry_at == NOW + FORGET_S
    assert left(noted_at=NOW - 7201) is None
    assert left(made_at=NOW - 7201) is None
    assert left(noted_at=NOW + FUTURE_S + 1, retry_at=NOW + 300, failures=1) is None
    assert left(made_at=NOW + FUTURE_S + 1) is None
    assert left(noted_at=NOW - 9000, retry_at=NOW - 7201, failures=3, made_at=NOW - 1) == left(made_at=NOW - 1)
    died = left(noted_at=NOW - 10, retry_at=NOW + 290, failures=1, made_at=NOW - 7201)
    assert died == left(noted_at=NOW - 10, retry_at=NOW + 290, failures=1)


@given(records(ADDRESSES, NEAR))
def test_whatever_is_believed_is_near(record: HostRecord) -> None:
    found = believed(record, NOW, FORGET_S)
    if found is not None:
        assert found.retry_at <= NOW + FORGET_S
        assert max(found.noted_at, found.made_at) <= NOW + FUTURE_S
        assert max(found.noted_at, found.retry_at, found.made_at) >= NOW - FORGET_S
        assert believed(found, NOW, FORGET_S) == found
        assert found.key == record.key


def test_of_more_than_there_is_room_for_the_newest_of_each_kind_are_kept() -> None:
    dead = [HostRecord(f"192.0.2.{number}", 25, NOW + number, NOW + 300, 1) for number in range(9)]
    closed = [HostRecord(f"192.0.2.{number}", 25, made_at=NOW - number) for number in range(9)]
    many = list(merge({}, [*dead, *closed]).values())
    random.Random(1).shuffle(many)
    kept = bounded(many, 3)
    assert [record.address for record in kept if record.failures] == ["192.0.2.6", "192.0.2.7", "192.0.2.8"]
    assert sorted(record.address for record in kept if record.made_at) == ["192.0.2.0", "192.0.2.1", "192.0.2.2"]
    assert all(bool(record.failures) != bool(record.made_at) for record in kept)
    assert [one.noted_at for one in bounded(many, 9)] == sorted(one.noted_at for one in many)


@given(records(ADDRESSES, TIMES))
def test_a_record_is_a_line_and_the_line_is_the_record(record: HostRecord) -> None:
    line = format_line(record)
    assert line is not None
    assert len(line) <= MAX_LINE
    assert line.isascii()
    assert b"\n" not in line
    assert parse_line(line) == record


def test_a_line_can_be_read_by_people() -> None:
    record = HostRecord("192.0.2.1", 25, NOW, NOW + 300.25, 1, REFUSED)
    assert format_line(record) == (
        b"192.0.2.1 25 2026-11-22T16:00:00.000Z 2026-11-22T16:05:00.250Z 1 - 451 4.4.1 "
        b"connect%20to%20mx.example[192.0.2.1]:25%20failed:%20100%20%25%20refused"
    )
    assert format_line(HostRecord("::1", 2525, made_at=NOW)) == b"::1 2525 - - 0 2026-11-22T16:00:00.000Z -"


@pytest.mark.parametrize(
    "record",
    [
        HostRecord("mx.example", 25, NOW, NOW + 1, 1),
        HostRecord("192.0.2.1 ", 25, NOW, NOW + 1, 1),
        HostRecord("192.0.2.1", 0, NOW, NOW + 1, 1),
        HostRecord("192.0.2.1", 25, -NOW, NOW + 1, 1),
        HostRecord("192.0.2.1", 25, float("inf"), NOW + 1, 1),
        HostRecord("192.0.2.1", 25, float("nan"), NOW + 1, 1),
        HostRecord("192.0.2.1", 25, 1e300, NOW + 1, 1),
        HostRecord("\udcff", 25, NOW, NOW + 1, 1),
    ],
)
def test_what_is_no_host_or_no_time_is_no_line(record: HostRecord) -> None:
    assert format_line(record) is None


def test_a_long_or_odd_reply_costs_its_words_and_not_the_record() -> None:
    long = HostRecord("192.0.2.1", 25, NOW, NOW + 1, 1, Reply(451, b"4.4.1", b"%" * 1000))
    line = format_line(long)
    assert line is not None
    assert len(line) <= MAX_LINE
    assert parse_line(line) == long._replace(reply=Reply(451, b"4.4.1", b"%" * MAX_TEXT))
    for reply in (Reply(451, b"4.4.1", b"two\r\nlines"), Reply(250, b"2.0.0", b"fine"), Reply(451, b"x y", b"")):
        odd = format_line(long._replace(reply=reply))
        assert odd is not None
        assert parse_line(odd) == long._replace(reply=None)


WHOLE = b"192.0.2.1 25 2026-11-22T16:00:00.000Z 2026-11-22T16:05:00.250Z 1 - 451 4.4.1 no"


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b"192.0.2.1", b"192.0.2.256"),
        (b"192.0.2.1", b"1.2"),
        (b"192.0.2.1", b":::"),
        (b" 25 ", b" 0 "),
        (b" 25 ", b" 65536 "),
        (b" 25 ", b" 025 "),
        (b" 25 ", b"  25 "),
        (b"2026-11-22T16:00", b"2026-13-22T16:00"),
        (b"2026-11-22T16:00", b"2026-02-30T16:00"),
        (b"2026-11-22T16:00", b"2026-11-22T24:01"),
        (b"2026-11-22T16:00", b"0000-11-22T16:00"),
        (b"2026-11-22T16:00", b"1969-11-22T16:00"),
        (b"2026-11-22T16:00:00.000Z", b"-"),
        (b"2026-11-22T16:05:00.250Z", b"-"),
        (b" 1 - ", b" 0 - "),
        (b" 1 - ", b" 1001 - "),
        (b" 1 - ", b" -1 - "),
        (b" 1 - ", b" 1 "),
        (b" 451 ", b" 250 "),
        (b" 451 ", b" 999 "),
        (b" 4.4.1 ", b" 4.4.1.1 "),
        (b" no", b" no\n"),
        (b" no", b" no more"),
        (b" no", b" no%0D%0Amore"),
        (b" no", b" no%"),
        (b" no", b" " + b"x" * (MAX_TEXT + 1)),
        (b" no", b" no\x00"),
        (b" no", b""),
    ],
)
def test_the_parser_is_strict(part: bytes, other: bytes) -> None:
    assert parse_line(WHOLE) is not None
    assert part in WHOLE
    assert parse_line(WHOLE.replace(part, other, 1)) is None


@given(st.binary(max_size=120), st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_no_line_is_too_strange(junk: bytes, start: int, end: int) -> None:
    parse_line(junk)
    found = parse_line(WHOLE[:start] + junk + WHOLE[end:])
    assert found is None or parse_line(format_line(found) or b"") == found
