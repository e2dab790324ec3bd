"""Release: removes the bytes of a message in its silo when no entry needs them.

A message with one recipient is removed with its only line. For the others there are two ways, and each finishes the work
that the other left:

- *counting*: a bounded cache of live entries (`spool.references`). Messages that it does not know wait for a scan of all
  lines, many messages at a time.
- *hard links*: the file has a name for each live recipient, removed with that recipient's settlement; the last name frees
  the bytes. If a settlement finds no name of its own, the message was counted by an earlier start: a scan tells.

*Rules*: act on durable settlements, never on pending ones. Bytes that stay too long are found at the next start; bytes that
were removed too early never come back.

*Not here*: lines and indexes (`ledger`), names (`spool.silo`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import SpoolSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Message
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.reclaim.reference_scan import Quarantine, ReferenceScan
from mailismus.spool.message_file import remove_every_name, remove_message_file, remove_names
from mailismus.spool.references import ReferenceCache, Verdict

SCAN_DELAY_S = 3.0
"""Seconds between the first message that needs a scan and the scan: more messages may come."""

RESCAN_S = 60.0
"""Seconds before the next scan after one that could not read every cluster."""


class Release:
    """Message files of one queue. `first_new`: the lowest spool id that this start may assign."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        settings: SpoolSettings,
        worker: IWorker,
        reactor: IReactorTime,
        memtable: Memtable,
        reader: ClusterReader,
        first_new: SpoolId,
        corrupt_path: str,
        quarantine: Quarantine,
    ) -> None:
        self._disk = disk
        self._root = settings.rootpath
        self._worker = worker
        self._reactor = reactor
        self._first_new = first_new
        self.has_links = settings.hardlinks
        self.references = ReferenceCache(settings.maxspidcache, first_new)
        self.scan = ReferenceScan(
            disk,
            settings.rootpath,
            worker,
            memtable,
            reader,
            self.references,
            first_new,
            self.remove,
            names_recipients=settings.hardlinks,
            corrupt_path=corrupt_path,
            quarantine=quarantine,
        )
        self._timer: IDelayedCall | None = None
        self._is_stopped = False
        self.unlinks_failed = 0

    def stop(self) -> None:
        """Begin no further scan."""
        self._is_stopped = True
        self.scan.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def track(self, message: Message, live: int) -> None:
        """Note that the content of this message is in its silo, with this number of live entries."""
        if message.recipient_count > 1:
            self.references.add(message.spool_id, live)

    def count_line(self, message: Message) -> None:
        """Count a new line of the message. Call this before the old line is marked."""
        self.scan.count_line(message.spool_id, message.recipient_count)

    def entry_is_over(self, message: Message, number: int) -> bool:
        """Note that an entry of a message in its silo has ended. Return whether it was surely the last one."""
        spool_id = message.spool_id
        if message.recipient_count == 1:
            self.remove(spool_id)
            return True
        if self.has_links:
            self._unlink_one(spool_id, number)
            return self.references.note_drop(spool_id)
        verdict = self.references.drop(spool_id)
        if verdict is Verdict.RELEASE:
            self.remove(spool_id)
            return True
        if verdict is Verdict.UNSURE:
            self.scan_if_needed()
        return False

    def remove(self, spool_id: SpoolId) -> None:
        """Remove the file of a message that durably has no live entry left, under all its names."""
        act = remove_every_name if spool_id < self._first_new else remove_message_file
        self._unlink(spool_id, partial(act, self._disk, self._root, spool_id))

    def remove_written(self, spool_id: SpoolId, most: int) -> None:
        """Remove a file that an abandoned checkpoint wrote. `most`: the highest number of a recipient that may have a name
        of its own; 0: the file has the shared name."""
        self._unlink(spool_id, partial(remove_names, self._disk, self._root, spool_id, range(most + 1)))

    def remove_name(self, spool_id: SpoolId, number: int) -> None:
        """Remove the file name of a recipient whose entry has ended."""
        self._unlink(spool_id, partial(remove_message_file, self._disk, self._root, spool_id, number))

    def _unlink(self, spool_id: SpoolId, act: Callable[[], object]) -> None:
        self._worker.run(act).addErrback(self._not_removed, spool_id)

    def _unlink_one(self, spool_id: SpoolId, number: int) -> None:
        removed = self._worker.run(partial(remove_message_file, self._disk, self._root, spool_id, number))
        if spool_id < self._first_new:
            removed.addCallback(self._on_unlinked, spool_id)
        removed.addErrback(self._not_removed, spool_id)

    def _on_unlinked(self, was_there: bool, spool_id: SpoolId) -> None:
        if not was_there:  # an earlier start counted it
            self.references.doubt(spool_id)
            self.scan_if_needed()

    def _not_removed(self, failure: Failure, spool_id: SpoolId) -> None:
        self.unlinks_failed += 1
        self._log.warn(
            "The message file of {spool_id} can't be removed: {error}", error=failure.value, spool_id=f"{spool_id:016X}"
        )

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
