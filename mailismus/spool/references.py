"""Reference cache: the number of live entries of each message with several recipients, in bounded memory (pure).

It tells when the bytes of a message may be released. A count is exact or missing. A message is *unsure* if its count did not
fit, overflowed or can't be trusted; then a reference scan over all lines of the queue decides. A message with one recipient
needs no count: its line says 1 of 1.

*Rules*:
- Bytes are released when an exact count reaches 0. They are also released after a complete scan that began after the
  message's last settle and saw no live line of it, if the message got no new line meanwhile.
- A count is exact only if it began with the message's first line. So an id that was ever left out is never counted again: a
  count of its remaining lines would reach 0 early.
- Entries found at start are counted by the first scan. Entries that are settled or moved while it runs may be counted or
  not, and become unsure.
- Too high a count keeps bytes for ever, too low a count loses mail: in doubt the bytes are kept.

*Not here*: names and bytes (`spool.message_file`), reading lines, when to scan, durability.
"""

from __future__ import annotations

import enum

from mailismus.mail.ids import SpoolId
from mailismus.spool.idtable import MAX_COUNT, IdTable
from mailismus.spool.unsure import MAX_UNSURE, UnsureIds

_UNSURE = MAX_COUNT
"""The count of an id whose count is unknown. Counts below it are exact; larger ones become it."""


_SEVERAL = 2


class Verdict(enum.Enum):
    """Whether the bytes of a message may be released."""

    RELEASE = "no live entry is left"
    KEEP = "live entries are left"
    UNSURE = "unknown; the next reference scan decides"


class ReferenceCache:
    """Counts of live entries by message, for one queue. Not for several threads."""

    def __init__(self, max_ids: int, first_new: SpoolId, max_unsure: int = MAX_UNSURE) -> None:
        """`max_ids`: limit of messages that have a count (0: none). `first_new`: the lowest spool id that this start of the
        queue may assign. A message with a lower id was found at start, and is unsure until it is counted."""
        self._max_ids = max_ids
        self._first_new = first_new
        self._found = IdTable()
        self._new = IdTable()
        self._left_out_to = -1
        """New ids up to this one may have been left out."""
        self._scan: ScanCount | None = None
        self.unsure = UnsureIds(max_unsure)
        self.is_complete = False
        """The messages found at start have been counted, or are known to need a scan each time."""
        self.scans = 0
        """Complete scans so far."""

    def __len__(self) -> int:
        """Number of ids held; never more than `max_ids`."""
        return len(self._found) + len(self._new)

    @property
    def size_bytes(self) -> int:
        """Memory of the counts."""
        return self._found.size_bytes + self._new.size_bytes

    @property
    def needs_scan(self) -> bool:
        """Whether a message waits that only a scan can decide about."""
        return not self.is_complete or self.unsure.is_waiting

    @property
    def scan(self) -> ScanCount | None:
        """The scan that runs."""
        return self._scan

    def add(self, spool_id: SpoolId, count: int) -> None:
        """Add live entries of a message: all entries of a new message at once, when they are durable."""
        if count < 1:
            raise ValueError(f"{count} live entries more")
        if self._scan is not None:
            self._scan.count_line(spool_id, _SEVERAL)
        if spool_id < self._first_new:
            if held := self._found.get(spool_id):
                self._found.put(spool_id, min(held + count, _UNSURE))
        elif held := self._new.get(spool_id):
            self._new.put(spool_id, min(held + count, _UNSURE))
        elif spool_id > self._left_out_to:
            if count < _UNSURE and self._has_room():
                self._new.put(spool_id, count)
            else:
                self._left_out_to = spool_id

    def drop(self, spool_id: SpoolId, count: int = 1) -> Verdict:
        """Subtract live entries, when their settles are durable.

        UNSURE: the message waits in `unsure` for the next scan (if there was room). RELEASE: it is forgotten here.
        """
        if count < 1:
            raise ValueError(f"{count} live entries less")
        if spool_id >= self._first_new:
            table = self._new
        elif self.is_complete:
            table = self._found
        else:
            return self._not_known(spool_id)
        held = table.get(spool_id)
        if held == 0 or held == _UNSURE:
            return self._not_known(spool_id)
        if held > count:
            table.put(spool_id, held - count)
            return Verdict.KEEP
        if held == count:
            table.remove(spool_id)
            self.unsure.discard(spool_id)
            return Verdict.RELEASE
        table.put(spool_id, _UNSURE)
        return self._not_known(spool_id)

    def note_drop(self, spool_id: SpoolId) -> bool:
        """Subtract one live entry of a message whose bytes are not released by this count. True: it was surely the last one.
        A message without a count does not become unsure."""
        if spool_id >= self._first_new or self.is_complete:
            table = self._new if spool_id >= self._first_new else self._found
            if 0 < table.get(spool_id) < _UNSURE:
                return self.drop(spool_id) is Verdict.RELEASE
        if self._scan is not None and self._scan.is_counting:
            self._distrust(spool_id)
        return False

    def doubt(self, spool_id: SpoolId) -> None:
        """Distrust a message's count: an entry with a durable settle is over. The next scan decides."""
        table = self._new if spool_id >= self._first_new else self._found
        if table.get(spool_id):
            table.put(spool_id, _UNSURE)
        self._not_known(spool_id)

    def forget(self, spool_id: SpoolId) -> None:
        """Forget a message: its bytes are gone, or its commit failed. It is unsure if it is met again."""
        self.unsure.discard(spool_id)
        if spool_id >= self._first_new:
            self._new.remove(spool_id)
            self._left_out_to = max(self._left_out_to, spool_id)
        elif self._scan is not None and self._scan.is_counting:
            self._distrust(spool_id)
        else:
            self._found.remove(spool_id)

    def complete(self) -> None:
        """Mark the messages found at start as counted, for a queue that was found empty. Otherwise the end of the first scan
        does so. A message that was not counted stays unsure."""
        if self._scan is not None and self._scan.is_counting:
            raise ValueError("the reference scan that counts is not over")
        self.is_complete = True

    def begin_scan(self) -> ScanCount:
        """Begin a reference scan; the first one counts too. Raises ValueError while another one runs."""
        if self._scan is not None:
            raise ValueError("a reference scan runs already")
        self._scan = ScanCount(self)
        return self._scan

    def _not_known(self, spool_id: SpoolId) -> Verdict:
        self.unsure.add(spool_id)
        if self._scan is not None and self._scan.is_counting:
            self._distrust(spool_id)
        return Verdict.UNSURE

    def _has_room(self) -> bool:
        return not self._max_ids or len(self._found) + len(self._new) < self._max_ids

    def _count_found(self, spool_id: SpoolId) -> None:
        """Count a live line that the first scan saw."""
        if spool_id >= self._first_new:
            return
        held = self._found.get(spool_id)
        if held:
            if held < _UNSURE:
                self._found.put(spool_id, held + 1)
        elif self._admit_found():
            self._found.put(spool_id, 1)

    def _distrust(self, spool_id: SpoolId) -> None:
        """Make a message unsure whose lines the first scan may miscount."""
        if spool_id < self._first_new and (self._found.get(spool_id) or self._admit_found()):
            self._found.put(spool_id, _UNSURE)

    def _admit_found(self) -> bool:
        """Whether a further id may enter the table of those found at start; never again after one was left out."""
        assert self._scan is not None
        if not self._scan.left_out and not self._has_room():
            self._scan.left_out = True
        return not self._scan.left_out

    def _end_scan(self, scan: ScanCount) -> list[SpoolId]:
        self._close(scan)
        self.is_complete = True
        self.scans += 1
        released = []
        for spool_id in self.unsure.answered():
            table = self._found if spool_id < self._first_new else self._new
            held = table.get(spool_id)
            if held == _UNSURE:
                table.remove(spool_id)
            if held == 0 or held == _UNSURE:
                released.append(spool_id)
        return released

    def _abandon_scan(self, scan: ScanCount) -> None:
        self._close(scan)
        self.unsure.unanswered()
        if scan.is_counting:
            self._found = IdTable()

    def _close(self, scan: ScanCount) -> None:
        if self._scan is not scan:
            raise ValueError("the reference scan is over")
        self._scan = None


