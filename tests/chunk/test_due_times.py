"""The file of due times: written while a queue is long, read by a start, and never trusted for more than an order."""

from __future__ import annotations

from array import array

import pytest
from twisted.internet.task import Clock

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.control import due_times
from mailismus.queue.providers.chunk.control.due_times import INTERVAL_S, ChunkDueTimes
from mailismus.queue.providers.chunk.format.version import DUE_FILE, NEW_DUE_FILE
from mailismus.queue.providers.chunk.index.rows import RestingFacts, RestingRows
from mailismus.queue.providers.chunk.recovery import scan as scan_module
from mailismus.queue.providers.chunk.recovery.due_times import read_later, write_due_times
from mailismus.queue.providers.chunk.recovery.scan import ChunkScan
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import Bench
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

PATH, NEW_PATH = f"/q/{DUE_FILE}", f"/q/{NEW_DUE_FILE}"
NUMBERS, TIMES = array("Q", [7, 12, 0, 2**40, 9]), array("d", [50.0, 150.0, 900.0, 250.0, 100.0])


def disk_with(numbers: array[int] = NUMBERS, times: array[float] = TIMES) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/q")
    write_due_times(disk, "/q", numbers, times)
    return disk


def test_what_is_due_later_is_told_by_parts() -> None:
    later = read_later(disk_with(), "/q", 3, 100.0)
    assert later is not None
    assert [sorted(one) for one in later] == [[0, 12], [2**40], []]


def test_a_long_file_is_read_piece_by_piece() -> None:
    numbers = array("Q", range(1, 20_001))
    later = read_later(disk_with(numbers, array("d", map(float, numbers))), "/q", 23, 7000.0)
    assert later is not None
    assert sorted(number for one in later for number in one) == list(range(7001, 20_001))


def test_a_file_that_is_damaged_anywhere_tells_nothing() -> None:
    disk = disk_with()
    data = disk.content_of(PATH)
    for at in range(len(data)):
        disk.names[PATH].data[:] = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert read_later(disk, "/q", 3, 0.0) is None, at
    for size in range(len(data)):
        disk.names[PATH].data[:] = data[:size]
        assert read_later(disk, "/q", 3, 0.0) is None, size


def test_what_is_no_file_or_cannot_be_read_tells_nothing() -> None:
    disk = disk_with()
    disk.fault = lambda act, path: OSError(5, "EIO") if act == "read" else None
    assert read_later(disk, "/q", 3, 0.0) is None
    disk = MemoryDisk()
    disk.make_directory("/q")
    assert read_later(disk, "/q", 3, 0.0) is None
    disk.make_directory(PATH)
    assert read_later(disk, "/q", 3, 0.0) is None


@pytest.mark.parametrize("act", ["create", "write", "rename"])
def test_a_write_that_fails_leaves_the_file_of_before(act: str) -> None:
    disk = disk_with()
    disk.names[NEW_PATH] = disk.new_inode(NEW_PATH)  # a process was killed
    before = disk.content_of(PATH)
    disk.fault = lambda failing, path: OSError(28, "ENOSPC") if failing == act else None
    with pytest.raises(OSError, match="ENOSPC"):
        write_due_times(disk, "/q", array("Q"), array("d"))
    disk.fault = None
    assert disk.content_of(PATH) == before
    assert NEW_PATH not in disk.names


def test_a_file_that_is_there_is_never_half_written() -> None:
    disk, seen = disk_with(), list[object]()

    def look(act: str, path: str) -> None:
        disk.fault = None
        if disk.exists(PATH):
            seen.append(read_later(disk, "/q", 3, 0.0))
        disk.fault = look

    disk.fault = look
    write_due_times(disk, "/q", array("Q", [5]), array("d", [1.0]))
    disk.fault = None
    assert seen
    assert None not in seen


class Writer:
    """What is written when."""

    def __init__(self, rows: RestingRows, *, is_read: bool = True) -> None:
        self.is_read = is_read
        self.clock, self.worker = Clock(), MemoryWorker()
        self.written: list[tuple[float, array[int]]] = []
        self.due_times = ChunkDueTimes(rows, lambda: self.is_read, self._write, self.worker, self.clock)
        self.due_times.start()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.worker.work_all()

    def _write(self, numbers: array[int], times: array[float]) -> None:
        self.written.append((self.clock.seconds(), numbers))

    def seconds(self) -> list[float]:
        return [at for at, _ in self.written]


def rows_of(count: int) -> RestingRows:
    rows = RestingRows()
    for number in range(1, count + 1):
        rows.add(RestingFacts(SpoolId(number), number * 3, 9.0, 0, {Area.DEFERRED: 1}, 10, 0, 0, False))
    return rows


def test_it_is_written_now_and_then_while_the_queue_is_long() -> None:
    rows = rows_of(1000)
    rows.remove(4)
    rows.add(RestingFacts(SpoolId(5000), 77, 9.0, 0, {Area.DEFERRED: 1}, 10, 0, 0, False))
    rows.remove(0)
    writer = Writer(rows)
    writer.advance(INTERVAL_S)
    assert not writer.written  # 999
    rows.add(RestingFacts(SpoolId(5001), 79, 9.0, 0, {Area.DEFERRED: 1}, 10, 0, 0, False))
    for _ in range(3):
        writer.advance(INTERVAL_S)
    assert writer.seconds() == [INTERVAL_S * turn for turn in (2, 3, 4)]
    assert sorted(writer.written[0][1]) == sorted([77, 79, *(3 * at for at in range(2, 1001) if at != 5)])


