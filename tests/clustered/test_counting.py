"""Counting live lines: the same as reading them all, whatever is done, hidden or cut off."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import DONE_MARK
from mailismus.queue.providers.clustered.read.counting import NO_LINES, count_live
from tests.clustered.test_cluster import cluster_file, read, sample_lines


@example([False, False], [1] * 12, set(), 3000)
@example([False] * 4, [1, 1, 2, 2] * 3, set(), 3000)
@given(
    st.lists(st.booleans(), max_size=12),
    st.lists(st.integers(1, 3), min_size=12, max_size=12),
    st.sets(st.integers(0, 11)),
    st.integers(0, 3000),
)
def test_a_count_is_that_of_what_is_read(states: list[bool], counts: list[int], hidden: set[int], committed: int) -> None:
    lines = []
    for at, (is_done, count) in enumerate(zip(states, counts, strict=False)):
        message = Message(
            SpoolId((1 << 32) + at // 2), b"a@b.example", b"-", False, 1.0, 1000 + at // 2, count, [], at // 2 % 3
        )
        line = format_lines(message, [Entry(at % count + 1, b"c@d.example", Area.INCOMING, 1.0)])
        lines.append(DONE_MARK + line[1:] if is_done else line)
    data, offsets = cluster_file(lines)
    over = {offsets[at] for at in hidden if at < len(offsets)}
    found = [line for line in read(data, min(committed, len(data)))[0] if not line.is_done and line.offset not in over]
    several = {line.message.spool_id: line.message.stored_bytes for line in found if line.message.recipient_count > 1}
    lone = [line.message.stored_bytes for line in found if line.message.recipient_count == 1]
    assert count_live(data, min(committed, len(data)), over) == (len(found), len(lone), sum(lone), several)


@pytest.mark.parametrize("damage", [b"\n", b"\x00", b" x A "])
def test_what_has_not_the_form_of_a_line_does_not_count(damage: bytes) -> None:
    lines = sample_lines(5)
    data, offsets = cluster_file(lines)
    broken = data[: offsets[2] + 1] + damage + data[offsets[2] + 1 + len(damage) :]
    assert count_live(broken, None, frozenset()).entries == 4


def test_the_end_of_a_torn_line_does_not_count() -> None:
    data, offsets = cluster_file(sample_lines(5))
    assert count_live(data[:-20], None, frozenset()).entries == 4
    assert count_live(data, offsets[4] + 7, frozenset()).entries == 4


@given(st.binary(max_size=400))
def test_no_bytes_break_a_count(data: bytes) -> None:
    assert count_live(data, None, frozenset()) == NO_LINES
