"""What a round of marks leaves on the disk, wherever a power cut ends it."""

from __future__ import annotations

import pytest

from mailismus.journal.segment import make_segment
from mailismus.queue.providers.log.control.rounds import PositionsFile, remove_segments
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, Positions
from mailismus.queue.providers.log.recovery.opening import read_positions
from tests.fakes.disk import MemoryDisk
from tests.log.test_seed import Story


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
