"""Opening a queue: what must be known before mail is taken. Blocks, before the reactor runs.

    lock -> mark -> barrier -> names in mess -> S1 goes -> epoch

Messages, and all else that a crash left, are read while the server works (`recovery.scan`).

*Rules*: what a killed process left in the system's memory is durable before anything is made of it. S1 goes where its lock
can be had. A queue whose files were copied or restored is refused. A start that is stopped anywhere begins anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.presence import Presence
from mailismus.errors import StartError
from mailismus.queue.files.directories import LOCK, lock_roots, make_directories
from mailismus.queue.files.refusals import errors_refuse_start
from mailismus.queue.providers.chunk.format.version import IDS, MESS, OWNERSHIP, parse_number
from mailismus.queue.providers.chunk.recovery.abandoned import remove_names_in_pid
from mailismus.queue.providers.chunk.recovery.directories import check_directories, ensure_directories
from mailismus.queue.providers.chunk.recovery.found import find_chunks, find_names
from mailismus.queue.providers.chunk.recovery.scan import ChunkScan
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories, EndsDirectories
from mailismus.queue.providers.chunk.write.epochs import take_epoch, taken_epochs


@attrs.frozen
class OpenedChunks:
    """An open queue, and all that a provider needs to go on."""

    directories: ChunkDirectories
    ends_directories: EndsDirectories
    """For the thread that makes ends durable."""
    scan: ChunkScan
    """What is to be read."""
    contents: int
    """Names in mess when it was opened: so many messages at most are to be read."""
    epoch: int
    presence: Presence
    """The directories and the lock, which must keep their names."""
    _locks: Sequence[ILock]

    def release(self) -> None:
        """Give up the locks and the open directories."""
        self.ends_directories.close()
        self.directories.close()
        for lock in self._locks:
            lock.release()


def open_chunks(settings: QueueSettings, disk: IDisk, split: int) -> OpenedChunks:
    """Open it. Raises `StartError` with what an administrator must do."""
    with errors_refuse_start():
        root = settings.rootpath
        check_directories(disk, root)
        OWNERSHIP.refuse_foreign(disk, root)
        make_directories(disk, root, ())
        return open_locked(settings, disk, split, lock_roots(disk, (root,)))


def open_locked(settings: QueueSettings, disk: IDisk, split: int, locks: Sequence[ILock]) -> OpenedChunks:
    """Open a queue whose lock is held; on failure it is given up. Raises `StartError`."""
    root = settings.rootpath
    with errors_refuse_start():
        try:
            ensure_directories(disk, root, split)
            OWNERSHIP.mark(disk, root, is_known=True)
            directories = ChunkDirectories(disk, root, split)
        except BaseException:
            for lock in locks:
                lock.release()
            raise
        try:
            return _open(directories, locks)
        except BaseException:
            directories.close()
            for lock in locks:
                lock.release()
            raise


def _open(directories: ChunkDirectories, locks: Sequence[ILock]) -> OpenedChunks:
    directories.disk.sync_file_system(directories.root)
    contents = _refuse_copied(directories)
    remove_names_in_pid(directories)
    ids, above = directories.of(IDS), 0
    if contents and not taken_epochs(ids):  # nothing but the messages tells which ids were given
        found = find_chunks(directories, find_names(directories))
        above = max((one.known.message.spool_id >> 32 for one in found if one.known is not None), default=0)
    epoch = take_epoch(ids, above)
    presence = directories.presence({os.path.join(directories.root, LOCK): lock for lock in locks})
    scan = ChunkScan(directories, BornNumbers())
    return OpenedChunks(directories, EndsDirectories(directories), scan, contents, epoch, presence, locks)


def _refuse_copied(directories: ChunkDirectories) -> int:
    """Refuse a queue whose names are no inodes: numbers that come would be taken already. Return how many contents it
    holds."""
    contents = 0
    for part, directory in enumerate(directories.all(MESS)):
        for text, inode in directory.inode_numbers().items():
            if text == str(inode) and inode % directories.split == part:  # as all of a sound queue: the first 220 waits
                contents += 1
                continue
            number = parse_number(text)
            if number is None or number % directories.split != part:
                continue
            contents += 1
            if number != inode:
                path = directories.path_of(MESS, number)
                what = f"{path} is not the inode of that number: the queue was copied or restored"
                raise StartError(os.EX_DATAERR, f"{what}; mailismus fsck --repair gives its files their names")
    return contents
