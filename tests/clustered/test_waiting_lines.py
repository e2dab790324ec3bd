"""Waiting lines: packed while they wait, the same lines when they are handed out, and small meanwhile."""

from __future__ import annotations

import gc
import tracemalloc

import attrs
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.packed_line import pack, unpack
from mailismus.queue.providers.clustered.index.waiting_lines import LaterLines, WaitingLines

NOW = 1_795_000_000.0
LINES = 2000
MOST_BYTES = 450
"""Of a usual line in memory; its objects alone would take some 600, what keeps them in order not counted."""

words = st.none() | st.binary(min_size=1)
numbers = st.integers(1, 1_000_000_000)
times = st.floats(0, 1 << 48, allow_nan=False)
replies = st.none() | st.builds(Reply, st.integers(200, 599), st.binary(), st.binary())
messages = st.builds(
    Message,
    *(st.integers(0, (1 << 63) - 1).map(SpoolId), st.binary(), st.binary(), st.booleans(), times, st.integers(0, 1 << 50)),
    *(numbers, st.just([]), st.integers(0, 1 << 50), words),
)
entries = st.builds(
    Entry, numbers, st.binary(), st.sampled_from(Area), times, st.integers(0, 1_000_000), replies, st.binary(), words
)


def line_of(number: int, due_at: float = NOW) -> FoundLine:
    """A line as it comes from a new message for a host that takes none."""
    message = Message(SpoolId((1 << 32) + number), b"s%d@from.example" % number, b"127.0.0.1", False, due_at, 952, 1, [])
    return FoundLine(150 * number, False, message, Entry(1, b"r%d@tarpit3.load.example" % number, Area.INCOMING, due_at))


@given(st.integers(0, 1 << 40), messages, entries)
def test_a_line_is_the_same_when_it_is_unpacked(offset: int, message: Message, entry: Entry) -> None:
    line = FoundLine(offset, False, message, entry)
    assert unpack(offset, entry.area, pack(line)) == line


def test_a_line_is_packed_without_the_entries_of_its_message() -> None:
    """A message of the journal has them, while its lines wait one by one."""
    line = line_of(1)
    whole = line._replace(message=attrs.evolve(line.message, entries=[line.entry]))
    assert unpack(line.offset, Area.INCOMING, pack(whole)) == line


def test_lines_come_out_as_they_went_in_and_in_the_order_of_their_times() -> None:
    waiting = WaitingLines(Area.INCOMING, LaterLines())
    lines = [line_of(number) for number in range(1, 6)]
    for line, after_s in zip(lines, (3, 1, 4, 1, 5), strict=True):
        waiting.add(line, NOW + after_s)
    assert list(waiting.due(NOW, 10, None)) == []
    assert waiting.next_at(NOW) == NOW + 1
    assert list(waiting.due(NOW + 4, 10, None)) == [lines[1], lines[3], lines[0], lines[2]]
    assert waiting.next_at(NOW + 4) == NOW + 5
    assert len(waiting) == 1


def test_a_line_that_was_added_again_waits_for_its_new_time_alone() -> None:
    waiting = WaitingLines(Area.INCOMING, LaterLines())
    line = line_of(1)
    waiting.add(line, NOW + 1)
    waiting.forget(line.offset)
    for after_s in (2, 1, 3):
        waiting.add(line, NOW + after_s)
    assert list(waiting.due(NOW + 2, 10, None)) == []
    assert waiting.next_at(NOW + 2) == NOW + 3
    assert list(waiting.due(NOW + 3, 10, None)) == [line]
    assert list(waiting.due(NOW + 9, 10, None)) == []


def test_a_line_that_waits_takes_few_bytes() -> None:
    index = ClusterIndex()
    cluster = Cluster(ClusterId(Area.INCOMING, "", 1, 1), "/q/incoming/1-1.mqc", 1 << 30)
    index.add(cluster, None)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(LINES):
        index.stay(cluster, line_of(number), NOW + 60 + number / 100)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert cluster.waiting is not None
    assert len(cluster.waiting) == LINES
    assert used / LINES <= MOST_BYTES
