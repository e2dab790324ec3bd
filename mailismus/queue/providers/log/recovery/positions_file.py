"""The file of positions: written durably, twice, one copy after the other."""

from __future__ import annotations

import os

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.refusals import is_full
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, NEW_NAME, Positions, decode_positions


class PositionsFile:
    """The file of positions. Blocks. It is open only while it is written."""

    def __init__(self, disk: IDisk, root: str) -> None:
        self._disk, self._root = disk, root
        self._is_trusted = False
        """It is there, and no write or sync of it has failed in this run."""

    def write(self, positions: Positions) -> None:
        """Write them, durably. Raises OSError; then the next write makes a new file, or, on a full disk, writes again what
        the file holds before anything else."""
        block = positions.encode()
        is_trusted, self._is_trusted = self._is_trusted, False
        if is_trusted:
            self._write_over(block)
        elif self._make(block):
            self._disk.rename(os.path.join(self._root, NEW_NAME), os.path.join(self._root, NAME))
            self._disk.sync_directory(self._root)
        else:
            self._write_over(block, is_sure=False)
        self._is_trusted = True

    def _write_over(self, block: bytes, *, is_sure: bool = True) -> None:
        """Write both blocks of the file. `is_sure`: what it seems to hold is durable."""
        file = self._disk.open(os.path.join(self._root, NAME))
        try:
            if not is_sure:  # the first block may be damaged in a moment: the second one must hold positions until then
                first, second = file.read_at(0, BLOCK), file.read_at(BLOCK, BLOCK)
                file.write_at(BLOCK, [second if decode_positions(second) is not None else first])
                file.sync()
            for offset in (0, BLOCK):
                file.write_at(offset, [block])
                file.sync()
        finally:
            close_read(file)

    def _make(self, block: bytes) -> bool:
        """Make a new file, which is to replace whatever file there is. Return False, without one, where that can't be,
        because the disk is full. Raises OSError."""
        new = os.path.join(self._root, NEW_NAME)
        if self._disk.exists(new):
            self._disk.unlink(new)
        try:
            file = self._disk.create(new)
            try:
                file.write_at(0, [block, block])
                file.sync()
            finally:
                close_read(file)
        except OSError as error:
            if not is_full(error) or not self._disk.exists(os.path.join(self._root, NAME)):
                raise
            if self._disk.exists(new):
                self._disk.unlink(new)
            return False
        return True
