"""Large queues: limits of a start, what a backlog's drain is made of, the messages that are built."""

from __future__ import annotations

import math

import attrs
import pytest

from benchmarks.drain import Drained, delays, markdown, percentile, ratio
from benchmarks.queue_builder import SIZE_BYTES, content
from benchmarks.results.content import recipient, sender
from benchmarks.results.flatness import Counting, Listing, Measured, Start, Stopped, broken, is_flat
from benchmarks.results.flatness import markdown as flatness_markdown
from benchmarks.results.records import Acknowledged, Delivery

START = Start(0.4, 0.9, 1.0, 1.1, 50_000_000, 60_000_000)
COUNT = Counting(0.4, 0.6, True, 1000.0, 950.0)
LISTING = Listing(2.0, True, 60_000_000, 0.95)
STOPPED = Stopped(1.0, 50_000_000, 9.0, 60_000_000, True)


def _measured(entries: int, start: Start = START, counting: Counting | None = COUNT) -> Measured:
    return Measured(entries, (start,), counting)


def test_a_start_within_every_limit_breaks_none() -> None:
    assert broken([_measured(10_000), _measured(1_000_000, counting=None)]) == []


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (attrs.evolve(START, greeting_s=1.95), "after the imports"),
        (attrs.evolve(START, fresh_s=2.6), "fresh message"),
        (attrs.evolve(START, entry_s=2.6), "entry of the queue"),
        (attrs.evolve(START, pss_bytes=150_000_000), "PSS"),
        (attrs.evolve(START, pss_later_bytes=150_000_000), "PSS"),
    ],
)
def test_each_limit_of_a_start_is_seen(start: Start, words: str) -> None:
    (sentence,) = broken([_measured(10_000, start)])
    assert words in sentence


@pytest.mark.parametrize(
    ("counting", "words"),
    [
        (attrs.evolve(COUNT, loaded_s=15.0), "took"),
        (attrs.evolve(COUNT, is_exact=False), "exact"),
        (attrs.evolve(COUNT, rate_with=890.0), "beside a count"),
    ],
)
def test_each_limit_of_a_count_is_seen(counting: Counting, words: str) -> None:
    (sentence,) = broken([_measured(10_000, counting=counting)])
    assert words in sentence


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        (attrs.evolve(LISTING, is_complete=False), "complete"),
        (attrs.evolve(LISTING, share=0.8), "beside a list"),
        (attrs.evolve(LISTING, peak_bytes=150_000_000), "queue list needs 150 MB"),
        (attrs.evolve(LISTING, pss_bytes=150_000_000), "behind a list"),
    ],
)
def test_each_limit_of_a_list_is_seen(listing: Listing, words: str) -> None:
    assert broken([attrs.evolve(_measured(10_000), listing=LISTING)]) == []
    (sentence,) = broken([attrs.evolve(_measured(10_000), listing=listing)])
    assert words in sentence


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        (attrs.evolve(STOPPED, is_exact=False), "exact"),
        (attrs.evolve(STOPPED, count_bytes=150_000_000), "needs 150 MB"),
        (attrs.evolve(STOPPED, list_bytes=150_000_000), "needs 150 MB"),
    ],
)
def test_each_limit_of_a_stopped_queue_is_seen(stopped: Stopped, words: str) -> None:
    assert broken([attrs.evolve(_measured(10_000), stopped=STOPPED)]) == []
    (sentence,) = broken([attrs.evolve(_measured(10_000), stopped=stopped)])
    assert words in sentence


def test_a_larger_queue_may_take_a_fifth_or_a_third_of_a_second_more_than_the_smallest() -> None:
    assert is_flat(1.0, 1.3)
    assert is_flat(5.0, 6.0)
    assert not is_flat(1.0, 1.31)
    slower = attrs.evolve(START, greeting_s=1.25)
    assert any("not flat" in sentence for sentence in broken([_measured(10_000), _measured(100_000, slower)]))


def test_every_row_of_the_table_has_every_column() -> None:
    listed = attrs.evolve(_measured(10_000), listing=LISTING)
    lines = flatness_markdown([listed, _measured(100_000, counting=None)]).splitlines()
    assert len(lines) == 5
    assert len({line.count("|") for line in lines}) == 1


def test_percentiles_are_values_by_nearest_rank() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.95) == 95
    assert percentile(values, 1.0) == 100
    assert percentile([3.0], 0.5) == 3
    assert percentile([], 0.95) == math.inf


def test_delays_are_of_the_messages_that_began_meanwhile_to_their_first_arrival() -> None:
    sent = [Acknowledged(at_s + 0.1, number, 1, 9, "ab", at_s) for number, at_s in enumerate((1.0, 2.0, 3.0, 9.0))]
    arrived = [
        Delivery(at_s, sender(number), (recipient(number, 0),), 9, "ab") for number, at_s in ((0, 1.5), (1, 2.25), (1, 4.0))
    ]
    assert delays(sent, arrived, 2.0, 8.0) == ((0.25,), 1)


def test_new_mail_that_never_arrived_spoils_the_percentile() -> None:
    drained = Drained("ours", 1000, 1.0, 2.0, (0.1,) * 90, 10)
    assert drained.p95_s == math.inf
    assert attrs.evolve(drained, missing=0).p95_s == 0.1


def test_the_ratio_is_of_the_medians_and_needs_both() -> None:
    ours = [Drained("ours", 1000, 1.0, seconds, (0.1,), 0) for seconds in (1.0, 2.0, 50.0)]
    theirs = Drained("postfix", 1000, 1.0, 5.0, (0.1,), 0)
    assert ratio(ours) is None
    assert ratio([*ours, theirs]) == pytest.approx(2.5)
    assert markdown([*ours, theirs]).count("\n") == 5


def test_built_messages_have_their_size_and_whole_lines() -> None:
    for number in (0, 999):
        message = content(number)
        assert len(message) == SIZE_BYTES
        assert message.endswith(b"\r\n")
        assert message.count(b"\r\n") == message.count(b"\n") == message.count(b"\r")
