"""Releasing: when the bytes of a message in its silo go, and how.

A message that came with one recipient goes with its only line. For the others there are two ways, and either finishes what
the other left:

- *counting*: a bounded cache of live entries (`spool.references`); what it does not know is looked up by a walk over all
  lines, many messages at a time.
- *hard links*: the file has a name for each live recipient, unlinked with that recipient's settle; the last name takes the
  bytes along. A settle that finds no name of its own is of a message that was counted by an earlier start: the walk tells.

*Rules*: told of what is durable, never of what is asked for. Bytes that stay too long are found at the next start; what
went too early never comes back.

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
from mailismus.queue.providers.clustered.reclaim.reference_scan import ReferenceScan, SetAside
from mailismus.spool.message_file import remove_every_name, remove_message_file, remove_names
from mailismus.spool.references import ReferenceCache, Verdict

WALK_S = 3.0
"""Seconds that messages of which it is not known whether they are over wait for others, before a walk looks."""

WALK_AGAIN_S = 60.0
"""Seconds before the next walk after one that could not read everything."""


class Release:
    """Bytes of one queue. `first_new`: the lowest spool id that this start may give out."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        settings: SpoolSettings,
        worker: IWorker,
        reactor: IReactorTime,
        young: Memtable,
        reader: ClusterReader,
        first_new: SpoolId,
        corrupt_path: str,
        set_aside: SetAside,
    ) -> None:
        self._disk = disk
        self._root = settings.rootpath
        self._worker = worker
        self._reactor = reactor
        self._first_new = first_new
        self.has_links = settings.hardlinks
        self.references = ReferenceCache(settings.maxspidcache, first_new)
        self.walk = ReferenceScan(
            disk,
            settings.rootpath,
            worker,
            young,
            reader,
            self.references,
            first_new,
            self.remove,
            names_recipients=settings.hardlinks,
            corrupt_path=corrupt_path,
            set_aside=set_aside,
        )
        self._timer: IDelayedCall | None = None
        self._is_stopped = False
        self.unlinks_failed = 0

    def stop(self) -> None:
        """No further walk."""
        self._is_stopped = True
        self.walk.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def track(self, message: Message, live: int) -> None:
        """The content of this message is in its silo, with so many live entries."""
        if message.recipient_count > 1:
            self.references.add(message.spool_id, live)

    def count_line(self, message: Message) -> None:
        """A line of it is new: to be told before the old one goes."""
        self.walk.count_line(message.spool_id, message.recipient_count)

    def entry_is_over(self, message: Message, number: int) -> bool:
        """An entry of a message in its silo is over; whether it was surely the last."""
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
            self.walk_if_needed()
        return False

    def remove(self, spool_id: SpoolId) -> None:
        """No live entry of it is left, durably: its file goes, whatever its names."""
        act = remove_every_name if spool_id < self._first_new else remove_message_file
        self._unlink(spool_id, partial(act, self._disk, self._root, spool_id))

    def remove_written(self, spool_id: SpoolId, most: int) -> None:
        """The same for a file that a checkpoint wrote in vain. `most`: the highest number of a recipient that may have a
        name of its own; 0: it has the shared one."""
        self._unlink(spool_id, partial(remove_names, self._disk, self._root, spool_id, range(most + 1)))

    def remove_name(self, spool_id: SpoolId, number: int) -> None:
        """This recipient is over; it had a name."""
        self._unlink(spool_id, partial(remove_message_file, self._disk, self._root, spool_id, number))

    def _unlink(self, spool_id: SpoolId, act: Callable[[], object]) -> None:
        self._worker.run(act).addErrback(self._not_removed, spool_id)

    def _unlink_one(self, spool_id: SpoolId, number: int) -> None:
        removed = self._worker.run(partial(remove_message_file, self._disk, self._root, spool_id, number))
        if spool_id < self._first_new:
            removed.addCallback(self._on_unlinked, spool_id)
        removed.addErrback(self._not_removed, spool_id)

    def _on_unlinked(self, was_there: bool, spool_id: SpoolId) -> None:
        if not was_there:  # counted by an earlier start
            self.references.doubt(spool_id)
            self.walk_if_needed()

    def _not_removed(self, failure: Failure, spool_id: SpoolId) -> None:
        self.unlinks_failed += 1
        self._log.warn(
            "The message file of {spool_id} can't be removed: {error}", error=failure.value, spool_id=f"{spool_id:016X}"
        )

    def walk_if_needed(self) -> None:
        """Look at all lines when there is something that only this can tell, many ids at a time."""
        if self._is_stopped or self.walk.is_running or self._timer is not None:
            return
        if self.walk.has_looked and not self.references.needs_scan:
            return
        delay_s = 0.0 if not self.walk.has_looked or self.references.unsure.is_full else WALK_S
        if self.walk.has_failed:
            delay_s = WALK_AGAIN_S
        self._timer = self._reactor.callLater(delay_s, self._begin_walk)

    def _begin_walk(self) -> None:
        self._timer = None
        if not self._is_stopped:
            Deferred.fromCoroutine(self.walk.run()).addCallbacks(
                lambda _: self.walk_if_needed(), lambda failure: self._log.failure("A walk failed", failure)
            )
