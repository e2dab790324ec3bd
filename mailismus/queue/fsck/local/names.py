"""Names: kind, owner and mode of what lies in the queue's and the spool's directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from mailismus.disk.interface import NameFacts, NameKind
from mailismus.errors import Corrupt
from mailismus.journal.replay import SUFFIX as SEGMENT_SUFFIX
from mailismus.queue.files.conversion import CONVERSION
from mailismus.queue.files.directories import LOCK
from mailismus.queue.files.mark import MARK, NEW_MARK, read_mark
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.problems import FileProblem, problem
from mailismus.queue.fsck.local.target import Checking
from mailismus.spool.link_probe import LINK_PROBES
from mailismus.spool.silo import SILO_NAMES

_SYSTEMS_OWN = frozenset({"lost+found"})
"""A file system has this in its root directory, which may be the queue's or the spool's."""

T = TypeVar("T")


def try_twice(read: Callable[[], T]) -> T:
    """The result of `read`, of a second try where the first fails: one disk error is no reason to give data up. Raises
    OSError."""
    try:
        return read()
    except OSError:
        return read()


class NameCheck:
    """Checks names."""

    def __init__(self, checking: Checking) -> None:
        self._checking, self._kinds = checking, checking.kinds
        self._disk = checking.disk
        self._owner = checking.disk.describe(checking.queue_path).owner

    def check_directories(self) -> Iterator[FileProblem]:
        """Check the queue's directories, their owner and mode, and find foreign names beside them."""
        checking = self._checking
        for root, names in ((checking.queue_path, checking.layout.directories), (checking.spool_path, SILO_NAMES)):
            why = self._disk.refuse_unsafe(root) if checking.is_here else None
            if why is not None and not self._is_mended_by_mode(root):
                yield problem(self._kinds["UNSAFE"], root, why=why)
            else:
                yield from self.check(root, NameKind.DIRECTORY)
            for name in names:
                path = os.path.join(root, name)
                if not self._disk.exists(path):
                    is_needed = name in checking.layout.needed and self._has_segments()
                    yield problem(self._kinds["AREA_MISSING" if is_needed else "DIRECTORY_MISSING"], path)
                else:
                    yield from self.check(path, NameKind.DIRECTORY)
            yield from self._check_root(root, frozenset(names))
        yield from self.check_mark()
        kept = len(self.list(checking.corrupt_path))
        if kept:
            yield problem(self._kinds["SET_ASIDE"], checking.corrupt_path, count=kept)

    def _has_segments(self) -> bool:
        return any(name.endswith(SEGMENT_SUFFIX) for name in self.list(self._checking.journal_path))

    def _is_mended_by_mode(self, path: str) -> bool:
        facts = self._disk.describe(path)
        return facts.kind is NameKind.DIRECTORY and (facts.mode & 0o077 != 0 or facts.owner != self._owner)

    def _check_root(self, root: str, names: frozenset[str]) -> Iterator[FileProblem]:
        for name in sorted(self._disk.list_directory(root)):
            path = os.path.join(root, name)
            if name == LOCK:
                yield from self.check(path, NameKind.FILE)
            elif name == CONVERSION:
                yield from self.check(path, NameKind.DIRECTORY)
            elif name in LINK_PROBES:
                yield problem(self._kinds["PROBE_LEFT"], path, None, partial(actions.unlink, path))
            elif root == self._checking.queue_path and name in (MARK, NEW_MARK):
                continue
            elif name not in names and name not in _SYSTEMS_OWN and not name.endswith(self._checking.layout.own):
                yield problem(self._kinds["FOREIGN"], path)

    def check_mark(self) -> Iterator[FileProblem]:
        """Check the mark of the queue, and find one that was never finished."""
        root = self._checking.queue_path
        new_path, path = os.path.join(root, NEW_MARK), os.path.join(root, MARK)
        if self._disk.exists(new_path):
            is_file = self._disk.describe(new_path).kind is NameKind.FILE
            mend = partial(actions.remove if is_file else actions.move_aside, new_path)
            yield problem(self._kinds["MARK_LEFT"], new_path, None, mend)
        try:
            mark = try_twice(lambda: read_mark(self._disk, root))
        except Corrupt as error:
            yield problem(self._kinds["MARK_DAMAGED"], path, None, partial(actions.move_aside, path), why=error.text)
        except OSError as error:
            why = f"it can't be read ({error.strerror or error})"
            yield problem(self._kinds["MARK_DAMAGED"], path, None, partial(actions.move_aside, path), why=why)
        else:
            if mark is not None:
                yield from self.check(path, NameKind.FILE)

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; none where there is no such directory."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(self._disk.list_directory(path))
        return []

    def is_directory(self, path: str) -> bool:
        """Whether it is a directory, and no link to one."""
        return self._disk.describe(path).kind is NameKind.DIRECTORY

    def check(self, path: str, wanted: NameKind) -> Iterator[FileProblem]:
        """Check kind, owner and mode of a name."""
        facts = self._disk.describe(path)
        yield from self.check_facts(path, facts, wanted)

    def check_facts(self, path: str, facts: NameFacts, wanted: NameKind) -> Iterator[FileProblem]:
        """As `check`, with facts that are known already."""
        if facts.kind is not wanted:
            if wanted is NameKind.DIRECTORY:
                yield problem(
                    self._kinds["UNSAFE"],
                    path,
                    why=f"it is {facts.kind.value}, not a directory; put the directory back",
                )
            else:
                mend = partial(actions.move_aside, path)
                yield problem(self._kinds["NO_PLAIN_FILE"], path, None, mend, what=facts.kind.value, wanted=wanted.value)
            return
        if not self._checking.is_here:
            return
        owner = self._owner
        if facts.owner != owner:
            mend_mode = partial(actions.make_private, path, owner)
            yield problem(self._kinds["WRONG_OWNER"], path, None, mend_mode, owner=facts.owner, wanted=owner)
        elif facts.mode & 0o077 or facts.mode & 0o600 != 0o600:
            right = 0o700 if wanted is NameKind.DIRECTORY else 0o600
            mend_mode = partial(actions.make_private, path, owner)
            yield problem(self._kinds["NOT_PRIVATE"], path, None, mend_mode, mode=f"{facts.mode:04o}", wanted=f"{right:04o}")
