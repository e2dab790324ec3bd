"""The log-structured queue: one log of messages and outcomes, which is the queue.

    draft -> commit -> [one batch, one barrier] -> working set -> take -> settle -> [the next batch] -> finished

Every entry of the working set has its durable copy in the log. Rounds of marks (`control.rounds`) tell the next start which
envelopes are garbage, and free files.

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. All code here runs in the
reactor's thread; blocking calls run in a worker.

*Not here*: the wiring of the parts (`assembly`), how a commit becomes an item of the log (`commit_requests`), the steps
after it (`control.results`).

Source: `docs/formats/log`, `docs/decisions/0026`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import commit_deferred
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Filter,
    Flushed,
    IContent,
    IDraft,
    Latest,
    M,
    Message,
    Page,
    Settlement,
    Shares,
    Submission,
    Summary,
)
from mailismus.queue.providers.log.commit_requests import CommitRequests
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.parts import QueueParts
from mailismus.queue.providers.log.read.looking import find, summarize


class LogQueue:
    """`IQueue` on local files. Made by `assembly.build`."""

    def __init__(self, parts: QueueParts) -> None:
        self.parts = parts
        self.ledger, self.commits, self.rounds = parts.ledger, parts.commits, parts.rounds
        self._now = parts.now
        self._working_set, self._admission, self._drafts = parts.working_set, parts.admission, parts.drafts
        self._waiters, self._contents = parts.waiters, parts.contents
        self.requests = CommitRequests(parts)
        self.max_envelope_bytes = parts.limits.envelope

    # opening and closing

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
        parts.release.scan_if_needed()
        return succeed(None)

    def close(self) -> Deferred[None]:
        parts = self.parts
        self._admission.close()
        parts.presence.stop()
        parts.space.stop()
        parts.pressure.stop()
        parts.release.stop()
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
        return succeed(self._working_set.take(area, limit, now, shares))

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
        return self._working_set.next_due(area)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self._contents.read(spool_id)

    # reading

    def summary(self) -> Deferred[Summary]:
        return succeed(summarize(self._working_set, self._admission.reason()))

    def counting_plan(self) -> None:
        return None

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return succeed(find(self._working_set, wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        self._waiters.fire(self._working_set.hasten(latest, now, {}))

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        count = 0
        for known in list(self._working_set.messages.values()):
            if wanted.spool_id is not None and known.message.spool_id != wanted.spool_id:
                continue
            for number, entry in known.entries.items():
                if entry.area is not Area.DEFERRED or wanted.area not in (None, Area.DEFERRED) or number in known.out:
                    continue
                if wanted.matches(known.message, entry):
                    count += 1
                    self._working_set.make_due(known, entry, now)
        if count:
            self._waiters.fire((Area.DEFERRED,))
        return succeed(Flushed(count))
