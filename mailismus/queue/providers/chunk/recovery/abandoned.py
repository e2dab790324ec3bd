"""What writers left that do not live any more: S1, S2 and S3, known by the lock on the file. Blocks.

*Rules*: a name goes only while its file's lock is held here: so no writer works on it, and none commits it meanwhile. What
is in todo or info is in the queue, and stays: its writer committed it before it gave the lock up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from mailismus.disk.interface import IDirectory, IFile, close_read
from mailismus.queue.providers.chunk.format.version import INFO, INTD, MESS, PID, TODO
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories


def is_being_written(queue: ChunkDirectories, number: int) -> bool:
    """Whether a writer holds the lock of this message; no, where that can't be found out."""
    try:
        with _locked(queue.of(MESS, number), str(number)) as (is_locked, _):
            return not is_locked
    except OSError:
        return False


def remove_unfinished(queue: ChunkDirectories, number: int, born: BornNumbers) -> bool:
    """Remove a message in S2 or S3, unless its writer lives or has committed it, or its number is among those `born`. Return
    whether it is gone. Raises OSError."""
    with _locked(queue.of(MESS, number), str(number)) as (is_locked, file):
        if not is_locked or _is_queued(queue, number):
            return False
        # One that was adopted, and is over since, was born before it was over. Where no file has this number, the next file
        # of this process may get it: not while the numbers are held.
        with born.held():
            if number in born:
                return False
            _unlink(queue.of(INTD), str(number))
            if file is not None:  # else another process may have made it meanwhile
                _unlink(queue.of(MESS, number), str(number))
        return True


def remove_names_in_pid(queue: ChunkDirectories) -> None:
    """Remove the names in pid whose writers do not live, and these alone: S1 is gone then. Raises OSError."""
    pid = queue.of(PID)
    for name in pid.names():
        with _locked(pid, name) as (is_locked, _):
            if is_locked:
                _unlink(pid, name)


def remove_begun(queue: ChunkDirectories, kept: Collection[int]) -> int:
    """Remove names in pid whose writers do not live, and what else they left: `kept` are numbers of which no name but that
    in pid may go. Return how many messages were not committed. Raises OSError."""
    pid, count = queue.of(PID), 0
    for name in pid.names():
        with _locked(pid, name) as (is_locked, file):
            if not is_locked or file is None:
                continue
            number = file.describe().inode[1]
            if number not in kept and not _is_queued(queue, number):
                _unlink(queue.of(INTD), str(number))
                _unlink(queue.of(MESS, number), str(number))
                count += 1
            _unlink(pid, name)
    return count


def _is_queued(queue: ChunkDirectories, number: int) -> bool:
    return any(queue.disk.exists(queue.path_of(name, number)) for name in (TODO, INFO))


def _unlink(directory: IDirectory, name: str) -> None:
    try:
        directory.unlink(name)
    except FileNotFoundError:
        pass


@contextmanager
def _locked(directory: IDirectory, name: str) -> Iterator[tuple[bool, IFile | None]]:
    """Whether nobody else holds the lock of this file, which is held meanwhile; also where there is no such file (None)."""
    try:
        file = directory.open(name)
    except FileNotFoundError:
        yield True, None
        return
    try:
        yield file.lock(), file
    finally:
        close_read(file)
