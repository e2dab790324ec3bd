"""One message is looked for in clusters by the bytes of its id: of other lines nothing is parsed, and damage changes nothing
of what is found."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.files.recipient_line import format_lines, parse_line
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, find_lines, header_line, read_lines
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read import search
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses
from tests.contracts.claiming import claim_all, claimed_by_page

IDS = (SpoolId(0x1_0000_0007), SpoolId(0x1_0000_0008))
COUNT = 12


def _sample() -> bytes:
    """A cluster with lines of two messages in turn, each with the id of the other one in its reply."""
    data = header_line(ClusterId(Area.DEFERRED, "20261121T0800", 12, 3))
    for number in range(1, 4):
        for spool_id, other in (IDS, IDS[::-1]):
            message = Message(spool_id, b"a@b.example", b"192.0.2.1", False, 1.7e9, 4711, 3, [])
            reply = Reply(451, b"4.4.1", b"A %016X 1/1 is here" % other)
            data += format_lines(message, [Entry(number, b"r@c.example", Area.DEFERRED, 1.7e9, number, reply)])
    return data


DATA = _sample()
DAMAGES = st.lists(
    st.tuples(st.integers(0, len(DATA) - 1), st.sampled_from(b"\n\n\n x0A") | st.integers(0, 255)), max_size=6
)


def _found(data: bytes, committed: int | None, spool_id: SpoolId) -> list[FoundLine]:
    """What is found where all lines are read."""
    lines = read_lines(data, Area.DEFERRED, committed)
    return [line for line in lines if isinstance(line, FoundLine) and line.message.spool_id == spool_id]


@given(DAMAGES, st.none() | st.integers(0, len(DATA) + 9), st.integers(0, 40), st.integers(0, len(DATA)))
def test_what_is_found_is_what_all_lines_would_tell(
    damages: list[tuple[int, int]], committed: int | None, line_ends: int, at: int
) -> None:
    data = bytearray(DATA)
    for offset, byte in damages:
        data[offset] = byte
    data[at : at + line_ends] = b"\n" * line_ends
    for spool_id in (*IDS, SpoolId(0x1_0000_0009)):
        found = list(find_lines(bytes(data), Area.DEFERRED, committed, spool_id))
        assert found == _found(bytes(data), committed, spool_id)


@pytest.mark.parametrize("line_ends", range(1, 5))
def test_a_line_is_found_behind_line_ends_in_place_of_its_state_byte(line_ends: int) -> None:
    offsets = [line.offset for spool_id in IDS for line in find_lines(DATA, Area.DEFERRED, None, spool_id)]
    assert len(offsets) == 6
    for offset in offsets:
        for first in (offset - 1, offset):
            data = DATA[:first] + b"\n" * line_ends + DATA[first + line_ends :]
            for spool_id in IDS:
                found = list(find_lines(data, Area.DEFERRED, None, spool_id))
                assert found == _found(data, None, spool_id)
                assert len(found) >= 2


def test_an_undamaged_cluster_has_all_lines_of_each_message() -> None:
    for spool_id in IDS:
        assert [line.entry.number for line in find_lines(DATA, Area.DEFERRED, None, spool_id)] == [1, 2, 3]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are parsed."""
    lines: list[bytes] = []

    def note(line: bytes, area: Area) -> tuple[Message, Entry] | None:
        lines.append(line)
        return parse_line(line, area)

    monkeypatch.setattr("mailismus.queue.providers.clustered.format.cluster.parse_line", note)
    return lines


def _filled() -> tuple[Bench, list[SpoolId]]:
    """A queue with messages of three recipients, each in three clusters of its own slots and with others."""
    harness = ClusteredHarness()
    bench = Bench(harness, harness.open())
    spool_ids = [bench.put(addresses(3)) for _ in range(COUNT)]
    for queue_id in bench.take_ids():
        bench.defer([queue_id], bench.now() + 36_000 * queue_id.number)
    _rest(bench)
    return bench, spool_ids


def _rest(bench: Bench) -> None:
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    for _ in range(2):
        bench.wait(queue.checkpoints.run())


def test_of_other_messages_no_line_is_parsed(parsed: list[bytes]) -> None:
    bench, spool_ids = _filled()
    wanted = Filter(spool_ids[5])
    parsed.clear()
    assert len(bench.search(wanted)) == 3
    assert len(parsed) == 3
    assert bench.wait(bench.queue.visit_all(wanted, bench.now())).entries == 3
    assert len(parsed) == 6
    assert len(claim_all(bench, wanted)[0]) == 3
    assert len(parsed) == 9
    assert len(claim_all(bench)[0]) == 3 * (COUNT - 1)
    assert len(parsed) == 9 + 3 * COUNT + 3  # and three headers


def test_several_clusters_are_read_in_one_turn_and_a_page_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CLUSTERS_OF_ID", 2)
    monkeypatch.setattr(search, "PAGE_CLUSTERS", 1)
    bench, spool_ids = _filled()
    assert sorted(entry.number for _, entry in bench.search(Filter(spool_ids[5]))) == [1, 2, 3]
    pages = claimed_by_page(bench, Filter(spool_ids[5]), 1000)
    assert [len(page) for page in pages] == [2, 1, 0]
    assert sorted(chain(*pages)) == [QueueId(spool_ids[5], number) for number in (1, 2, 3)]


def test_a_cluster_that_cant_be_read_is_told_and_the_others_are_looked_at() -> None:
    bench, spool_ids = _filled()
    harness = bench.harness
    assert isinstance(harness, ClusteredHarness)
    first, *_ = sorted(name for name in harness.disk.names if name.endswith(".mqc"))
    harness.disk.fault = lambda act, path: OSError(5, "Input/output error") if (act, path) == ("open", first) else None
    for page in (
        harness.wait(bench.queue.search(Filter(spool_ids[5]), None, 100)),
        harness.wait(bench.queue.claim(Filter(spool_ids[5]), None, 100)),
    ):
        assert [(gap.count, gap.path) for gap in page.gaps] == [(1, first)]
        assert sum(len(message.entries) for message in page.messages) == 2
