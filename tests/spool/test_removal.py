"""Message files are removed several at a time; a failure of one keeps no other."""

from __future__ import annotations

import errno

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import MessageFileWriter
from mailismus.spool.removal import MOST_GATHERED, MessageRemoval
from mailismus.spool.silo import SILO_NAMES, message_path
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

FIRST_NEW = SpoolId(2 << 32)


class World:
    """A spool, and a worker that runs calls when it is told to."""

    def __init__(self) -> None:
        self.disk, self.worker = MemoryDisk(), MemoryWorker()
        for path in ("/s", "/c", *(f"/s/{name}" for name in SILO_NAMES)):
            self.disk.make_directory(path)
        self.removal = MessageRemoval(self.disk, "/s", self.worker, FIRST_NEW, "/c")

    def put(self, count: int) -> list[SpoolId]:
        """So many message files."""
        ids = [SpoolId(FIRST_NEW + number) for number in range(1, count + 1)]
        for spool_id in ids:
            writer = MessageFileWriter(self.disk, "/s", spool_id)
            writer.append([b"content"])
            writer.finish()
        return ids

    def left(self, ids: list[SpoolId]) -> list[SpoolId]:
        """Those that are still there."""
        return [spool_id for spool_id in ids if self.disk.exists(message_path("/s", spool_id))]


@pytest.fixture
def world() -> World:
    return World()


def test_while_a_file_is_removed_others_gather(world: World) -> None:
    ids = world.put(4)
    for spool_id in ids:
        world.removal.remove(spool_id)
    assert len(world.worker.calls) == 1, "the first one; the others wait for its end"
    world.worker.calls.pop()()
    assert world.left(ids) == ids[1:]
    assert len(world.worker.calls) == 1, "all others at once"
    world.worker.calls.pop()()
    assert not world.left(ids)
    assert not world.worker.calls


def test_many_files_do_not_wait_for_a_removal_that_hangs(world: World) -> None:
    ids = world.put(2 * MOST_GATHERED)
    for spool_id in ids:
        world.removal.remove(spool_id)
    assert len(world.worker.calls) == 2
    world.worker.calls.pop()()
    assert world.left(ids) == [ids[0], *ids[1 + MOST_GATHERED :]]
    world.worker.calls.pop()()
    world.worker.calls.pop()()
    assert not world.left(ids)


def test_a_stop_hands_over_what_has_gathered(world: World) -> None:
    ids = world.put(4)
    for spool_id in ids[:3]:
        world.removal.remove(spool_id)
    world.removal.stop()
    world.removal.remove(ids[3])
    assert len(world.worker.calls) == 3, "nothing waits for a result that may never be known"
    for call in world.worker.calls:
        call()
    assert not world.left(ids)


def test_a_failure_keeps_no_other_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = world.put(4)
    unlink = world.disk.unlink

    def failing(path: str) -> None:
        if path == message_path("/s", ids[2]):
            raise OSError(errno.EIO, "input/output error", path)
        unlink(path)

    monkeypatch.setattr(world.disk, "unlink", failing)
    for spool_id in ids:
        world.removal.remove(spool_id)
    while world.worker.calls:
        world.worker.calls.pop()()
    assert world.left(ids) == [ids[2]]
    assert world.removal.unlinks_failed == 1


def test_files_that_no_thread_takes_are_counted(world: World) -> None:
    ids = world.put(3)
    world.worker.fault = OSError(errno.EAGAIN, "the system gives no thread")
    for spool_id in ids:
        world.removal.remove(spool_id)
    while world.worker.calls:
        world.worker.calls.pop()()
    assert world.removal.unlinks_failed == 3
    world.worker.fault = None
    world.removal.remove(ids[0])
    world.worker.calls.pop()()
    assert world.left(ids) == ids[1:], "and the next one is handed over again"
