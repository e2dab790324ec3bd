"""All live envelopes and contents of a stopped log, one after the other, for a conversion (`IQueueSource`).

*Rules*: one batch is in memory at a time, and what a start reads of the working suffix. What does not check is told
(`damage`): nothing is passed over in silence, as a listing may.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import attrs

from mailismus.disk.interface import IDisk
from mailismus.journal.replay import survey
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.newer_formats import refuse_newer_journal
from mailismus.queue.provider import StoredPart
from mailismus.queue.providers.log.format.positions import NAME
from mailismus.queue.providers.log.format.record import ContentPlace
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.recovery.offline import LiveEnvelopes, StoppedLog
from mailismus.queue.providers.log.recovery.opening import deny_copies, note_cut, read_positions
from mailismus.queue.providers.log.recovery.replay import ReplayedLog, load_suffix

_FILE = b"file"


class LogSource:
    """`IQueueSource`. Made by `open_source`."""

    def __init__(self, disk: IDisk, queue_path: str, spool_path: str) -> None:
        """Raises `NewerFormat`, `OSError`."""
        directory = os.path.join(queue_path, LOG)
        positions = read_positions(disk, queue_path)
        is_lost = positions is None and disk.exists(os.path.join(queue_path, NAME))
        journal = survey(disk, directory)
        try:
            deny_copies(journal)
            note_cut(journal)
            if positions is not None:
                journal.know_horizon(positions.suffix - 1)
            replayed = load_suffix(journal)
        finally:
            journal.close()
        self._epoch = replayed.epoch
        self._damage = f"{os.path.join(queue_path, NAME)} does not check" if is_lost else _damage_of(replayed)
        self._found = _Found()
        self._live = LiveEnvelopes(
            disk, replayed, positions, self._found.not_read, self._found.on_bad, self._found.on_skipped
        )
        self._stopped = StoppedLog(self._live, disk, spool_path)

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def damage(self) -> str:
        return self._damage or self._found.damage

    def parts(self) -> Iterator[StoredPart]:
        for one in self._live.all():
            word = _FILE if one.content is None else b"%d:%d:%08x:%d" % (*one.content, one.message.stored_bytes)
            yield StoredPart(attrs.evolve(one.message, entries=list(one.entries)), word)

    def close(self) -> None:
        """Nothing stays open."""

    def content(self, spool_id: SpoolId, content_at: bytes) -> Iterator[bytes]:
        place, size_bytes = None, 0
        if content_at != _FILE:
            word, _, size = content_at.rpartition(b":")
            segment, offset, checksum = word.split(b":")
            place, size_bytes = ContentPlace(int(segment), int(offset), int(checksum, 16)), int(size)
        return self._stopped.content_of(spool_id, place, size_bytes)


class _Found:
    """What did not check, or could not be read; the first of it."""

    def __init__(self) -> None:
        self.damage = ""

    def not_read(self, path: str, error: OSError) -> None:
        self.damage = self.damage or f"{path} can't be read: {error.strerror or error}"

    def on_bad(self, path: str, bad: Sequence[bytes]) -> None:
        self.damage = self.damage or f"a record of {path} does not check"

    def on_skipped(self, path: str, skipped: Sequence[tuple[int, int]]) -> None:
        self.damage = self.damage or f"{path} does not check at {skipped[0][0]}"


def _damage_of(replayed: ReplayedLog) -> str:
    for damage in replayed.journal.damages:
        return f"{damage.path} does not check at {damage.offset}"
    return "a record of the log does not check" if replayed.bad_records else ""


def open_source(disk: IDisk, queue_path: str, spool_path: str) -> LogSource:
    """The queue in these directories. Raises `NewerFormat`, `OSError`: FileNotFoundError where there is none."""
    if not disk.exists(os.path.join(queue_path, LOG)):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    refuse_newer_journal(disk, os.path.join(queue_path, LOG))
    return LogSource(disk, queue_path, spool_path)
