"""Reference scan: reads every line of the queue, beside all other work, to learn which messages are referenced.

The first scan after a start counts references and finds stray message files. Later scans resolve the messages of which the
reference cache is unsure. A scan that can't read every line is abandoned, and no bytes are removed.

*Not here*: where the lines are: the provider reads them (`ReferenceSource`).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Protocol

from twisted.logger import Logger

from mailismus.mail.ids import SpoolId
from mailismus.spool.references import ReferenceCache, ScanCount
from mailismus.spool.removal import MessageRemoval
from mailismus.spool.silo import SILO_COUNT

_ID_PATTERN = re.compile(rb"[0-9A-F]{16}")
"""In a damaged line: the bytes of such a message stay, for a repair of the line."""
_SEVERAL = 2
"""Stands for the number of recipients of a message of which only the id is known."""

LiveLine = tuple[SpoolId, int, int]
"""A live line: spool id, number of the recipient, number of recipients that the message came with."""


class IScanReport(Protocol):
    """Takes what a provider reads during one scan."""

    @property
    def is_stopped(self) -> bool:
        """Nothing more is wanted."""

    def saw_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """Report a live line of a message that `ReferenceSource.holds`."""

    def saw_lines(self, lines: Iterable[LiveLine]) -> None:
        """Report live lines that were read from a file."""

    def saw_damage(self, data: bytes) -> None:
        """Report bytes that may be those of a live line."""


class ReferenceSource(Protocol):
    """The provider, whose lines refer to message files."""

    async def read_lines(self, report: IScanReport) -> bool:
        """Report every line that is live now, once each; lines with a durable settlement are not live. Return False where
        some can't be read, or when nothing more is wanted."""

    def held(self) -> set[SpoolId]:
        """Ids of the messages whose entries are in memory."""

    def holds(self, spool_id: SpoolId) -> bool:
        """Whether entries of this message are in memory. Called in a worker too."""


class ReferenceScan:
    """Scans, one at a time. `names_recipients`: message files may have a name for each recipient, and the sweep must learn
    which of these live."""

    _log = Logger()

    def __init__(
        self, files: MessageRemoval, references: ReferenceCache, source: ReferenceSource, *, names_recipients: bool
    ) -> None:
        self._files = files
        self._references = references
        self._source = source
        self._names_recipients = names_recipients
        self._is_stopped = False
        self.is_running = False
        self.has_failed = False
        """The last scan could not read every line."""
        self.has_run = False
        """The first scan has ended: live lines are counted, and stray message files are removed or about to be."""
        self._protected: set[SpoolId] = set()
        """Messages that got new lines during a scan: it may have passed the place of those lines before."""
        self.strays = 0
        """Stray message files removed."""

    def stop(self) -> None:
        """End the scan that runs, and the sweep."""
        self._is_stopped = True

    def count_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """Count a new line of this message: it was moved, retried or bounced. Call this before the old line is marked."""
        if self.is_running:
            self._protected.add(spool_id)
        scan = self._references.scan
        if scan is not None:
            scan.count_line(spool_id, recipient_count)

    async def run(self) -> None:
        """Make one scan. Never fails."""
        self.is_running = True
        try:
            await self._run()
        finally:
            self.is_running = False
            self._protected.clear()

    async def _run(self) -> None:
        self.has_failed = False
        is_first = not self.has_run
        scan = self._references.begin_scan()
        report = _Report(self, scan, is_first=is_first, names_recipients=self._names_recipients)
        if not await self._source.read_lines(report):
            self.has_failed = not self._is_stopped
            scan.abandon()
            return
        for spool_id in scan.end():
            self._files.remove(spool_id)
        if is_first:
            self.has_run = True
            await self._sweep(report.ids)

    @property
    def is_stopped(self) -> bool:
        """No further line is wanted."""
        return self._is_stopped

    async def _sweep(self, seen: array[int]) -> None:
        """Remove message files of earlier starts that no line needs."""
        ids = array("Q", sorted(seen))
        held_before = self._source.held()

        def is_needed(spool_id: SpoolId, number: int) -> bool:
            if self._source.holds(spool_id) or spool_id in self._protected or spool_id in held_before:
                return True
            wanted = _key(spool_id, number) if number and self._names_recipients else spool_id
            at = bisect_left(ids, wanted)
            return at < len(ids) and ids[at] == wanted

        for silo in range(SILO_COUNT):
            if self._is_stopped:
                return
            try:
                self.strays += await self._files.sweep(silo, is_needed)
            except OSError as error:
                self._log.warn("Silo {silo} can't be swept: {error}", silo=silo, error=error)
        if self.strays and self._files.is_careful:
            self._log.warn(
                "{count} message files that no line names are moved to {path}, where lines that did not check are.",
                count=self.strays,
                path=self._files.corrupt_path,
            )
        elif self.strays:
            self._log.info("Removed {count} message files that no message needs.", count=self.strays)


class _Report:
    """`IScanReport`. `is_first`: the ids of all lines are kept, for the sweep."""

    def __init__(self, owner: ReferenceScan, scan: ScanCount, *, is_first: bool, names_recipients: bool) -> None:
        self._owner = owner
        self.saw_line = scan.saw_line
        self._is_first = is_first
        self._names_recipients = names_recipients
        self.ids: array[int] = array("Q")
        """Of lines that were read from files, and of names of recipients (`_key`)."""

    @property
    def is_stopped(self) -> bool:
        return self._owner.is_stopped

    def saw_lines(self, lines: Iterable[LiveLine]) -> None:
        ids = self.ids
        last = -1
        for spool_id, number, count in lines:
            if count > 1:
                self.saw_line(spool_id, count)
            if self._is_first:
                if spool_id != last:
                    ids.append(spool_id)
                    last = spool_id
                if count > 1 and self._names_recipients:
                    ids.append(_key(spool_id, number))

    def saw_damage(self, data: bytes) -> None:
        for found in _ID_PATTERN.findall(data):
            self._owner.count_line(SpoolId(int(found, 16)), _SEVERAL)


def _key(spool_id: SpoolId, number: int) -> int:
    """Return 64 bits that stand for a name. If two names share them, one stays longer than needed."""
    return spool_id ^ number << 40
