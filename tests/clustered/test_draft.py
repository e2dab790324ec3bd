"""Drafts of the clustered queue: one act at a time, memory that is bounded and given back, files that go."""

from __future__ import annotations

from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.spool.budget import Budget
from mailismus.spool.draft import DraftTerms, SpoolDraft
from mailismus.spool.message_file import MessageFileReader
from mailismus.spool.silo import SILO_NAMES, message_path
from mailismus.spool.stream import MAX_UNWRITTEN
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")

BUFSIZE = 16_000
PIECE = b"x" * 65_534 + b"\r\n"


class OneAtATime(MemoryWorker):
    """Runs calls when the test says so; those of one draft never wait for one another."""

    def work_all(self) -> None:
        while self.calls:
            assert len(self.calls) == 1, "two acts on one file at a time"
            self.work()


class World:
    """A spool in memory, its worker and the budgets."""

    def __init__(self, most: int = 1 << 20, most_behind: int = 1 << 20) -> None:
        self.disk = MemoryDisk()
        for name in ("/s", *(f"/s/{silo}" for silo in SILO_NAMES)):
            self.disk.make_directory(name)
        self.worker = OneAtATime()
        self.budget, self.behind = Budget(most), Budget(most_behind)

    def draft(self, number: int = 1) -> SpoolDraft:
        terms = DraftTerms(self.disk, "/s", self.worker, self.budget, self.behind, 131_072, BUFSIZE)
        return SpoolDraft(SpoolId(number), terms)

    def content_of(self, draft: SpoolDraft) -> bytes:
        reader = MessageFileReader(self.disk, message_path("/s", draft.spool_id))
        pieces = []
        while piece := reader.read():
            pieces.append(piece)
        return b"".join(pieces)


def errors_of(deferred: Deferred[None]) -> list[BaseException]:
    seen: list[BaseException] = []

    def note(failure: Failure) -> None:
        if failure.value is not None:
            seen.append(failure.value)

    deferred.addErrback(note)
    return seen


def write_until_asked_to_wait(draft: SpoolDraft) -> Deferred[None]:
    for _ in range(100):
        wait = draft.write(PIECE)
        if wait is not None:
            return wait
    raise AssertionError("never asked to wait")


def test_a_draft_whose_last_piece_had_to_wait_is_finished_once() -> None:
    world = World()
    draft = world.draft()
    finished: list[None] = []
    write_until_asked_to_wait(draft).addCallback(lambda _: draft.finish()).addCallback(finished.append)
    world.worker.work_all()
    assert finished == [None]
    assert world.content_of(draft) == PIECE * (draft.stored_bytes // len(PIECE))


def test_bytes_written_one_by_one_are_not_kept_one_by_one() -> None:
    world = World()
    draft = world.draft()
    for _ in range(50_000):
        draft.write(b"ab")
    assert len(draft.parts) < 50
    assert b"".join(draft.parts) == b"ab" * 50_000


def test_bytes_written_one_by_one_while_the_disk_is_busy_are_all_there() -> None:
    world = World()
    draft = world.draft()
    draft.write(PIECE)
    draft.write(PIECE)
    draft.write(PIECE)
    assert world.worker.calls
    for number in range(50_000):
        assert draft.write(b"%d" % (number % 10)) is None
    finished = draft.finish()
    world.worker.work_all()
    assert finished.called
    assert world.content_of(draft) == PIECE * 3 + b"0123456789" * 5_000


def test_drafts_on_their_way_to_a_stalled_disk_do_not_grow_beyond_their_budget() -> None:
    world = World(most=0, most_behind=1 << 20)
    drafts = [world.draft(number) for number in range(1, 101)]
    waiting = []
    for draft in drafts:
        for _ in range(10):
            wait = draft.write(PIECE)
            if wait is not None:
                waiting.append(wait)
                break
    assert len(waiting) == 100
    assert sum(draft.stored_bytes for draft in drafts) == world.behind.used
    assert world.behind.used < world.behind.limit + 100 * len(PIECE)
    while world.worker.calls:
        world.worker.work()
    assert all(wait.called for wait in waiting)
    assert world.behind.used < 100 * BUFSIZE


def test_whatever_becomes_of_drafts_their_memory_is_given_back() -> None:
    world = World(most=200_000)
    kept, abandoned, finished, broken = (world.draft(number) for number in range(1, 5))
    kept.write(b"a" * 1000)
    abandoned.write(b"b" * 1000)
    abandoned.abandon()
    abandoned.abandon()
    for draft in (finished, broken):
        for _ in range(4):
            draft.write(PIECE)
    world.worker.work()
    broken.abandon()
    done = finished.finish()
    while world.worker.calls:
        world.worker.work()
    assert done.called
    kept.keep()
    finished.keep()
    finished.abandon()
    assert (world.budget.used, world.behind.used) == (0, 0)
    assert list(world.disk.names) == [message_path("/s", finished.spool_id)]


def test_a_writer_can_not_abandon_what_is_being_committed() -> None:
    world = World()
    draft = world.draft()
    for _ in range(4):
        draft.write(PIECE)
    finished = draft.finish()
    draft.abandon()
    world.worker.work_all()
    draft.abandon()
    world.worker.work_all()
    assert finished.called
    draft.keep()
    assert world.content_of(draft) == PIECE * 4


def test_a_draft_dropped_while_it_is_made_durable_leaves_no_file_and_is_not_said_to_be_durable() -> None:
    world = World()
    draft = world.draft()
    for _ in range(4):
        draft.write(PIECE)
    world.worker.work_all()
    failed = errors_of(draft.finish())
    draft.drop()
    world.worker.work_all()
    assert isinstance(failed[0], Unavailable)
    assert world.disk.names == {}
    assert world.behind.used == 0


def test_a_full_disk_shows_when_the_draft_is_finished_and_leaves_no_file() -> None:
    world = World()
    draft = world.draft()
    world.disk.fault = lambda act, path: OSError(28, "No space left on device") if act == "write" else None
    wait = write_until_asked_to_wait(draft)
    world.worker.work_all()
    assert wait.called
    failed = errors_of(draft.finish())
    world.worker.work_all()
    assert isinstance(failed[0], Unavailable)
    assert failed[0].full
    assert world.disk.names == {}
    assert world.behind.used == 0


def test_no_more_than_it_may_waits_behind_one_slow_act() -> None:
    world = World()
    draft = world.draft()
    write_until_asked_to_wait(draft)
    assert draft.stored_bytes <= MAX_UNWRITTEN + 4 * len(PIECE)
