"""What a round of marks leaves on the disk, wherever a power cut ends it."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from mailismus.journal.segment import Segment, make_segment
from mailismus.queue.providers.log.control import rounds
from mailismus.queue.providers.log.control.rounds import remove_segments
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, NEW_NAME, Positions
from mailismus.queue.providers.log.recovery.opening import read_positions
from mailismus.queue.providers.log.recovery.positions_file import PositionsFile
from tests.fakes.disk import MemoryDisk
from tests.log.story import Story


class PowerCut(BaseException):
    """At an act of the disk."""


def disk_of() -> MemoryDisk:
    disk = MemoryDisk()
    disk.directories |= {"/q", "/q/log"}
    return disk


def cut_at(disk: MemoryDisk, count: int) -> None:
    """The power fails before so many more acts."""
    left = [count]

    def fault(act: str, path: str) -> OSError | None:
        if not left[0]:
            disk.fault = None
            disk.power_cut()
            raise PowerCut
        left[0] -= 1
        return None

    disk.fault = fault


def both_blocks(disk: MemoryDisk) -> tuple[bytes, bytes]:
    data = disk.content_of(f"/q/{NAME}")
    return data[:BLOCK], data[BLOCK:]


def test_positions_are_durable_twice_when_they_are_written() -> None:
    disk = disk_of()
    file = PositionsFile(disk, "/q")
    for number in (1, 2, 3):
        positions = Positions(number, number, {})
        file.write(positions)
        disk.power_cut()
        assert both_blocks(disk) == (positions.encode(), positions.encode())


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("is_first", [True, False], ids=["in the first write of a run", "in a later one"])
def test_a_power_cut_leaves_the_old_positions_or_the_new_ones(count: int, is_first: bool) -> None:
    disk = disk_of()
    PositionsFile(disk, "/q").write(Positions(1, 1, {}))
    file = PositionsFile(disk, "/q")
    if not is_first:
        file.write(Positions(1, 1, {}))
    cut_at(disk, count)
    try:
        file.write(Positions(2, 2, {}))
    except PowerCut:
        pass
    disk.fault = None
    found = read_positions(disk, "/q")
    assert found is not None
    assert found.number in (1, 2)


def tear_at(disk: MemoryDisk, count: int) -> None:
    """The disk is full; the power fails before so many more acts, and tears each block that is not as it was."""
    left = [count]

    def fault(act: str, path: str) -> OSError | None:
        if act == "create":
            return OSError(errno.ENOSPC, "No space left on device")
        if not left[0]:
            disk.fault = None
            inode = disk.names[f"/q/{NAME}"]
            blocks = [(inode.durable[at : at + BLOCK], inode.data[at : at + BLOCK]) for at in (0, BLOCK)]
            inode.durable = b"".join(old if old == new else bytes(BLOCK) for old, new in blocks)
            disk.power_cut()
            raise PowerCut
        left[0] -= 1
        return None

    disk.fault = fault


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("state", ["both blocks are the same", "the second one is not durable", "the second one is torn"])
def test_on_a_full_disk_positions_are_written_over_those_of_an_earlier_run(count: int, state: str) -> None:
    """At each moment one of the blocks is on the disk."""
    disk = disk_of()
    PositionsFile(disk, "/q").write(Positions(1, 1, {}))
    if state != "both blocks are the same":
        file = disk.open(f"/q/{NAME}")
        file.write_at(0, [Positions(2, 2, {}).encode()])
        file.sync()
        file.write_at(BLOCK, [Positions(2, 2, {}).encode() if state == "the second one is not durable" else bytes(BLOCK)])
    later = PositionsFile(disk, "/q")
    tear_at(disk, count)
    try:
        later.write(Positions(3, 3, {}))
        disk.power_cut()
        assert both_blocks(disk) == (Positions(3, 3, {}).encode(),) * 2
    except PowerCut:
        pass
    disk.fault = None
    assert read_positions(disk, "/q") is not None
    assert not disk.exists("/q/positions.new")


def test_positions_are_not_written_on_a_full_disk_where_there_are_none() -> None:
    disk = disk_of()
    disk.fault = lambda act, path: OSError(errno.ENOSPC, "No space left on device") if act == "create" else None
    with pytest.raises(OSError, match="No space left"):
        PositionsFile(disk, "/q").write(Positions(1, 1, {}))


def test_removed_segments_are_gone_durably() -> None:
    disk = disk_of()
    segment = make_segment(disk, "/q/log", "00000001.mqj", 2 * BLOCK)
    remove_segments(disk, "/q/log", [segment])
    disk.power_cut()
    assert not disk.exists(segment.path)


def test_marks_are_written_to_complete_segments_that_have_not_failed() -> None:
    """An error of the disk is reported to one sync alone: a barrier of mail and one over marks never share a file."""
    story = Story()
    story.bench.put()
    story.bench.take_ids()
    story.complete_segment()
    segments, current = story.queue.parts.segments, story.queue.parts.opened.writer.current
    assert current is not None
    assert not segments.markable(current.number)
    assert segments.markable(1)
    segments.fail(1)
    assert not segments.markable(1)


def test_a_start_removes_positions_that_were_not_finished() -> None:
    story = Story()
    disk, path = story.harness.disk, f"/q/{NEW_NAME}"
    disk.create(path).sync()
    disk.sync_directory("/q")
    story.crash()
    assert not disk.exists(path)


def test_no_marks_are_written_while_a_piece_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both hold one lock."""
    story = Story()
    held: list[int] = []
    write_marks, lock = rounds.write_marks, story.queue.rounds._lock

    def noted(marks: Sequence[tuple[Segment, Sequence[tuple[int, bytes]]]]) -> dict[int, OSError]:
        held.append(lock.locked)
        return write_marks(marks)

    monkeypatch.setattr(rounds, "write_marks", noted)
    story.complete_segment()
    story.rounds()
    assert held
    assert all(held)
