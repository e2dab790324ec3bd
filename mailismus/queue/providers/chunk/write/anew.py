"""Written anew: new files of a message take the places of its old ones, in steps with a barrier behind each. Blocks.

    make    new files in pid, and one with the lines of all entries if there are several
    first   the one with all of them takes the place of the first
    others  the other files take theirs
    old     the first takes its own; files that have no line any more go

*Rules*: names in several directories become durable in any order, so each entry has a line that counts in a file that the
step under way leaves alone, or makes: before `first` is durable in the old files, behind it in the one with all lines.
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

Keep = Callable[[IFile], None]
"""Is given each open file once: it closes it."""
_ALL = "all"
"""In pid, with the number behind it: the lines of all entries."""


def make_anew(queue: ChunkDirectories, change: FileChange, unit: WorkUnit, keep: Keep, barrier: Barrier) -> None:
    """Make the new files. Raises OSError, as all of these."""
    pid = queue.of(PID)
    files = {**change.files, _ALL: change.all_lines} if change.all_lines else change.files
    for name, data in files.items():
        text = f"{name}.{change.known.number}"
        try:
            pid.unlink(text)
        except FileNotFoundError:
            pass
        file = unit.do(partial(pid.create, text), partial(pid.unlink, text))
        keep(file)
        file.write_at(0, (data,))
        barrier.add(file)


def put_first(queue: ChunkDirectories, change: FileChange, barrier: Barrier) -> None:
    """The new file that has the lines of all entries takes the place of the first one."""
    for name in list(change.files)[:1]:
        _put(queue, change, _ALL if change.all_lines else name, name, barrier)


def put_others(queue: ChunkDirectories, change: FileChange, barrier: Barrier) -> None:
    """The others take theirs."""
    for name in list(change.files)[1:]:
        _put(queue, change, name, name, barrier)


def drop_old(queue: ChunkDirectories, change: FileChange, barrier: Barrier) -> None:
    """No line is in a file any more but in its own."""
    if change.all_lines:
        first = next(iter(change.files))
        _put(queue, change, first, first, barrier)
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


def _put(queue: ChunkDirectories, change: FileChange, made: str, name: str, barrier: Barrier) -> None:
    number = change.known.number
    queue.disk.rename(f"{queue.root}/{PID}/{made}.{number}", queue.path_of(name, number))
    barrier.add_directory(name, number)
    barrier.add_directory(PID)
