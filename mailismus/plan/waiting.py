"""The queue: the real index of due entries and the real retry rule on the virtual clock. Nothing is stored.

An outcome is durable at once, so that no gate holds deliveries back: what is measured is the schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.plan.clock import VirtualClock
from mailismus.queue.content import IContent
from mailismus.queue.due.entries import DueMessage
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Area, Entry, Message, Shares
from mailismus.queue.outcome.disposition import Disposition
from mailismus.queue.outcome.retry import RetryRule, lengthening_of, next_attempt_at

CONTENT = b"Subject: simulated\r\n\r\nsimulated\r\n"
_DELIVERED, _DEFERRED = OutcomeKind.DELIVERED, OutcomeKind.DEFERRED


class Books(Protocol):
    """What hears of each outcome."""

    def note(
        self,
        message: Message,
        entries: Sequence[Entry],
        outcome: Outcome,
        dispositions: Sequence[Disposition],
        now: float,
    ) -> None:
        """Note the outcome of an attempt for these entries, as they were before it, and what became of each."""


class SimulatedQueue:
    """See `deliver.queue_seam.DeliveryQueue`. `salt`: of the retry times; `of_reports`: the rule of mail without a sender;
    None: the same."""

    in_doubt = 0

    def __init__(
        self, clock: VirtualClock, rule: RetryRule, books: Books, salt: int, of_reports: RetryRule | None = None
    ) -> None:
        self._clock, self._rule, self._books, self._salt = clock, rule, books, salt
        self._of_reports = of_reports or rule
        self._index: DueIndex[DueMessage] = DueIndex()
        self._waiting: dict[Area, list[tuple[Deferred[None], float | None]]] = {Area.INCOMING: [], Area.DEFERRED: []}
        self._next_id = (1 << 32) + 1
        self.settled = 0
        """Entries that are delivered or returned."""
        self.deferred = 0
        """Attempts that were deferred."""

    @property
    def left(self) -> int:
        """Entries that are not settled."""
        return self._index.entry_count

    def entries(self) -> list[Entry]:
        """Those."""
        return [entry for known in self._index.messages.values() for entry in known.entries.values()]

    def waiting(self) -> Iterator[tuple[SpoolId, int, Entry]]:
        """The same, with the ids of their messages and their numbers."""
        for spool_id, known in self._index.messages.items():
            for number, entry in known.entries.items():
                yield spool_id, number, entry

    def submit(self, sender: bytes, recipients: Sequence[bytes]) -> Message:
        """Accept a message now."""
        now, spool_id = self._clock.now, SpoolId(self._next_id)
        self._next_id += 1
        entries = [Entry(number, recipient, Area.INCOMING, now) for number, recipient in enumerate(recipients)]
        message = Message(spool_id, sender, b"-", False, now, len(CONTENT), len(entries), entries)
        known = DueMessage(message)
        known.entries = {entry.number: entry for entry in entries}
        self._index.add_new(known, Area.INCOMING, entries, now)
        self._wake(Area.INCOMING)
        return message

    def load(self, messages: Iterable[Message]) -> None:
        """Add messages whose entries wait, in times of the virtual clock, before anything is taken."""
        for message in messages:
            known = DueMessage(message)
            known.entries = {entry.number: entry for entry in message.entries}
            self._index.add(known, self._clock.now)

    # ------------------------------------------------------------------ as the task uses it

    def take(self, area: Area, limit: int, shares: Shares | None = None) -> Deferred[list[Message]]:
        return succeed(self._index.take(area, limit, self._clock.now, shares))

    def room_again(self) -> None:
        for area in self._index.room_again():
            self._wake(area)

    def ready(self, area: Area) -> Deferred[None]:
        if self._index.has_ready(area):
            return succeed(None)
        fires: Deferred[None] = Deferred()
        self._waiting[area].append((fires, self._index.next_due(area)))
        return fires

    def next_due(self, area: Area) -> float | None:
        return self._index.next_due(area)

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        ids = [QueueId(message.spool_id, entry.number) for entry in entries]
        due_at = self._clock.now + delay_s
        for area in self._index.give_back(ids, due_at):
            self._wake_by(area, due_at)

    def ages_s(self, messages: Sequence[Message]) -> Sequence[float]:
        now = self._clock.now
        return [now - message.received_at for message in messages]

    def settle(self, results: Sequence[tuple[Message, Sequence[Entry], Outcome]]) -> Sequence[Sequence[Disposition]]:
        now = self._clock.now
        found: list[list[Disposition]] = []
        for message, entries, outcome in results:
            known = self._index.messages[message.spool_id]
            if outcome.kind is not _DEFERRED:
                dispositions = self._end(known, entries, is_sent=outcome.kind is _DELIVERED)
            else:
                dispositions = []
                for entry in entries:
                    if not self._defer(known, entry, outcome, now):
                        dispositions += self._end(known, [entry], is_sent=False, is_expired=True)
                    else:
                        dispositions.append(Disposition.DEFERRED)
            self._books.note(message, entries, outcome, dispositions, now)
            found.append(dispositions)
        return found

    def when_may_begin(self) -> Deferred[None]:
        return succeed(None)

    def may_try(self, spool_id: SpoolId) -> bool:
        return True

    def withheld(self) -> str:
        return ""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return CONTENT

    # Internal

    def _end(
        self, known: DueMessage, entries: Sequence[Entry], *, is_sent: bool, is_expired: bool = False
    ) -> list[Disposition]:
        self._index.end(known, [entry.number for entry in entries])  # fails for what was settled before
        self.settled += len(entries)
        how = Disposition.SENT if is_sent else Disposition.EXPIRED if is_expired else Disposition.BOUNCED
        return [how] * len(entries)

    def _defer(self, known: DueMessage, entry: Entry, outcome: Outcome, now: float) -> bool:
        """Let an entry wait for its next attempt. False: it has expired."""
        message, attempts = known.message, entry.attempts + 1
        due_at = next_attempt_at(
            self._rule if message.sender else self._of_reports,
            age_s=now - message.received_at,
            made_age_s=now - message.received_at,
            attempts=attempts,
            now=now,
            lengthening=lengthening_of(message.spool_id, attempts, self._salt),
            known_for_s=outcome.known_for_s,
            retry=outcome.retry,
        )
        if due_at is None:
            return False
        self.deferred += 1
        said = outcome.reply, outcome.host
        after = Entry(entry.number, entry.recipient, Area.DEFERRED, due_at, attempts, *said, entry.words)
        assert known.entries[entry.number] is entry, "an entry was settled twice"
        self._index.replace(known, after, now)
        self._wake_by(Area.DEFERRED, due_at)
        return True

    def _wake(self, area: Area) -> None:
        if self._waiting[area]:
            waiting, self._waiting[area] = self._waiting[area], []
            for fires, _ in waiting:
                self._clock.callLater(0, fires.callback, None)

    def _wake_by(self, area: Area, due_at: float) -> None:
        """Wake the listeners that expect the next due entry later than this one, or know only a time that is past."""
        now, waiting = self._clock.now, self._waiting[area]
        if any(known is None or known <= now or due_at < known for _, known in waiting):
            self._wake(area)
