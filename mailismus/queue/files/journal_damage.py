"""Damage of a journal: the bytes that a replay could not use are copied to quarantine before a start goes on. Blocks."""

from __future__ import annotations

import os
import zlib

from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.journal.load import ReplayedJournal
from mailismus.spool.quarantine import keep_corrupt

_log = Logger()


def quarantine_damage(found: ReplayedJournal, disk: IDisk, corrupt_path: str) -> int:
    """Copy what does not check, as found, with a note of its origin. Return the number of batches and records. Durable
    afterwards. Raises `OSError`."""
    for segment in found.journal.torn:
        _log.warn("The last batch of {path} is not whole: it was never answered, or is damaged since.", path=segment.path)
    damages = found.journal.damages
    for damage in damages:
        _log.error(
            "The journal is damaged: {path} at {offset}, {size} bytes; set aside in {corrupt}, the rest goes on.",
            path=damage.path,
            offset=damage.offset,
            size=damage.size_bytes,
            corrupt=corrupt_path,
        )
        segment = next(s for s in (*found.journal.used, *found.journal.others) if s.path == damage.path)
        note = b"from %b at %d\n" % (os.fsencode(damage.path), damage.offset)
        name = f"{os.path.basename(damage.path)}-{damage.offset}"
        keep_corrupt(disk, corrupt_path, name, note, segment.file.read_at(damage.offset, damage.size_bytes))
    for bad in found.bad_records:
        _log.error("A record of the journal does not check; set aside in {corrupt}.", corrupt=corrupt_path)
        keep_corrupt(disk, corrupt_path, f"record-{zlib.crc32(bad):08x}", b"from a record of the journal\n", bad)
    return len(damages) + len(found.bad_records)
