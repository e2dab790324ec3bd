"""Mail that arrives while rules of administrators are in force: entries that a rule matches are held from the commit on that
brings them.

*Rules*: of several rules the oldest that matches has an entry. Mail that was accepted before a rule is not asked about. A
rule knows of each commit that it has a part in until that commit has ended, so that its undoing misses none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.queue.commits import BeginsCommits
from mailismus.queue.entering import entries_of, message_of
from mailismus.queue.interface import CommitListener, Entry, M, Message, Placement, Submission

T = TypeVar("T")


class ArrivalRule(Protocol):
    """A rule for mail to come."""

    def placement_of(self, message: Message, entry: Entry) -> Placement | None:
        """Where the entry begins; None: the rule does not concern it."""

    def begin(self) -> None:
        """A commit has begun in which entries begin where the rule says; `end` follows."""

    def end(self, message: Message, entries: Sequence[Entry]) -> None:
        """That commit has ended: these entries are durable; none: it has failed."""


@attrs.frozen
class Arrival:
    """A message some of whose entries rules have. `submission`: with their placements."""

    submission: Submission
    message: Message
    parts: tuple[tuple[ArrivalRule, list[Entry]], ...]

    def begin(self) -> None:
        """Its commit begins."""
        for rule, _ in self.parts:
            rule.begin()

    def end(self, *, is_durable: bool) -> None:
        """Its commit has ended."""
        for rule, entries in self.parts:
            rule.end(self.message, entries if is_durable else ())


def arrival_of(submission: Submission, rules: Sequence[ArrivalRule]) -> Arrival | None:
    """Return what these rules, the oldest first, make of a new message; None: they do not concern it."""
    entries = entries_of(submission)
    message = message_of(submission, submission.draft.stored_bytes, entries)
    parts: dict[ArrivalRule, list[Entry]] = {}
    placements: list[Placement] = []
    for entry in entries:
        for rule in rules:
            placement = rule.placement_of(message, entry)
            if placement is not None:
                parts.setdefault(rule, []).append(entry)
                break
        else:
            facts = entry.area, entry.due_at, entry.attempts, entry.reply, entry.host, entry.words
            placement = Placement(entry.number, *facts)
        placements.append(placement)
    if not parts:
        return None
    return Arrival(submission._replace(placements=tuple(placements)), message, tuple(parts.items()))


class _Waiting(NamedTuple, Generic[M]):
    """Who is told of the end of an arrival's commit."""

    arrival: Arrival
    listener: CommitListener[M]
    mark: M


class _Telling:
    """A `CommitListener` that tells the rules, then those who wait."""

    def on_durable(self, marks: Sequence[_Waiting[M]], gone: Sequence[Sequence[SpoolId]]) -> None:
        for waiting, over in zip(marks, gone, strict=True):
            waiting.listener.on_durable((waiting.mark,), (over,))
            waiting.arrival.end(is_durable=True)

    def on_failed(self, marks: Sequence[_Waiting[M]], error: StorageError) -> None:
        for waiting in marks:
            waiting.arrival.end(is_durable=False)
            waiting.listener.on_failed((waiting.mark,), error)


_TELLING = _Telling()


class Arrivals:
    """The rules in force in one queue. `rules`: the oldest first; read only."""

    def __init__(self, provider: BeginsCommits) -> None:
        self._provider = provider
        self.rules: tuple[ArrivalRule, ...] = ()

    def put_in_force(self, rules: Sequence[ArrivalRule]) -> None:
        """Let these rules, the oldest first, be in force from now on, and no others."""
        self.rules = tuple(rules)

    def begin_commit(self, submission: Submission, listener: CommitListener[M], mark: M) -> None:
        """Commit a new message, as `IQueue.begin_commit`, with the placements that rules give its entries."""
        arrival = arrival_of(submission, self.rules)
        if arrival is None:
            self._provider.begin_commit((submission,), (), (), listener, mark)
            return
        arrival.begin()
        self._provider.begin_commit((arrival.submission,), (), (), _TELLING, _Waiting(arrival, listener, mark))

    def commit(self, submission: Submission, commit: Callable[[Submission], Deferred[T]]) -> Deferred[T]:
        """The same by `commit`, which also does other things."""
        arrival = arrival_of(submission, self.rules) if self.rules else None
        if arrival is None:
            return commit(submission)
        arrival.begin()
        return commit(arrival.submission).addBoth(_end, arrival)


def _end(result: T, arrival: Arrival) -> T:
    arrival.end(is_durable=not isinstance(result, Failure))
    return result