def test_a_gone_message_stands_for_none() -> None:
    rows = rows_of(1001)
    rows.remove(4)
    writer = Writer(rows)
    writer.advance(INTERVAL_S)
    assert sorted(writer.written[0][1])[:2] == [0, 3]


def test_a_long_queue_is_written_soon_once_and_then_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_times, "A_SECOND", 10)
    writer = Writer(rows_of(1200))
    for _ in range(310):
        writer.advance(1.0)
    assert writer.seconds() == [60.0, 180.0, 300.0]


def test_it_is_not_written_before_all_is_read() -> None:
    writer = Writer(rows_of(1500), is_read=False)
    writer.advance(INTERVAL_S)
    writer.due_times.finish()
    assert not writer.worker.calls
    assert writer.due_times.is_idle


def test_a_long_queue_is_written_soon_after_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_times, "A_SECOND", 10)
    writer = Writer(rows_of(1200), is_read=False)
    writer.advance(INTERVAL_S)
    writer.is_read = True
    writer.advance(INTERVAL_S)
    assert writer.seconds() == [2 * INTERVAL_S]


def test_a_clean_stop_writes_it_and_waits() -> None:
    writer = Writer(rows_of(1500))
    writer.due_times.finish()
    assert not writer.due_times.is_idle
    writer.worker.work_all()
    assert writer.due_times.is_idle
    assert len(writer.written) == 1
    assert not writer.clock.getDelayedCalls()


def test_one_is_written_at_a_time_and_a_failure_costs_one() -> None:
    writer = Writer(rows_of(1500))
    writer.worker.fault = OSError(28, "ENOSPC")
    writer.clock.advance(INTERVAL_S)
    writer.clock.advance(INTERVAL_S)
    assert len(writer.worker.calls) == 1
    writer.worker.work_all()
    writer.worker.fault = None
    writer.advance(INTERVAL_S)
    assert writer.seconds() == [3 * INTERVAL_S]


MESSAGES = 30


def stopped_queue(harness: ChunkHarness) -> tuple[ChunkDirectories, list[int]]:
    """Messages that wait for an hour, and their numbers."""
    bench = Bench(harness, harness.make())
    for _ in range(MESSAGES):
        bench.put()
    bench.defer(bench.take_ids(), bench.now() + 3600)
    harness.settle_down()
    harness.clock.calls.clear()
    harness.disk.kill()
    numbers = sorted(int(path.rpartition("/")[2]) for path in harness.disk.names if path.startswith("/q/mess/"))
    return ChunkDirectories(harness.disk, "/q", SPLIT), numbers


def order_of(harness: ChunkHarness, directories: ChunkDirectories) -> list[int]:
    scan, found = ChunkScan(directories, BornNumbers(), harness.now), list[int]()
    while (some := scan.next()) is not None:
        found += [facts.number for facts in some.facts]
    return found


def in_parts(numbers: list[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (number % SPLIT, number))


def test_a_start_reads_what_is_due_and_what_the_file_does_not_know_before_all_else() -> None:
    harness = ChunkHarness()
    directories, numbers = stopped_queue(harness)
    assert order_of(harness, directories) == in_parts(numbers)
    due, unknown, now = numbers[20], numbers[25], harness.now()
    told = array("Q", [number for number in numbers if number != unknown] + [999_999])
    times = array("d", [now - 5 if number == due else now + 3000 for number in told])
    write_due_times(harness.disk, "/q", told, times)
    first = in_parts([due, unknown])
    assert order_of(harness, directories) == first + [number for number in in_parts(numbers) if number not in first]


def test_where_the_file_knows_little_all_are_read_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "LEAST_FIRST", 0)
    harness = ChunkHarness()
    directories, numbers = stopped_queue(harness)
    told = array("Q", numbers[::2])
    write_due_times(harness.disk, "/q", told, array("d", [harness.now() + 3000] * len(told)))
    assert order_of(harness, directories) == in_parts(numbers)


def test_what_can_not_be_listed_at_first_is_read_later() -> None:
    harness = ChunkHarness()
    directories, numbers = stopped_queue(harness)
    write_due_times(harness.disk, "/q", array("Q", [1]), array("d", [harness.now() + 3000]))
    failed: list[str] = []

    def fail_once(act: str, path: str) -> OSError | None:
        if act == "list" and path.startswith("/q/mess") and path not in failed:
            failed.append(path)
            return OSError(5, "EIO")
        return None

    harness.disk.fault = fail_once
    assert order_of(harness, directories) == in_parts(numbers)
    assert len(failed) == SPLIT


@pytest.mark.parametrize("later_s", [-3000, 3000])
def test_no_call_of_a_start_reads_the_names_of_two_parts(later_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million names at once would hold up all that is read beside: whether all messages are due later, or none."""
    monkeypatch.setattr(scan_module, "LEAST_FIRST", 0)
    harness = ChunkHarness()
    directories, numbers = stopped_queue(harness)
    write_due_times(harness.disk, "/q", array("Q", numbers), array("d", [harness.now() + later_s] * len(numbers)))
    scan = ChunkScan(directories, BornNumbers(), harness.now)
    is_over = False
    while not is_over:
        harness.disk.acts.clear()
        is_over = scan.next() is None
        assert len({path for act, path in harness.disk.acts if act == "list" and path.startswith("/q/mess/")}) <= 1
