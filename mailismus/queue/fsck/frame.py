"""The frame of fsck: the steps of a check and of a repair, the same for every provider on local files.

    check:   refusals -> locks -> findings; changes nothing, does not even create a lock file
    repair:  refusals -> locks -> the same findings, each repaired as it is found
             -> what was put off to the end -> one start and clean stop -> a second check

The start at the end is the server's own; it repairs what findings leave to it. The second check proves the repair.

*Rules*: bytes are copied to `corrupt/` before they are changed (`quarantine`). A repair that was interrupted anywhere can be
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import attrs

from mailismus.disk.interface import IDisk, ILock
from mailismus.errors import Unavailable
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.finding import Done, Finding, Severity
from mailismus.queue.fsck.locks import RepairLocks, held_error, lock_file_of

E = TypeVar("E")
"""What executes the repairs of a provider."""


class CheckSteps(Protocol):
    """One check of a queue, as its provider does it."""

    @property
    def disk(self) -> IDisk: ...

    @property
    def roots(self) -> Sequence[str]:
        """The directories that have a lock."""

    def refuse_unknown(self) -> None:
        """Raise `StartError` where this is no queue of the provider's."""

    def refuse_newer(self) -> None:
        """Raise `NewerFormat` for files of a newer format, which would look like damage."""

    def not_locked(self, path: str, why: str) -> Finding:
        """The finding for a lock that can't be taken."""

    def findings(self) -> Iterator[Finding]:
        """All findings. Raises OSError where the check itself can't go on."""


class RepairSteps(Protocol[E]):
    """One repair of a queue, as its provider does it."""

    @property
    def disk(self) -> IDisk: ...

    @property
    def roots(self) -> Sequence[str]:
        """The directories that have a lock."""

    def refuse(self) -> None:
        """Raise `StartError` or `NewerFormat` where nothing may be changed."""

    def make_executor(self) -> E:
        """Return what executes the repairs. The locks are held."""

    def faults(self, executor: E) -> Iterator[Fault[E]]:
        """All faults, in the order in which they are repaired."""

    def may_fail(self, kind: str) -> bool:
        """Whether nothing else of the repair depends on that of this kind of finding."""

    def finish(self, executor: E) -> None:
        """Make all durable, then do what was put off to the end."""

    def close(self, executor: E) -> None:
        """Give up the executor. Harmless when repeated."""

    def start_and_stop(self, locks: list[ILock]) -> None:
        """Start the server's queue and stop it cleanly; release the locks."""

    def check_again(self) -> Iterator[Finding]:
        """All findings that are left."""


def check_queue(steps: CheckSteps) -> Iterator[Finding]:
    """All findings. Raises `StartError` (75) when a server runs on the queue, `NewerFormat`, OSError."""
    steps.refuse_unknown()
    locks: list[ILock] = []
    try:
        for root in steps.roots:
            path = lock_file_of(steps.disk, root)
            if path is None:
                continue
            try:
                lock = steps.disk.lock(path)
            except OSError as error:
                yield steps.not_locked(path, error.strerror or str(error))
                continue
            if lock is None:
                raise held_error(root)
            locks.append(lock)
        steps.refuse_newer()
        yield from steps.findings()
    finally:
        for held in locks:
            held.release()


def repair_queue(steps: RepairSteps[E]) -> Iterator[Finding]:
    """All findings, each with what was done; then those of a second check that still need an administrator. Raises
    `StartError` (75: a server runs; 77: wrong user), `StorageError`, OSError: then the repair can be repeated."""
    steps.refuse()
    locks = RepairLocks(steps.disk, steps.roots)
    try:
        locks.take()
        yield from _repair(steps)
        locks.take()  # a lock that was no file, and has been moved away
    except BaseException:
        locks.release()
        raise
    steps.start_and_stop(locks.held())
    for left in steps.check_again():
        if left.severity is not Severity.NOTE:
            yield attrs.evolve(left, done=Done.FAILED, error="still there after the repair")


def _repair(steps: RepairSteps[E]) -> Iterator[Finding]:
    executor = steps.make_executor()
    try:
        for fault in steps.faults(executor):
            done, error = _mend(fault, executor, steps)
            if fault.finding is not None:
                yield attrs.evolve(fault.finding, done=done, error=error)
        steps.finish(executor)
    finally:
        steps.close(executor)


def _mend(fault: Fault[E], executor: E, steps: RepairSteps[E]) -> tuple[Done, str]:
    """Repair one fault. Raises `StorageError` where the rest of the repair depends on it."""
    if fault.mend is None:
        return fault.left_to, ""
    try:
        fault.mend(executor)
    except OSError as error:
        why = error.strerror or str(error)
        if fault.finding is None or not steps.may_fail(fault.finding.kind):
            where = fault.finding.path if fault.finding is not None else "a line"
            raise Unavailable(f"{where} can't be repaired ({why}); what was repaired before it is, begin again") from error
        return Done.FAILED, why
    return Done.REPAIRED, ""
