"""Copies: what of a queue's bytes is nowhere any more, neither in place nor under another name nor in `corrupt/`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mailismus.spool.quarantine import UNFINISHED
from tests.durability.crash.tree import EMPTY, Content, Tree

_NOTE = re.compile(rb"from (/[^\n]*) at ([0-9]+)\n")
"""The first line of what was set aside."""


def gone(base: Tree, tree: Tree) -> list[str]:
    """Files of `base` with bytes that `tree` has nowhere; zeros at a file's end need no copy."""
    found = []
    left = set(tree.names.files.values())
    for path, inode in base.names.files.items():
        old = base.contents.get(inode, EMPTY)
        new = tree.contents.get(inode, EMPTY) if inode in left else EMPTY
        if new is not old and not _is_elsewhere(old, tree) and not _is_copied(path, old.data, new.data, tree):
            found.append(path)
    return found


def _is_elsewhere(old: Content, tree: Tree) -> bool:
    return any(tree.contents.get(inode, EMPTY).digest == old.digest for inode in set(tree.names.files.values()))


def _is_copied(path: str, old: bytes, new: bytes, tree: Tree) -> bool:
    known = bytearray(new[: len(old)].ljust(len(old), b"\0"))
    for offset, copy in copies_of(path, tree):
        if old[offset : offset + len(copy)] == copy:
            known[offset : offset + len(copy)] = copy
    return known == old


def copies_of(path: str, tree: Tree) -> Iterator[tuple[int, bytes]]:
    """Copies of pieces of this file: where a piece was, and its bytes."""
    for other in tree.names.files:
        if other.startswith("/q/corrupt/") and not other.endswith(UNFINISHED):
            data = tree.data_of(other)
            note = _NOTE.match(data)
            if note is not None and note[1] == path.encode():
                yield int(note[2]), data[note.end() :]
