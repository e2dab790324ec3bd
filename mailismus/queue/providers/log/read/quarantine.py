"""Quarantine of damaged bytes of the log: they are copied there, and named. Of a doubtful end the log says so, and the bytes
stay (`damage`).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

from twisted.logger import Logger

from mailismus.disk.interface import IDisk, IFile
from mailismus.disk.worker import IWorker
from mailismus.spool.quarantine import keep_corrupt


class LogDamage:
    """Quarantine of one queue. `corrupt_path`: its directory."""

    _log = Logger()

    def __init__(self, disk: IDisk, corrupt_path: str, worker: IWorker) -> None:
        self._disk, self._corrupt_path, self._worker = disk, corrupt_path, worker
        self._doubtful: set[str] = set()

    async def keep(self, path: str, file: IFile, damages: Sequence[tuple[int, int]], bad: Sequence[bytes]) -> None:
        """Copy damages of this segment, and records and lines that do not check, unless they are there already."""
        if not damages and not bad:
            return
        try:
            await self._worker.run(lambda: keep_damages(self._disk, self._corrupt_path, path, file, damages, bad))
        except OSError as error:
            self._log.error(
                "The log is damaged: {path}; what does not check can't be set aside: {error}", path=path, error=error
            )

    def doubt(self, path: str) -> None:
        """Tell, once, that a segment may have lost its last batch."""
        if path not in self._doubtful:
            self._doubtful.add(path)
            self._log.warn("The last batch of {path} is not whole: it was never answered, or is damaged since.", path=path)


def keep_damages(
    disk: IDisk, corrupt_path: str, path: str, file: IFile, damages: Sequence[tuple[int, int]], bad: Sequence[bytes]
) -> None:
    """Copy what does not check, and tell of what is new. Durable afterwards. Blocks. Raises OSError."""
    log = Logger()
    name = os.path.basename(path)
    for begin, end in damages:
        note = b"from %b at %d\n" % (os.fsencode(path), begin)
        data = file.read_at(begin, end - begin).rstrip(b"\0")
        if keep_corrupt(disk, corrupt_path, f"{name}-{begin}-{zlib.crc32(data):08x}", note, data):
            log.error(
                "The log is damaged: {path} at {offset}, {size} bytes; set aside in {corrupt}, the rest goes on.",
                path=path,
                offset=begin,
                size=end - begin,
                corrupt=corrupt_path,
            )
    for one in bad:
        note = b"from a record in %b\n" % os.fsencode(path)
        if keep_corrupt(disk, corrupt_path, f"record-{zlib.crc32(one):08x}", note, one):
            log.error(
                "A record of the log in {path} does not check; set aside in {corrupt}.", path=path, corrupt=corrupt_path
            )
