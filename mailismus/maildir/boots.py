"""The counter of boots, and of the writes since a boot: what stands behind `X` and `#` in names. Blocks.

Linux has no such numbers, but an id of each boot. So a file of ours, `.boots` in `userpath`, says: the number of the last
boot, the first write that no process has taken, and the id of that boot.

    7 20000 6f8a0d0e-3c5e-4b0e-8a53-0b0d5f5d9d1c

*Rules*: a process takes `STEP` numbers at once, and uses none before the file that says so is durable: what a crash leaves
unused is lost, and no number is given twice. Another boot id raises the number of boots. The file is replaced whole, under
a lock, so several processes may count. A file that makes no sense is an error, never a beginning from 0.
"""

from __future__ import annotations

import errno
import posixpath
import re
from threading import Lock

from mailismus.disk.interface import IDisk, close_read
from mailismus.regular_file import read_regular

BOOT_ID = "/proc/sys/kernel/random/boot_id"
NAME = ".boots"
STEP = 10_000
_LINE = re.compile(rb"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f-]{1,64})\n")
_MAX_BYTES = 200


def read_boot_id() -> bytes:
    """Return the id of this boot. Raises OSError."""
    return read_regular(BOOT_ID, _MAX_BYTES).data.strip()


class BootSequence:
    """The counter of one directory. Safe from several threads and processes. `boot_id`: of this boot."""

    def __init__(self, disk: IDisk, directory: str, boot_id: bytes) -> None:
        self._disk, self._directory, self._boot_id = disk, directory, boot_id
        self._lock = Lock()
        self._boots = self._next = self._end = 0

    def next(self) -> tuple[int, int]:
        """Return the number of boots, from 1, and that of this write, from 0. Raises OSError."""
        with self._lock:
            if self._next == self._end:
                self._take()
            number = self._next
            self._next += 1
            return self._boots, number

    def _take(self) -> None:
        """Take the next numbers, durably."""
        disk, path = self._disk, posixpath.join(self._directory, NAME)
        lock = disk.lock(f"{path}.lock")
        if lock is None:
            raise OSError(errno.EAGAIN, "another process counts", path)
        try:
            boots, first, boot_id = self._read(path)
            if boot_id != self._boot_id:
                boots, first = boots + 1, 0
            new = f"{path}.new"
            if disk.exists(new):
                disk.unlink(new)
            file = disk.create(new)
            try:
                file.write_at(0, (b"%d %d %b\n" % (boots, first + STEP, self._boot_id),))
                file.sync()
            finally:
                file.close()
            disk.rename(new, path)
            disk.sync_directory(self._directory)
        finally:
            lock.release()
        self._boots, self._next, self._end = boots, first, first + STEP

    def _read(self, path: str) -> tuple[int, int, bytes]:
        if not self._disk.exists(path):
            return 0, 0, b""
        file = self._disk.open(path)
        try:
            found = _LINE.fullmatch(file.read_at(0, _MAX_BYTES))
        finally:
            close_read(file)
        if found is None:
            raise OSError(
                errno.EIO, "the counter of boots makes no sense; remove it if no other server uses these maildirs", path
            )
        return int(found[1]), int(found[2]), found[3]
