"""The frame of fsck, for a made-up provider: order of the steps, what is told, and the exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from mailismus.disk.interface import ILock
from mailismus.errors import StartError, Unavailable
from mailismus.queue.fsck.faults import Fault, FaultKind
from mailismus.queue.fsck.finding import Done, Finding, Severity
from mailismus.queue.fsck.frame import check_queue, repair_queue
from mailismus.queue.fsck.summary import FsckSummary
from tests.fakes.disk import MemoryDisk


class Kind(FaultKind):
    """Kinds of this provider."""

    NOTED = (Severity.NOTE, "is noted", "leaves it alone")
    LEFT = (Severity.HARMLESS, "is left", "leaves it to the start at its end")
    BROKEN = (Severity.REPAIRABLE, "{what} is broken", "puts it right")
    GONE = (Severity.LOST, "is gone", "can't bring it back")


Steps = list[str]
"""Stands for the executor: what was done."""


def fault(kind: Kind, mend: Callable[[Steps], None] | None = None) -> Fault[Steps]:
    return Fault(kind.finding(f"/q/{kind.code}", None, {"what": "it"}), mend)


def fail(steps: Steps) -> None:
    raise OSError(28, "no space")


class Queue:
    """`CheckSteps` and `RepairSteps`."""

    def __init__(self, *faults: Fault[Steps]) -> None:
        self.disk = MemoryDisk()
        for path in ("/q", "/s"):
            self.disk.make_directory(path)
        self.roots = ("/q", "/s")
        self.found: Sequence[Fault[Steps]] = faults
        self.left: Sequence[Finding] = ()
        self.steps: Steps = []
        self.optional = ""

    def refuse_unknown(self) -> None:
        self.steps.append("refuse unknown")

    def refuse_newer(self) -> None:
        self.steps.append("refuse newer")

    def not_locked(self, path: str, why: str) -> Finding:
        return Finding(Severity.NOTE, "not-locked", path, None, why, "")

    def findings(self) -> Iterator[Finding]:
        self.steps.append("look")
        return (found.finding for found in self.found if found.finding is not None)

    def refuse(self) -> None:
        self.steps.append("refuse")

    def make_executor(self) -> Steps:
        return self.steps

    def faults(self, executor: Steps) -> Iterator[Fault[Steps]]:
        return iter(self.found)

    def may_fail(self, kind: str) -> bool:
        return kind == self.optional

    def finish(self, executor: Steps) -> None:
        executor.append("finish")

    def close(self, executor: Steps) -> None:
        executor.append("close")

    def start_and_stop(self, locks: list[ILock]) -> None:
        self.steps.append("start and stop")
        for lock in locks:
            lock.release()

    def check_again(self) -> Iterator[Finding]:
        self.steps.append("check")
        return iter(self.left)


def status(findings: Sequence[Finding], *, is_repair: bool) -> int:
    summary = FsckSummary()
    for finding in findings:
        summary.add(finding)
    return summary.status(is_repair=is_repair)


def is_free(queue: Queue, root: str) -> bool:
    lock = queue.disk.lock(f"{root}/lock")
    if lock is not None:
        lock.release()
    return lock is not None


def test_a_check_makes_no_lock_and_ends_with_65_where_a_repair_is_needed() -> None:
    queue = Queue(fault(Kind.LEFT), fault(Kind.BROKEN))
    found = list(check_queue(queue))
    assert queue.steps == ["refuse unknown", "refuse newer", "look"]
    assert [finding.what for finding in found] == ["is left", "it is broken"]
    assert not queue.disk.exists("/q/lock")
    assert status(found, is_repair=False) == os.EX_DATAERR
    assert status(found[:1], is_repair=False) == os.EX_OK


def test_a_check_beside_a_server_is_refused_with_75() -> None:
    queue = Queue(fault(Kind.BROKEN))
    queue.disk.create("/s/lock").close()
    assert queue.disk.lock("/s/lock") is not None
    with pytest.raises(StartError, match="a server or another fsck holds /s") as refused:
        list(check_queue(queue))
    assert refused.value.status == os.EX_TEMPFAIL
    assert queue.steps == ["refuse unknown"]


def test_a_repair_does_each_step_in_its_order() -> None:
    queue = Queue(
        fault(Kind.NOTED),
        fault(Kind.LEFT),
        fault(Kind.BROKEN, lambda steps: steps.append("mend")),
        Fault(None, lambda steps: steps.append("mend more")),
    )
    found = list(repair_queue(queue))
    assert [finding.done for finding in found] == [Done.NOTHING, Done.BY_START, Done.REPAIRED]
    assert queue.steps == ["refuse", "mend", "mend more", "finish", "close", "start and stop", "check"]
    assert is_free(queue, "/q")
    assert status(found, is_repair=True) == os.EX_OK


def test_what_is_still_there_is_told_and_ends_with_65() -> None:
    queue = Queue()
    queue.left = [Kind.NOTED.finding("/q/a", None, {}), Kind.BROKEN.finding("/q/b", None, {"what": "b"})]
    (left,) = repair_queue(queue)
    assert (left.path, left.done, left.error) == ("/q/b", Done.FAILED, "still there after the repair")
    assert status([left], is_repair=True) == os.EX_DATAERR


def test_lost_mail_ends_with_65_though_it_is_repaired() -> None:
    found = list(repair_queue(Queue(fault(Kind.GONE, lambda steps: None))))
    assert status(found, is_repair=True) == os.EX_DATAERR


def test_a_repair_that_nothing_depends_on_may_fail() -> None:
    queue = Queue(fault(Kind.BROKEN, fail), fault(Kind.LEFT))
    queue.optional = Kind.BROKEN.code
    failed, left = repair_queue(queue)
    assert (failed.done, failed.error, left.done) == (Done.FAILED, "no space", Done.BY_START)


def test_any_other_that_fails_ends_the_repair_and_gives_the_locks_up() -> None:
    queue = Queue(fault(Kind.BROKEN, fail), fault(Kind.LEFT))
    with pytest.raises(Unavailable, match="/q/broken can't be repaired"):
        list(repair_queue(queue))
    assert queue.steps == ["refuse", "close"]
    assert is_free(queue, "/q")
    assert is_free(queue, "/s")
