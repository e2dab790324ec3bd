"""Rescue: which lines of files that no checkpoint found tells of count."""

from __future__ import annotations

import pytest

from mailismus.journal.replay import Journal
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import DONE, format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import ClusterId, header_line
from mailismus.queue.providers.clustered.format.record import settled_record
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.queue.providers.clustered.recovery.salvage import salvage
from tests.fakes.disk import MemoryDisk
from tests.journal.world import World

KNOWN, LOST, LATER = (ClusterId(Area.INCOMING, "", number, 1) for number in (1, 2, 3))


def message(number: int) -> Message:
    return Message(SpoolId(number), b"a@b.example", b"192.0.2.1", False, 1.7e9, 10, 1, [])


def line(number: int) -> bytes:
    return format_lines(message(number), [Entry(1, b"c@d.example", Area.INCOMING, 1.7e9)])


SIZE = len(line(1))
HEAD = len(header_line(LOST))
"""Where the first line begins; those behind it are as long as one another."""


def done(number: int) -> bytes:
    return DONE + line(number)[1:]


def disk_with(**clusters: list[bytes]) -> MemoryDisk:
    disk = MemoryDisk()
    for path in ("/q", "/q/incoming"):
        disk.make_directory(path)
    for name, lines in clusters.items():
        cluster_id = {"known": KNOWN, "lost": LOST, "later": LATER}[name]
        disk.create(cluster_id.path("/q")).write_at(0, [header_line(cluster_id), *lines])
    return disk


@pytest.fixture
def loaded() -> ReplayedQueue:
    """Of a journal in which the record of checkpoint 2 may be missing."""
    return ReplayedQueue(Journal([], []), checkpoint=1, is_doubtful=True)


def test_lines_that_the_journal_says_nothing_of_are_rescued(loaded: ReplayedQueue) -> None:
    disk = disk_with(lost=[line(1), line(2)])
    assert salvage(loaded, disk, "/q", [LOST]) == {LOST: []}


def test_nothing_is_read_where_nothing_is_missing(loaded: ReplayedQueue) -> None:
    loaded.is_doubtful = False
    assert salvage(loaded, disk_with(lost=[line(1)]), "/q", [LOST]) == {}


def test_what_the_journal_holds_counts_there(loaded: ReplayedQueue) -> None:
    young = loaded.youngs[SpoolId(1)] = JournaledMessage(message(1))
    young.entries[1] = Entry(1, b"c@d.example", Area.INCOMING, 1.7e9)
    assert salvage(loaded, disk_with(lost=[line(1), line(2)]), "/q", [LOST]) == {LOST: [HEAD]}
    assert salvage(loaded, disk_with(lost=[line(1)]), "/q", [LOST]) == {}
    young.entries.clear()
    assert salvage(loaded, disk_with(lost=[line(1)]), "/q", [LOST]) == {LOST: []}


def test_what_the_journal_settles_is_over(loaded: ReplayedQueue) -> None:
    world = World()
    record = settled_record([(QueueId(SpoolId(2), 1), None)])
    world.writer.append([record], len(record))
    loaded.journal = world.found()[0]
    assert salvage(loaded, disk_with(lost=[line(1), line(2)]), "/q", [LOST]) == {LOST: [HEAD + SIZE]}
    assert salvage(loaded, disk_with(lost=[line(2)]), "/q", [LOST]) == {}


def test_lines_that_are_done_or_damaged_are_none(loaded: ReplayedQueue) -> None:
    disk = disk_with(lost=[done(1), b" A 00000000damaged\n", line(2)])
    assert salvage(loaded, disk, "/q", [LOST]) == {LOST: []}
    assert salvage(loaded, disk_with(lost=[done(1)]), "/q", [LOST]) == {}


def test_of_a_cluster_that_grew_only_what_lies_behind_counts_as_lost(loaded: ReplayedQueue) -> None:
    disk = disk_with(known=[line(1), line(2)])
    assert salvage(loaded, disk, "/q", [KNOWN]) == {}
    loaded.lengths[KNOWN] = HEAD + 2 * SIZE
    assert salvage(loaded, disk, "/q", [KNOWN]) == {}
    loaded.lengths[KNOWN] = HEAD + SIZE
    young = loaded.youngs[SpoolId(1)] = JournaledMessage(message(1))
    young.entries[1] = Entry(1, b"c@d.example", Area.INCOMING, 1.7e9)
    assert salvage(loaded, disk, "/q", [KNOWN]) == {KNOWN: []}


def test_an_entry_that_two_lost_checkpoints_moved_is_rescued_once(loaded: ReplayedQueue) -> None:
    disk = disk_with(lost=[line(1), line(2)], later=[line(1)])
    assert salvage(loaded, disk, "/q", [LOST, LATER]) == {LATER: [], LOST: [HEAD]}


def test_a_cluster_that_can_not_be_read_stops_a_start_and_is_passed_over_by_who_only_looks(loaded: ReplayedQueue) -> None:
    disk = disk_with(lost=[line(1)], later=[line(2)])
    disk.fault = lambda act, path: OSError(5, "injected") if act == "read" and path == LOST.path("/q") else None
    with pytest.raises(OSError, match="injected"):
        salvage(loaded, disk, "/q", [LOST, LATER])
    passed_over: list[ClusterId] = []
    found = salvage(loaded, disk, "/q", [LOST, LATER], lambda cluster_id, error: passed_over.append(cluster_id))
    assert found == {LATER: []}
    assert passed_over == [LOST]
