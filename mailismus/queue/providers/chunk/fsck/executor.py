"""Executor: executes the actions of a repair of a queue of chunks, each durable when it returns and safe to be interrupted.

*Rules*: bytes are copied to `corrupt/` before they are changed. Files of a message get another number by links: all of them
are there under the new number, durably, before those of the old one go, and what tells the state goes first.
"""

from __future__ import annotations

import os

import attrs

from mailismus.disk.interface import IDisk, close_read
from mailismus.queue.fsck.files import LOST_REPLY, RepairFiles
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.format.files import format_info, read_lines
from mailismus.queue.providers.chunk.format.line import format_chunk_lines
from mailismus.queue.providers.chunk.format.version import BOUNCE, INFO, INTD, LOCAL, MESS, PID, REMOTE, SPLIT_FILE, TODO
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.recovery.directories import write_split
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

_NO_LINES = "\0"
"""No name ends so: of no file single lines are set aside."""

LIMBO = 1 << 62
"""Added to a number, it is that of no inode: a message waits there until its new number is free."""

_COMMITS = (TODO, INFO)
_REST = (INTD, LOCAL, REMOTE, BOUNCE)


class ChunkRepairExecutor(RepairFiles):
    """Executes the actions of one repair. The lock of the queue is held."""

    def __init__(self, disk: IDisk, queue_path: str, now: float) -> None:
        """`now`: UTC seconds."""
        super().__init__(disk, queue_path, queue_path, _NO_LINES)
        self._disk, self._root, self._now = disk, queue_path, now

    def write_split(self, split: int) -> None:
        """Say how many parts there are."""
        path = os.path.join(self._root, SPLIT_FILE)
        if self._disk.exists(path):
            self.quarantine.keep(path)
        write_split(self._disk, self._root, split)

    def write_anew(self, path: str, data: bytes) -> None:
        """Replace a file, after a copy of it."""
        self.quarantine.keep(path)
        self._write(path, data)

    def _write(self, path: str, data: bytes) -> None:
        new_path = os.path.join(self._root, PID, f"repair.{os.path.basename(path)}")
        if self._disk.exists(new_path):
            self._disk.unlink(new_path)
        file = self._disk.create(new_path)
        try:
            file.write_at(0, (data,))
            file.sync()
        finally:
            file.close()
        self.rename(new_path, path)

    def drop_bad_lines(self, path: str) -> None:
        """Write a file anew without the lines of it that do not check. Harmless when repeated."""
        file = self._disk.open(path)
        try:
            data = file.read_at(0, file.size())
        finally:
            close_read(file)
        read = read_lines(data)
        if not read.bad and not read.torn_bytes:
            return
        kept = data[: len(data) - read.torn_bytes]
        for offset, size in reversed(read.bad):
            kept = kept[:offset] + kept[offset + size :]
        self.write_anew(path, kept)

    def move_all(self, queue: ChunkDirectories, number: int) -> None:
        """Move all files of a number to quarantine, the content last."""
        for name in (*_COMMITS, *_REST, MESS):
            path = queue.path_of(name, number)
            if self._disk.exists(path):
                self.quarantine.move(path)

    def stand_in(self, queue: ChunkDirectories, number: int) -> int:
        """Make a content without a byte for a message whose content is gone, and give the message the number of that file,
        which is returned. What reads it finds that it does not check. Harmless when repeated."""
        pid = queue.of(PID)
        made: list[str] = []
        while True:
            text = f"stand-in.{len(made)}"
            if text in pid.names():
                pid.unlink(text)
            file = pid.create(text)
            new = file.describe().inode[1]
            file.close()
            made.append(text)
            names = (*_COMMITS, *_REST, MESS)
            if new == number or not any(self._disk.exists(queue.path_of(name, new)) for name in names):
                break  # the others have the number of a message whose content is gone too, and hold it until then
        pid.link(text, queue.of(MESS, new), str(new))
        queue.of(MESS, new).sync()
        for name in made:
            pid.unlink(name)
        if new != number:
            self.renumber(queue, number, new)
        return new

    def bounce(self, queue: ChunkDirectories, known: KnownChunk, number: int) -> None:
        """Make bounces of all entries of a message whose content is lost, and bring it to S5; those that are bounces already
        stay so. The notes are durable before anything goes that says otherwise. `number`: of its files now."""
        message = known.message
        entries = [
            entry
            if entry.area is Area.BOUNCES
            else attrs.evolve(entry, area=Area.BOUNCES, due_at=self._now, reply=LOST_REPLY, host=b"-")
            for _, entry in sorted(known.entries.items())
        ]
        self.quarantine.keep(queue.path_of(MESS, number))
        is_new = self._disk.exists(queue.path_of(TODO, number))
        if is_new:
            self._unlink_durably(queue, number, (LOCAL, REMOTE))  # they would count when todo is gone
        self._write(queue.path_of(BOUNCE, number), b"".join(format_chunk_lines(message, entries)))
        self._write(queue.path_of(INFO, number), format_info(message))
        self._unlink_durably(queue, number, (TODO,) if is_new else (LOCAL, REMOTE))

    def _unlink_durably(self, queue: ChunkDirectories, number: int, names: tuple[str, ...]) -> None:
        for name in names:
            self._unlink(queue, name, number)
            queue.of(name, number).sync()

    def renumber(self, queue: ChunkDirectories, old: int, new: int) -> None:
        """Give all files of a number another one, which no other message has."""
        steps: tuple[tuple[str, ...], ...] = ((MESS, *_REST), _COMMITS)
        for names in steps:
            touched = [name for name in names if self._link(queue, name, old, new)]
            for name in touched:
                queue.of(name, new).sync()
        steps = (_COMMITS, _REST, (MESS,))
        for names in steps:
            gone = [name for name in names if self._unlink(queue, name, old)]
            for name in gone:
                queue.of(name, old).sync()

    def _link(self, queue: ChunkDirectories, name: str, old: int, new: int) -> bool:
        """Whether there is a file under the new number now. What a repair before this one has linked stays."""
        source, target = queue.of(name, old), queue.of(name, new)
        try:
            source.link(str(old), target, str(new))
        except FileExistsError:
            pass
        except FileNotFoundError:
            return False
        return True

    def _unlink(self, queue: ChunkDirectories, name: str, number: int) -> bool:
        try:
            queue.of(name, number).unlink(str(number))
        except FileNotFoundError:
            return False
        return True
