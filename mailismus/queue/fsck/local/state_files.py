"""State files: what a server remembers from one run to the next and may lose. One that does not check is
removed, after a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from mailismus.disk.interface import NameKind
from mailismus.errors import Corrupt
from mailismus.queue.files.state_file import ACTS, DIRECTORY, NAMES, NEW, read_state
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import NameCheck, try_twice
from mailismus.queue.fsck.local.problems import FileProblem, problem
from mailismus.queue.fsck.local.target import Checking


def check_state_files(checking: Checking, names: NameCheck) -> Iterator[FileProblem]:
    """Check the files in `state/`, and find foreign names beside them."""
    directory = os.path.join(checking.queue_path, DIRECTORY)
    for name in names.list(directory):
        path = os.path.join(directory, name)
        if name == ACTS:
            yield from names.check(path, NameKind.FILE)
        elif name == ACTS + NEW:
            yield problem(checking.kinds["STATE_LEFT"], path, None, partial(actions.remove, path))
        elif name.removesuffix(NEW) not in NAMES:
            yield problem(checking.kinds["FOREIGN"], path)
        elif checking.disk.describe(path).kind is not NameKind.FILE:
            yield from names.check(path, NameKind.FILE)
        elif name.endswith(NEW):
            yield problem(checking.kinds["STATE_LEFT"], path, None, partial(actions.remove, path))
        else:
            why = _why_damaged(checking, path, name)
            if why:
                yield problem(checking.kinds["STATE_DAMAGED"], path, None, partial(actions.remove, path), why=why)
            else:
                yield from names.check(path, NameKind.FILE)


def _why_damaged(checking: Checking, path: str, name: str) -> str:
    """Why a start would pass over the file, or over lines of it; empty: it would not, or the file is of a newer format."""
    try:
        found = try_twice(lambda: read_state(checking.disk, path))
    except Corrupt as error:
        return error.text
    except OSError as error:
        return f"it can't be read ({error.strerror or error})"
    if found is None:
        return ""
    if found.name != name:
        return f"it holds {found.name}"
    return f"{found.bad} lines do not check" if found.bad else ""
