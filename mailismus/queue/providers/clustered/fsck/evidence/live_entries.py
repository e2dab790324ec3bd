"""Live entries as flat arrays, by silo: 28 bytes an entry, so that a million fit into some 30 MB.

An entry is identified by its message and number; its line is found by source (a cluster, or the journal) and offset.
`messages` brings together, silo by silo, the lines of one entry and the entries of one message.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.spool.silo import SILO_COUNT

UNKNOWN_SIZE = 0xFFFF_FFFF
"""Placeholder for a size that is not known, or too large for the array."""


@attrs.define(eq=False)
class EntrySource:
    """A place of live lines. `rank`: of two lines of one entry the one of the higher rank is the newer one."""

    path: str
    rank: tuple[int, int]
    area: Area | None = None
    """Of a cluster's lines, as a server reads them."""
    cluster: ClusterId | None = None
    """None: no server reads a cluster here, so no place names a line of it."""
    right_area: Area | None = None
    """Where its lines belong, if that is another area."""
    end: int | None = None
    """Bytes of it that count; None: all."""
    is_to_move: bool = False
    """Its live lines are to be rewritten elsewhere."""
    is_doubtful: bool = False
    """It may not count: an entry of it without a message is taken for settled."""
    has_content: bool = False
    """It is the journal, and holds the messages too."""
    is_journal: bool = False
    """It is the memtable: the lines are in memory."""
    history: JournalHistory | None = None
    """The journal, where it alone still holds the lines; their offsets are places of this history."""


@attrs.frozen
class LiveEntry:
    """A live line."""

    queue_id: QueueId
    source: EntrySource
    offset: int
    size_bytes: int | None
    """Bytes of content by the line; None: too large for the array."""
    was_done: bool
    """Its state byte is neither live nor done, and one bit away from done."""


class LiveEntries:
    """All live lines found."""

    def __init__(self) -> None:
        self.sources: list[EntrySource] = []
        self._ids = [array("Q") for _ in range(SILO_COUNT)]
        self._numbers = [array("I") for _ in range(SILO_COUNT)]
        self._sources = [array("I") for _ in range(SILO_COUNT)]
        self._offsets = [array("Q") for _ in range(SILO_COUNT)]
        self._sizes = [array("I") for _ in range(SILO_COUNT)]

    def add_source(self, source: EntrySource) -> int:
        """Add a source; returns its index, for `add`."""
        self.sources.append(source)
        return len(self.sources) - 1

    def add(self, source: int, spool_id: SpoolId, number: int, offset: int, size_bytes: int, *, was_done: bool) -> None:
        """Add a live line."""
        silo = spool_id % SILO_COUNT
        self._ids[silo].append(spool_id)
        self._numbers[silo].append(number)
        self._sources[silo].append(source << 1 | was_done)
        self._offsets[silo].append(offset)
        self._sizes[silo].append(min(size_bytes, UNKNOWN_SIZE))

    def messages(self, silo: int) -> Iterator[tuple[SpoolId, list[list[LiveEntry]]]]:
        """The messages of a silo with their entries, each with its lines, newest first; in the order of ids and numbers."""
        ids, numbers = self._ids[silo], self._numbers[silo]
        order = sorted(range(len(ids)), key=lambda at: (ids[at], numbers[at]))
        entries: list[list[LiveEntry]] = []
        lines: list[LiveEntry] = []
        for at in order:
            line = self._line(silo, at)
            if lines and lines[0].queue_id != line.queue_id:
                entries.append(_newest_first(lines))
                lines = []
            if entries and entries[0][0].queue_id.spool_id != line.queue_id.spool_id:
                yield entries[0][0].queue_id.spool_id, entries
                entries = []
            lines.append(line)
        if lines:
            entries.append(_newest_first(lines))
        if entries:
            yield entries[0][0].queue_id.spool_id, entries

    def _line(self, silo: int, at: int) -> LiveEntry:
        source, size = self._sources[silo][at], self._sizes[silo][at]
        return LiveEntry(
            QueueId(SpoolId(self._ids[silo][at]), self._numbers[silo][at]),
            self.sources[source >> 1],
            self._offsets[silo][at],
            None if size == UNKNOWN_SIZE else size,
            bool(source & 1),
        )


def _newest_first(lines: list[LiveEntry]) -> list[LiveEntry]:
    return sorted(lines, key=lambda line: (line.source.rank, line.offset), reverse=True)
