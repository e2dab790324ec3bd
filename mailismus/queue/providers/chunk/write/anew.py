"""Written anew: new files of a message take the places of its old ones, in steps with a barrier behind each. Blocks.

    make    new files in pid
    first   the one that has the lines of all entries takes its place
    others  the other new files take theirs
    old     lines that stand elsewhere by now are marked done in the first; files that have no line any more go

*Rules*: names in several directories become durable in any order, so each entry has a line that counts in a file that the
step under way leaves alone, or makes: before `first` is durable in the old files, behind it in the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mailismus.chunks.unit import WorkUnit
from mailismus.disk.interface import IFile
from mailismus.queue.providers.chunk.format.version import PID
from mailismus.queue.providers.chunk.index.changes import FILES, FileChange
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.marks import mark_done

Keep = Callable[[IFile], None]
"""Is given each open file once: it closes it."""


def make_anew(queue: ChunkDirectories, change: FileChange, unit: WorkUnit, keep: Keep, barrier: Barrier) -> None:
    """Make the new files. Raises OSError, as all of these."""
    pid = queue.of(PID)
    for name, data in change.files.items():
        text = _text(change, name)
        try:
            pid.unlink(text)
        except FileNotFoundError:
            pass
        file = unit.do(partial(pid.create, text), partial(pid.unlink, text))
        keep(file)
        file.write_at(0, (data,))
        barrier.add(file)


def put_first(queue: ChunkDirectories, change: FileChange, barrier: Barrier) -> None:
    """The new file that has the lines of all entries takes its place."""
    for name in list(change.files)[:1]:
        _put(queue, change, name, barrier)


def put_others(queue: ChunkDirectories, change: FileChange, barrier: Barrier) -> None:
    """So do the others, with the lines of their own."""
    for name in list(change.files)[1:]:
        _put(queue, change, name, barrier)


def drop_old(queue: ChunkDirectories, change: FileChange, keep: Keep, barrier: Barrier) -> None:
    """No line counts any more but in its own file."""

    def keep_marked(file: IFile) -> None:
        keep(file)
        barrier.add(file)

    mark_done(queue, change, keep_marked)
    remove_others(queue, change, FILES, barrier)


def remove_others(queue: ChunkDirectories, change: FileChange, names: tuple[str, ...], barrier: Barrier) -> None:
    """Remove those of a message's files that the change does not name: they must not come back beside its own."""
    number = change.known.number
    for name in names:
        if name not in change.files:
            try:
                queue.of(name, number).unlink(str(number))
            except FileNotFoundError:
                pass
            barrier.add_directory(name, number)


def _put(queue: ChunkDirectories, change: FileChange, name: str, barrier: Barrier) -> None:
    number = change.known.number
    queue.disk.rename(f"{queue.root}/{PID}/{_text(change, name)}", queue.path_of(name, number))
    barrier.add_directory(name, number)
    barrier.add_directory(PID)


def _text(change: FileChange, name: str) -> str:
    return f"{name}.{change.known.number}"
