"""The start of a journal, for a provider whose records are lines of text: nothing here knows of clusters."""

from __future__ import annotations

import errno
import itertools

import pytest
from twisted.internet.task import Clock

from mailismus.config.values.settings import JournalSettings
from mailismus.disk.interface import IDisk
from mailismus.journal.batch import Batch
from mailismus.journal.load import ReplayedJournal, load_into
from mailismus.journal.opening import JournalOpener, OpenJournal, Reuse
from mailismus.journal.replay import FoundSegment, survey
from mailismus.journal.writer import Claim, NoSegment, Written
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ClockWorker

SETTINGS = JournalSettings(segmentsize=1 << 20, largemsgsize=0, maxage_s=0.0, maxsize=8 << 20)


class Lines:
    """`ReplaySink` and `JournalOwner`: `epoch N` says an epoch, `free N` that batches up to N are not needed."""

    def __init__(self, disk: IDisk) -> None:
        self.found = ReplayedJournal(survey(disk, "/j"))
        self.lines: list[bytes] = []
        self.moved: list[Written] = []
        load_into(self.found, self)

    def read_bounds(self, batch: Batch) -> None:
        for line in batch.records.splitlines():
            word, _, number = line.partition(b" ")
            if word == b"epoch":
                self.found.note_epoch(int(number))
            elif word == b"free":
                self.found.note_checkpoint(int(number), self.found.epoch)

    def apply(self, segment: FoundSegment, batch: Batch) -> None:
        self.lines += [line for line in batch.records.splitlines() if not line.startswith((b"epoch", b"free"))]

    def highest_epoch(self) -> int:
        return 0

    def epoch_record(self, epoch: int) -> bytes:
        return b"epoch %d\n" % epoch

    def last_batch_moved(self, written: Written) -> None:
        self.moved.append(written)


class Place:
    """The directory of a journal, started again and again."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_directory("/j")
        self.clock = Clock()
        self._random = itertools.count(1)

    def start(self, reuse: Reuse = Reuse.WHAT_IS_FREE) -> tuple[Lines, OpenJournal]:
        lines = Lines(self.disk)
        opener = JournalOpener(
            self.disk,
            "/j",
            SETTINGS,
            ClockWorker(self.clock),
            self.clock,
            lambda size: next(self._random).to_bytes(size, "big"),
            keeps_for_a_start=True,
        )
        return lines, opener.begin_journal(lines.found, lines, reuse)


@pytest.fixture
def place() -> Place:
    return Place()


def append(journal: OpenJournal, *lines: bytes) -> None:
    for line in lines:
        journal.pool.ensure(len(line))
        journal.writer.append([line + b"\n"], len(line) + 1)


def test_what_was_written_is_found_by_each_start(place: Place) -> None:
    append(place.start()[1], b"one", b"two")
    assert [place.start()[0].lines for _ in range(3)] == [[b"one", b"two"]] * 3


def test_the_last_batch_is_written_again_before_anything_else(place: Place) -> None:
    append(place.start()[1], b"one", b"two")
    lines, journal = place.start()
    assert lines.found.last is not None
    (written,) = lines.moved
    assert written.sequence == lines.found.last.sequence
    assert journal.writer.sequence == written.sequence
    assert journal.writer.segments[written.segment] is journal.writer.current


def test_no_start_hands_out_an_id_of_another(place: Place) -> None:
    first = [place.start()[1].spool_ids.next() for _ in range(4)]
    assert None not in first
    assert len({number >> 32 for number in first if number is not None}) == 4


def test_a_checkpoint_hides_what_lies_below_its_horizon(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one", b"two")
    append(journal, b"free %d" % (journal.writer.sequence - 1), b"three")
    found, journal = place.start()
    assert found.lines == [b"two", b"three"]
    assert journal.writer.horizon == found.found.horizon == found.found.sure_horizon


def test_a_checkpoint_in_the_last_batch_frees_nothing_before_it_is_durable(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one")
    append(journal, b"free %d" % journal.writer.sequence)
    found = Lines(place.disk).found
    assert (found.horizon, found.sure_horizon) == (journal.writer.sequence - 1, 0)


def test_a_start_that_fails_loses_nothing(place: Place) -> None:
    append(place.start()[1], b"one")
    lines = Lines(place.disk)
    opener = JournalOpener(place.disk, "/j", SETTINGS, ClockWorker(place.clock), place.clock, _no_random)
    with pytest.raises(OSError, match="no random bytes"):
        opener.begin_journal(lines.found, lines, Reuse.WHAT_IS_FREE)
    assert place.start()[0].lines == [b"one"]


def _no_random(size: int) -> bytes:
    raise OSError(5, "no random bytes")


def _full(act: str, path: str) -> OSError | None:
    return OSError(errno.ENOSPC, "No space left on device") if act == "create" else None


def test_a_start_on_a_full_disk_has_a_segment_that_settlements_left_to_it(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one")
    for _ in range(20):
        journal.pool.top_up()
        place.clock.advance(1)
    place.disk.fault = _full
    while len(journal.pool) > 1:
        journal.writer.turn_over()
        journal.writer.append([b"two\n"], 4, Claim.ANY)
    journal.writer.turn_over()
    with pytest.raises(NoSegment):
        journal.writer.append([b"two\n"], 4, Claim.ANY)
    lines, journal = place.start(Reuse.WHAT_NEVER_COUNTED)
    assert lines.lines[:2] == [b"one", b"two"]
    assert len(journal.pool) == 0


class Capacity:
    """`MemoryDisk.fault`: the disk has no more room than its files need now."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self._most = self._used()
        disk.fault = self

    def _used(self) -> int:
        return sum(len(inode.data) for inode in self._disk.names.values())

    def __call__(self, act: str, path: str) -> OSError | None:
        if act == "sync" and ("/ready-" in path or path.endswith(".new")) and self._used() > self._most:
            return OSError(errno.ENOSPC, "No space left on device")
        return None


