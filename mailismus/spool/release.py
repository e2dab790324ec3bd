"""Release: removes the bytes of a message in its silo when no entry needs them.

A message with one recipient is removed with its only line. For the others there are two ways, and each finishes the work
that the other left:

- *counting*: a bounded cache of live entries (`spool.references`). Messages that it does not know wait for a scan of all
  lines, many messages at a time.
- *hard links*: the file has a name for each live recipient, removed with that recipient's settlement; the last name frees
  the bytes. If a settlement finds no name of its own, the message was counted by an earlier start: a scan tells.

*Rules*: act on durable settlements, never on pending ones. Bytes that stay too long are found at the next start; bytes that
were removed too early never come back.

*Not here*: lines and indexes of the provider, unlinking (`removal`), names (`silo`).
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.mail.ids import SpoolId
from mailismus.spool.reference_scan import ReferenceScan
from mailismus.spool.references import ReferenceCache, Verdict
from mailismus.spool.removal import MessageRemoval

SCAN_DELAY_S = 3.0
"""Seconds between the first message that needs a scan and the scan: more messages may come."""

RESCAN_S = 60.0
"""Seconds before the next scan after one that could not read every cluster."""


class CountedMessage(Protocol):
    """A message, as far as its release depends on it."""

    @property
    def spool_id(self) -> SpoolId: ...

    @property
    def recipient_count(self) -> int:
        """Number of recipients that it came with."""


class Release:
    """Message files of one queue. `has_links`: a file has a name for each live recipient."""

    _log = Logger()

    def __init__(
        self,
        files: MessageRemoval,
        references: ReferenceCache,
        scan: ReferenceScan,
        reactor: IReactorTime,
        *,
        has_links: bool,
    ) -> None:
        self.files = files
        self.references = references
        self.scan = scan
        self._reactor = reactor
        self.has_links = has_links
        self._timer: IDelayedCall | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Begin no further scan, and gather no files to remove."""
        self._is_stopped = True
        self.files.stop()
        self.scan.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def track(self, message: CountedMessage, live: int) -> None:
        """Note that the content of this message is in its silo, with this number of live entries."""
        if message.recipient_count > 1:
            self.references.add(message.spool_id, live)

    def count_line(self, message: CountedMessage) -> None:
        """Count a new line of the message. Call this before the old line is marked."""
        self.scan.count_line(message.spool_id, message.recipient_count)

    def entry_is_over(self, message: CountedMessage, number: int) -> bool:
        """Note that an entry of a message in its silo has ended. Return whether it was surely the last one."""
        spool_id = message.spool_id
        if message.recipient_count == 1:
            self.files.remove(spool_id)
            return True
        if self.has_links:
            self.files.remove_link(spool_id, number, self._on_unlinked)
            return self.references.note_drop(spool_id)
        verdict = self.references.drop(spool_id)
        if verdict is Verdict.RELEASE:
            self.files.remove(spool_id)
            return True
        if verdict is Verdict.UNSURE:
            self.scan_if_needed()
        return False

    def _on_unlinked(self, was_there: bool, spool_id: SpoolId) -> None:
        if not was_there:  # an earlier start counted it
            self.references.doubt(spool_id)
            self.scan_if_needed()

    def scan_if_needed(self) -> None:
        """Schedule a reference scan if only that can resolve some messages; it serves many at a time."""
        if self._is_stopped or self.scan.is_running or self._timer is not None:
            return
        if self.scan.has_run and not self.references.needs_scan:
            return
        delay_s = 0.0 if not self.scan.has_run or self.references.unsure.is_full else SCAN_DELAY_S
        if self.scan.has_failed:
            delay_s = RESCAN_S
        self._timer = self._reactor.callLater(delay_s, self._begin_scan)

    def _begin_scan(self) -> None:
        self._timer = None
        if not self._is_stopped:
            Deferred.fromCoroutine(self.scan.run()).addCallbacks(
                lambda _: self.scan_if_needed(), lambda failure: self._log.failure("A reference scan failed", failure)
            )
