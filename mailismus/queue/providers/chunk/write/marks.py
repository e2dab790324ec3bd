"""Lines of recipients are marked done, in place. Blocks."""

from __future__ import annotations

from collections.abc import Callable

from mailismus.disk.interface import IFile
from mailismus.queue.files.recipient_line import DONE
from mailismus.queue.providers.chunk.index.changes import FileChange
from mailismus.queue.providers.chunk.write.directories import AnyDirectories


def mark_done(directories: AnyDirectories, change: FileChange, keep: Callable[[IFile], None]) -> None:
    """Mark the lines of a change. `keep` is given each file once, open, before its first mark: it closes it, and makes it
    durable. Raises OSError."""
    number = change.known.number
    opened: dict[str, IFile] = {}
    for name, offset in change.marks:
        file = opened.get(name)
        if file is None:
            file = opened[name] = directories.of(name, number).open(str(number))
            keep(file)
        file.write_at(offset, (DONE,))