def use_up(place: Place, journal: OpenJournal) -> None:
    """The disk is full, and no free segment is left."""
    while len(journal.pool):
        place.disk.unlink(journal.pool._free.popleft().path)
    place.disk.sync_directory("/j")
    Capacity(place.disk)


def test_starts_on_a_full_disk_cut_the_last_segment(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one", b"two")
    use_up(place, journal)
    for start in range(5):
        lines, journal = place.start(Reuse.WHAT_NEVER_COUNTED)
        assert lines.lines == [b"one", b"two", *(b"%d" % earlier for earlier in range(start))]
        assert len(journal.pool) == 0
        assert all(segment.is_whole() for segment in journal.writer.segments.values())
        journal.writer.append([b"%d\n" % start], 2)  # there is room in its segment
        place.disk.power_cut()
    place.disk.fault = None
    assert place.start()[0].lines == [b"one", b"two", b"0", b"1", b"2", b"3", b"4"]


def test_no_start_cuts_a_batch_that_looks_torn(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one", b"two" * 4000)
    use_up(place, journal)
    (path,) = journal.writer.segments.values()
    last = place.disk.content_of(path.path).index(b"two")
    place.disk.damage(path.path, last, b"x")
    before = place.disk.content_of(path.path)[: last + 12000]
    lines, _ = place.start(Reuse.WHAT_NEVER_COUNTED)
    assert lines.lines == [b"one"]
    after = place.disk.content_of(path.path)
    assert after.startswith(before)
    assert len(after) < SETTINGS.segmentsize


def test_a_start_on_a_disk_that_fails_cuts_nothing(place: Place) -> None:
    journal = place.start()[1]
    append(journal, b"one")
    use_up(place, journal)
    place.disk.fault = lambda act, path: OSError(errno.EIO, "Input/output error") if act == "create" else None
    with pytest.raises(OSError, match="Input/output error"):
        place.start(Reuse.WHAT_NEVER_COUNTED)
    assert ("truncate", "/j/00000001.mqj") not in place.disk.acts


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG], ids=errno.errorcode.get)
def test_a_start_needs_no_whole_segment_where_there_is_no_room_for_one(place: Place, number: int) -> None:
    place.start()[1].writer.append([b"one\n"], 4)
    made: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if act == "create":
            made.append(path)
        elif act == "write" and len(made) == 1:
            return OSError(number, "no room")
        return None

    place.disk.fault = fault
    journal = place.start()[1]
    assert journal.writer.current is not None
    assert journal.writer.current.size_bytes < SETTINGS.segmentsize
    assert place.start()[0].lines == [b"one"]
