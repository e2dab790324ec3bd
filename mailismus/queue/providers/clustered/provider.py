"""The clustered queue: entries and messages in a journal of group commits, large messages in their silos.

    draft -> commit -> [one batch, one barrier] -> memtable -> take -> settle -> [the next batch] -> gone
                                                      |                  ^
                                                      +- [checkpoint] -> cluster index

Entries of the memtable have their durable copy in the journal. Checkpoints move longer-lived entries to cluster files, and
their messages to silos (`checkpoint`). The cluster index knows the cluster files (`index.cluster_index`); a due scan reads
them when entries are due (`read.due_scan`). Message bytes are removed with their last entry (`spool.release`).

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. All code here runs in the
reactor's thread; blocking calls run in a worker.

*Not here*: the wiring of the parts (`assembly`), how a commit becomes an item of the journal (`commit_requests`), the steps
after it (`control.commit_results`) and after its batch (`control.batch_results`).

Source: `docs/formats/journal`, `docs/durability`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import commit_deferred
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Filter,
    Flushed,
    ICountingPlan,
    Latest,
    M,
    Message,
    Page,
    Settlement,
    Shares,
    Submission,
    Summary,
)
from mailismus.queue.providers.clustered.commit_requests import CommitRequests
from mailismus.queue.providers.clustered.parts import QueueParts
from mailismus.spool.content import as_storage_error


class ClusteredQueue:
    """`IQueue` on local files. Made by `assembly.build`."""

    def __init__(self, parts: QueueParts) -> None:
        self.parts = parts
        self.state, self.ledger, self.commits, self.checkpoints = parts.state, parts.ledger, parts.commits, parts.checkpoints
        self._now = parts.state.now
        self._memtable, self._cluster_index = parts.state.memtable, parts.state.cluster_index
        self._admission, self._drafts, self._segments = parts.admission, parts.drafts, parts.segments
        self._waiters, self._due_scan, self._contents = parts.waiters, parts.due_scan, parts.contents
        self._requests = CommitRequests(parts)
        self.max_envelope_bytes = parts.limits.envelope

    # opening and closing

    def open(self) -> Deferred[None]:
        parts, now = self.parts, self._now()
        for journaled in parts.opened.youngs:
            self._memtable.add(journaled, now)
        self._segments.top_up()
        parts.space.start()
        parts.pressure.start()
        parts.presence.start()
        self.checkpoints.start()
        parts.release.scan_if_needed()
        return succeed(None)

    def close(self) -> Deferred[None]:
        parts = self.parts
        self._admission.close()
        parts.presence.stop()
        parts.space.stop()
        parts.pressure.stop()
        parts.release.stop()
        return parts.closing.begin().addCallback(self._on_closed)

    def _on_closed(self, _: None) -> None:
        in_clusters = sum(cluster.live or 0 for cluster in self._cluster_index.clusters.values())
        root = self.parts.root
        self.parts.presence.on_stopped(len(self._memtable.messages), in_clusters, root, os.path.join(root, "journal"))

    # in

    def draft(self) -> IDraft:
        self._admission.check()
        return self._drafts.make()

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        return commit_deferred(self._requests, submissions, settlements)

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        self._requests.begin_commit(submissions, settlements, ended, listener, mark)

    # out

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        return self._due_scan.take(area, limit, now, shares)

    def room_again(self) -> None:
        self._waiters.fire_ready(self._cluster_index.room_again() | self._memtable.room_again())

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        touched = self._cluster_index.give_back(queue_ids, not_before) | self._memtable.give_back(queue_ids, not_before)
        self.parts.ledger.leave_contents(queue_ids, not_before)
        self._waiters.fire_ready(touched)

    def ready(self, area: Area) -> Deferred[None]:
        return self._waiters.ready(area)

    def next_due(self, area: Area) -> float | None:
        dues = [
            due_at for due_at in (self._memtable.next_due(area), self._cluster_index.next_due(area)) if due_at is not None
        ]
        return min(dues, default=None)

    def may_try(self, spool_id: SpoolId) -> bool:
        return True

    def withheld(self) -> str:
        return ""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self._contents.read(spool_id)

    # reading

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self.parts.search.summarize(self._admission.reason()))

    def counting_plan(self) -> ICountingPlan:
        return self.parts.search.plan(self._admission.reason())

    def servers(self) -> None:
        return None

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self.parts.search.search(wanted, after, limit))

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self.parts.search.claim(wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        self.parts.hastening.hasten(latest, now)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        # A line that is being moved would keep the time that its entry had when it was written.
        moved = self.checkpoints.run() if self.state.pending is not None else succeed(None)
        found = moved.addCallback(lambda _: Deferred.fromCoroutine(self._due_scan.flush(wanted, now)))
        return found.addCallbacks(self._flushed, as_storage_error)

    def _flushed(self, flushed: Flushed) -> Flushed:
        if flushed.entries:
            self._waiters.fire(Area.DEFERRED)
        return flushed
