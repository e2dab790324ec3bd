"""The report of a check on local files, within the frame of every fsck (`queue.fsck.frame`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from mailismus.queue.files.ownership import Ownership
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.finding import Checked, Finding
from mailismus.queue.fsck.frame import check_queue
from mailismus.queue.fsck.local.target import Checking


class ILook(Protocol):
    """One look at all files of a queue, as its provider does it."""

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""

    def problems(self) -> Iterator[Fault[Any]]:
        """All problems. Raises OSError where the check itself can't go on."""


class LocalCheckReport:
    """A check, which changes nothing: an `FsckReport` and its `CheckSteps`."""

    def __init__(
        self,
        checking: Checking,
        look: Callable[[Checking], ILook],
        ownership: Ownership,
        refuse_newer: Callable[[Checking], None],
    ) -> None:
        """`look`: called when the refusals are over. `refuse_newer` raises `NewerFormat`."""
        self._checking, self._new_look = checking, look
        self._ownership, self._refuse_newer = ownership, refuse_newer
        self._look: ILook | None = None
        self.disk = checking.disk
        self.roots = tuple(dict.fromkeys((checking.queue_path, checking.spool_path)))

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""
        return self._look.checked if self._look is not None else ()

    def __iter__(self) -> Iterator[Finding]:
        return check_queue(self)

    def refuse_unknown(self) -> None:
        self._ownership.refuse_unknown(self.disk, self._checking.queue_path)

    def refuse_newer(self) -> None:
        self._refuse_newer(self._checking)

    def not_locked(self, path: str, why: str) -> Finding:
        return self._checking.kinds["NOT_LOCKED"].finding(path, None, {"why": why})

    def findings(self) -> Iterator[Finding]:
        look = self._look = self._new_look(self._checking)
        for found in look.problems():
            if found.finding is not None:
                yield found.finding