class ScanCount:
    """Counts of one reference scan: it reads every line of the queue, in memtable and clusters, while the queue works.

    The caller guarantees: every line that is live at `begin_scan`, and neither settled nor moved before `end`, is reported
    by `saw_line` exactly once. A line that is moved or replaced (retried, bounced, flushed by a checkpoint) is reported by
    `count_line`, at the latest when the scan can miss the old line. A line with a durable settle whose state byte is not set
    yet is not reported as live.
    """

    __slots__ = ("_asked", "_cache", "is_counting", "left_out")

    def __init__(self, cache: ReferenceCache) -> None:
        self._cache = cache
        self._asked = cache.unsure.ask()
        self.is_counting = not cache.is_complete
        """This scan counts the messages found at start: it is the first that completes."""
        self.left_out = False
        """It found more messages than fit."""

    def saw_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """Report a live line, which says that its message came with this many recipients."""
        self._asked.discard(spool_id)
        if recipient_count > 1 and self.is_counting:
            self._cache._count_found(spool_id)

    def count_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """Report a new line while this scan runs: its message is unsure until the next scan. (`add` does so itself.)"""
        self._cache.unsure.ask_again(spool_id)
        if recipient_count > 1 and self.is_counting:
            self._cache._distrust(spool_id)

    def end(self) -> list[SpoolId]:
        """End a complete scan. Return the messages whose bytes may be released, and forget them. Raises ValueError when
        repeated."""
        return self._cache._end_scan(self)

    def abandon(self) -> None:
        """Discard a scan that could not read every line: it decides nothing. Raises ValueError when it is over."""
        self._cache._abandon_scan(self)
