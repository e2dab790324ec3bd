"""The log-structured queue: one log of messages and outcomes, which is the queue.

    draft -> commit -> [one batch, one barrier] -> working set -> take -> settle -> [the next batch] -> finished

Every entry of the working set has its durable copy in the log. Rounds of marks (`control.rounds`) tell the next start which
envelopes are garbage, and free files.

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. All code here runs in the
reactor's thread; blocking calls run in a worker.

*Not here*: the wiring of the parts (`assembly`), how a commit becomes an item of the log (`commit_requests`), the steps
after it (`control.results`).

Source: `docs/formats/log`, `docs/decisions/0026-the-log-is-the-queue`.
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
from mailismus.queue.providers.log.commit_requests import LogRequests
from mailismus.queue.providers.log.control.claiming import LogClaims
from mailismus.queue.providers.log.control.flushing import Flushing
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.parts import LogParts
from mailismus.queue.providers.log.read.count_plan import LogCountingPlan
from mailismus.queue.providers.log.read.looking import Looking
from mailismus.spool.content import WholeContent


class LogQueue:
    """`IQueue` on local files. Made by `assembly.build`."""

    def __init__(self, parts: LogParts) -> None:
        self.parts = parts
        self.ledger, self.commits, self.rounds = parts.ledger, parts.commits, parts.rounds
        self._now = parts.now
        self._working_set, self._admission, self._drafts = parts.working_set, parts.admission, parts.drafts
        self._waiters, self._contents = parts.waiters, parts.contents
        self._resting, self._loading = parts.resting, parts.loading
        self._looking = Looking(parts.working_set, parts.resting, parts.search_holds, parts.visits.visit, parts.throttle)
        self._claims = LogClaims(parts.working_set, parts.resting, parts.reading, parts.commits, parts.now)
        self._flushing = Flushing(parts.working_set, parts.resting, parts.visits, parts.waiters, parts.commits)
        self.requests = LogRequests(parts)
        self.max_envelope_bytes = parts.limits.envelope

    # opening and closing

    def is_busy(self) -> bool:
        """Whether work of the queue's own is under way, which ends by itself."""
        return self.rounds.is_busy() or self.parts.learning.is_busy()

    def open(self) -> Deferred[None]:
        parts, now = self.parts, self._now()
        messages = parts.opened.found.messages
        for _, known in sorted(messages.items()):
            self._working_set.add(known, now)
        messages.clear()
        parts.segments.top_up()
        parts.space.start()
        parts.pressure.start()
        parts.presence.start()
        parts.rounds.start()
        parts.learning.start(parts.release.scan_if_needed)
        return succeed(None)

    def close(self) -> Deferred[None]:
        parts = self.parts
        self._admission.close()
        parts.presence.stop()
        parts.space.stop()
        parts.pressure.stop()
        parts.release.stop()
        parts.learning.stop()
        parts.loading.stop()
        return parts.rounds.stop().addCallback(lambda _: parts.closing.begin()).addCallback(self._on_closed)

    def _on_closed(self, _: None) -> None:
        parts = self.parts
        parts.presence.on_stopped(len(self._working_set.messages), 0, parts.root, os.path.join(parts.root, LOG))

    # in

    def draft(self) -> IDraft:
        self._admission.check()
        return self._drafts.make()

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        return commit_deferred(self.requests, submissions, settlements)

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        self.requests.begin_commit(submissions, settlements, ended, listener, mark)

    # out

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        taken = self._loading.take(area, limit, now, shares)
        return succeed(taken) if isinstance(taken, list) else taken

    def room_again(self) -> None:
        self._waiters.fire_ready(self._working_set.room_again())

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        messages = self._working_set.messages
        free = [
            queue_id
            for queue_id in queue_ids
            if (known := messages.get(queue_id.spool_id)) is not None and queue_id.number not in known.asked
        ]
        self._waiters.fire_ready(self._working_set.give_back(free, not_before))

    def ready(self, area: Area) -> Deferred[None]:
        return self._waiters.ready(area)

    def next_due(self, area: Area) -> float | None:
        in_memory, resting = self._working_set.next_due(area), self._resting.next_due(area)
        if in_memory is None or resting is None:
            return resting if in_memory is None else in_memory
        return min(in_memory, resting)

    def may_try(self, spool_id: SpoolId) -> bool:
        return True

    def withheld(self) -> str:
        return ""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        if spool_id in self._working_set.messages or self._resting.is_empty:
            return self._contents.read(spool_id)
        loaded = Deferred.fromCoroutine(self._loading.load_messages((spool_id,)))
        return loaded.addCallback(lambda _: self._read_loaded(spool_id))

    def _read_loaded(self, spool_id: SpoolId) -> IContent | Deferred[IContent]:
        content = self._contents.read(spool_id)
        return WholeContent(content) if isinstance(content, bytes) else content

    # reading

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self._looking.summarize(self._admission.reason()))

    def counting_plan(self) -> ICountingPlan:
        sums, reading = self._looking.in_memory(), self.parts.reading
        self.parts.search_holds.hold_for_plan(self._resting.last_segment())
        return LogCountingPlan(self.parts.root, sums, reading.planned(), reading.hidden(), self._admission.reason())

    def servers(self) -> None:
        return None

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self._looking.search(wanted, after, limit, self.commits.applied_sequence))

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self._claims.claim(wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        resting = self._resting.hasten(latest, self.commits.applied_sequence)
        self._waiters.fire(self._working_set.hasten(latest, now, {}) | resting)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        return Deferred.fromCoroutine(self._flushing.flush(wanted, now))
