"""Changes of files by a repair, each durable when it returns and safe to be interrupted.

*Rules*: bytes that are to be changed are copied to `corrupt/` first, durably. What is written is synced before what it
replaces is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.fsck.quarantine import Quarantine
from mailismus.spool.message_file import MessageFileWriter

LOST_REPLY = Reply(554, b"5.3.0", b"the message was damaged on our disk and can't be delivered")
"""The reply in the bounces of a message whose bytes are lost."""


class RepairFiles:
    """Files of one queue under repair. `line_files`: as of `Quarantine`."""

    def __init__(self, disk: IDisk, queue_path: str, spool_path: str, line_files: str) -> None:
        self._disk = disk
        self._spool_path = spool_path
        self.quarantine = Quarantine(disk, queue_path, spool_path, line_files)
        self._to_write: list[tuple[str, int, bytes]] = []
        self._to_remove: list[str] = []
        self._to_move: list[str] = []

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite bytes in place, durably."""
        file = self._disk.open(path)
        try:
            file.write_at(offset, [data])
            file.sync()
        finally:
            file.close()

    def cut(self, path: str, size_bytes: int) -> None:
        """Truncate the file, durably."""
        file = self._disk.open(path)
        try:
            file.truncate(size_bytes)
            file.sync()
        finally:
            file.close()

    def unlink(self, path: str) -> None:
        """Unlink the name, durably. Harmless when it is gone."""
        with suppress(FileNotFoundError):
            self._disk.unlink(path)
        self._disk.sync_directory(os.path.dirname(path))

    def link(self, path: str, new_path: str) -> None:
        """Link the file under another name, durably."""
        self._disk.link(path, new_path)
        self._disk.sync_directory(os.path.dirname(new_path))

    def rename(self, path: str, new_path: str) -> None:
        """Rename the file, durably; missing directories are made."""
        directory = os.path.dirname(new_path)
        self._ensure(directory)
        self._disk.rename(path, new_path)
        self._disk.sync_directory(directory)
        self._disk.sync_directory(os.path.dirname(path))

    def _ensure(self, directory: str) -> None:
        if not self._disk.exists(directory):
            self._disk.make_directory(directory)
        self._disk.sync_directory(os.path.dirname(directory))  # always: its maker may have been killed before

    def make_private(self, path: str, owner: int) -> None:
        """Make the name accessible to its owner alone."""
        self._disk.make_private(path, owner)

    def write_message(self, spool_id: SpoolId, pieces: Iterator[bytes]) -> None:
        """Write a message file under its shared name, durably."""
        writer = MessageFileWriter(self._disk, self._spool_path, spool_id)
        self._ensure(os.path.dirname(writer.path))
        try:
            for piece in pieces:
                writer.append([piece])
            writer.finish()
        except OSError:
            writer.discard()
            raise

    def keep_if_readable(self, path: str) -> None:
        """Copy a file to quarantine before it is removed; one that can't be read is moved there as it is."""
        try:
            self.quarantine.keep(path)
        except OSError:
            self.quarantine.move(path)

    def write_at_end(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite bytes in place, durably, when all records of the repair are durable. Until then a start, or a repeated
        repair, must find what this one found."""
        self._to_write.append((path, offset, data))

    def remove_at_end(self, path: str) -> None:
        """Unlink the name when all records of the repair are durable. The file has been copied."""
        self._to_remove.append(path)

    def move_at_end(self, path: str) -> None:
        """Move the file to `corrupt/` when all records of the repair are durable: until then a repeated repair must find it
        here."""
        self._to_move.append(path)

    @property
    def has_more_at_end(self) -> bool:
        """Whether something was put off to the end."""
        return bool(self._to_write or self._to_move or self._to_remove)

    def finish_files(self) -> None:
        """Write, move and unlink what was put off to the end: all records of the repair are durable."""
        for patch in self._to_write:
            self.write(*patch)
        self._to_write = []
        for path in self._to_move:
            self.quarantine.move(path)
        self._to_move = []
        for path in self._to_remove:
            self.unlink(path)
        self._to_remove = []
