"""Ownership: how a provider recognises its own directory, asked before a start or a repair changes anything in it.

The mark says it (`queue.files.mark`). A start makes the provider's directories durable before it writes the mark. So where a
mark is damaged and none of the directories is there, the mark is that of another provider.
"""

from __future__ import annotations

import errno
import os

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.mark import MARK as MARK_NAME
from mailismus.queue.files.mark import Mark, conversion_advice, damaged, ensure_mark, read_mark, refuse_other


@attrs.frozen
class Ownership:
    """What the directory of a provider is recognised by. `formats`: those that this version reads; the last one is written.
    `directories`: names in the queue's directory that only this provider makes."""

    name: str
    formats: tuple[int, ...]
    directories: tuple[str, ...]

    def has_directories(self, disk: IDisk, queue_path: str) -> bool:
        """Whether a directory of this provider is there. One is enough: the others may lie on a disk that is not mounted.
        Raises `OSError`."""
        return any(disk.exists(os.path.join(queue_path, name)) for name in self.directories)

    def refuse_foreign(self, disk: IDisk, queue_path: str) -> None:
        """Raise `StartError` where the mark is another provider's (78), of a format that this version does not read (65), or
        damaged (65). Raises `OSError` where it can't be read."""
        try:
            found = read_mark(disk, queue_path)
        except Corrupt as error:
            is_ours = self.has_directories(disk, queue_path)
            raise (damaged(error) if is_ours else self._unknown(queue_path, error.text)) from error
        if found is not None:
            refuse_other(found, self.name, self.formats, queue_path, conversion_advice(self.name))

    def refuse_unknown(self, disk: IDisk, queue_path: str) -> None:
        """Raise `StartError` (65) where the mark is damaged or can't be read, and no directory of this provider is there."""
        try:
            read_mark(disk, queue_path)
        except (Corrupt, OSError) as error:
            if not self.has_directories(disk, queue_path):
                raise self._unknown(queue_path, error.text if isinstance(error, Corrupt) else str(error)) from error

    def mark(self, disk: IDisk, queue_path: str, *, is_known: bool) -> None:
        """Say durably whose queue this is. `is_known`: its files say so too; then a full disk is no reason not to deliver
        what lies there. Raises `StartError`, `OSError`."""
        try:
            ensure_mark(disk, queue_path, Mark(self.name, self.formats[-1]))
        except OSError as error:
            if not is_known or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            from twisted.logger import Logger  # here: a command that only asks a server shall not load Twisted

            Logger().warn(
                "{path} could not be marked as a queue of provider {name}: {error}",
                path=queue_path,
                name=self.name,
                error=error,
            )

    def _unknown(self, queue_path: str, why: str) -> StartError:
        what = f"{os.path.join(queue_path, MARK_NAME)}: {why}, and no directory of a {self.name} queue is beside it"
        text = f"{what}: restore this file from a copy, or write another <rootpath>; nothing was changed"
        return StartError(os.EX_DATAERR, text)
