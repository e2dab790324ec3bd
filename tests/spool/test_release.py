"""The release of message bytes, for a provider whose lines are a list: nothing here knows of clusters."""

from __future__ import annotations

import attrs
import pytest
from twisted.internet.task import Clock

from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import MessageFileWriter
from mailismus.spool.reference_scan import IScanReport, LiveLine, ReferenceScan
from mailismus.spool.references import ReferenceCache
from mailismus.spool.release import RESCAN_S, SCAN_DELAY_S, Release
from mailismus.spool.removal import MessageRemoval
from mailismus.spool.silo import SILO_NAMES, message_path
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

FIRST_NEW = SpoolId(2 << 32)


@attrs.frozen
class Held:
    """A message, as far as its release depends on it."""

    spool_id: SpoolId
    recipient_count: int


class Lines:
    """`ReferenceSource`: live lines in a list; `can_be_read` False: some can't be read."""

    def __init__(self) -> None:
        self.lines: list[LiveLine] = []
        self.damaged: list[bytes] = []
        self.can_be_read = True

    async def read_lines(self, report: IScanReport) -> bool:
        report.saw_lines(self.lines)
        for data in self.damaged:
            report.saw_damage(data)
        return self.can_be_read

    def held(self) -> set[SpoolId]:
        return set()

    def holds(self, spool_id: SpoolId) -> bool:
        return False


class World:
    """A spool with message files, and their release."""

    def __init__(self, *, has_links: bool = False) -> None:
        self.disk = MemoryDisk()
        for path in ("/s", "/c", *(f"/s/{name}" for name in SILO_NAMES)):
            self.disk.make_directory(path)
        self.clock = Clock()
        self.lines = Lines()
        files = MessageRemoval(self.disk, "/s", MemoryWorker(is_prompt=True), FIRST_NEW, "/c")
        references = ReferenceCache(0, FIRST_NEW)
        scan = ReferenceScan(files, references, self.lines, names_recipients=has_links)
        self.release = Release(files, references, scan, self.clock, has_links=has_links)

    def put(self, spool_id: int, *recipients: int) -> Held:
        """A message file, and its live lines."""
        message = Held(SpoolId(spool_id), len(recipients))
        writer = MessageFileWriter(self.disk, "/s", message.spool_id)
        writer.append([b"content"])
        writer.finish()
        self.lines.lines += [(message.spool_id, number, len(recipients)) for number in recipients]
        return message

    def is_there(self, message: Held) -> bool:
        return self.disk.exists(message_path("/s", message.spool_id))

    def end(self, message: Held, number: int) -> bool:
        self.lines.lines.remove((message.spool_id, number, message.recipient_count))
        return self.release.entry_is_over(message, number)


@pytest.fixture
def world() -> World:
    return World()


def test_the_last_entry_takes_the_file_along(world: World) -> None:
    message = world.put(FIRST_NEW + 1, 1, 2)
    world.release.track(message, 2)
    assert not world.end(message, 1)
    assert world.is_there(message)
    assert world.end(message, 2)
    assert not world.is_there(message)


def test_a_message_of_an_earlier_start_waits_for_a_scan(world: World) -> None:
    over, other = world.put(7, 1, 2), world.put(8, 1, 2)
    assert not any([world.end(over, 1), world.end(over, 2), world.end(other, 1)])
    assert world.is_there(over)
    world.clock.advance(0)
    assert not world.is_there(over)
    assert world.end(other, 2), "the scan has counted it"
    assert not world.is_there(other)


def test_later_scans_wait_for_more_messages(world: World) -> None:
    message = world.put(FIRST_NEW + 1, 1, 2)
    world.release.scan_if_needed()
    world.clock.advance(0)
    assert not any([world.end(message, 1), world.end(message, 2)])
    assert world.is_there(message)
    world.clock.advance(SCAN_DELAY_S)
    assert not world.is_there(message)


def test_the_first_scan_removes_what_no_line_names(world: World) -> None:
    named, stray, young = world.put(7, 1), world.put(8, 1), world.put(FIRST_NEW + 1, 1)
    world.lines.lines = [line for line in world.lines.lines if line[0] == named.spool_id]
    world.release.scan_if_needed()
    world.clock.advance(0)
    assert [world.is_there(message) for message in (named, stray, young)] == [True, False, True]
    assert world.release.scan.strays == 1


def test_a_damaged_line_keeps_the_message_that_it_names(world: World) -> None:
    message = world.put(7, 1)
    world.lines.lines = []
    world.lines.damaged = [b"??%016X-1 ??" % message.spool_id]
    world.release.scan_if_needed()
    world.clock.advance(0)
    assert world.is_there(message)


def test_a_scan_that_can_not_read_all_removes_nothing_and_is_made_again(world: World) -> None:
    stray = world.put(8, 1)
    world.lines.lines = []
    world.lines.can_be_read = False
    world.release.scan_if_needed()
    world.clock.advance(0)
    assert world.release.scan.has_failed
    assert world.is_there(stray)
    world.lines.can_be_read = True
    world.clock.advance(RESCAN_S)
    assert not world.is_there(stray)


def test_no_scan_begins_behind_a_stop(world: World) -> None:
    stray = world.put(8, 1)
    world.lines.lines = []
    world.release.scan_if_needed()
    world.release.stop()
    world.clock.advance(RESCAN_S)
    assert world.is_there(stray)
