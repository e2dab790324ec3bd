"""What the outside world knows at each moment of a story, and what must therefore be found after a crash.

I1 an acknowledged recipient that is not settled is live; I2 with its exact content; I3 what was settled durably is not
live, a durable retry or bounce is not undone; I4 all recipients of a message or none, none twice, nothing that nobody sent,
nothing that an earlier start did not find; I6 bytes go only with the last durable settle (else I1 or I2 would be broken); I7
a refused message may come back whole, of a report and its bounces there is one or the other; I8 a crash alone never looks
like damage; I9 where mail was acknowledged the directory says durably whose it is.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sized
from typing import NamedTuple

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement


class Broken(AssertionError):
    """An invariant does not hold."""


def _length(value: Sized) -> str:
    return f"({len(value)})"


# Facts, as marks among the acts.


@attrs.frozen
class Sent:
    """A message is on its way into the queue. `reports`: the bounces that it is the report of. `words`: of the message, then
    of each recipient; none: it has none."""

    spool_id: SpoolId
    content: bytes = attrs.field(repr=_length)
    count: int
    reports: tuple[QueueId, ...] = ()
    words: tuple[bytes | None, ...] = ()


@attrs.frozen
class Acknowledged:
    """A 250 went out for this message."""

    spool_id: SpoolId


@attrs.frozen
class Refused:
    """A 451 went out for it."""

    spool_id: SpoolId


@attrs.frozen
class Asked:
    """This settlement is on its way into the queue."""

    settlement: Settlement


@attrs.frozen
class Settled:
    """It is durable."""

    settlement: Settlement


class Seen(NamedTuple):
    """A live entry as a start finds it."""

    area: Area
    attempts: int
    due_at: float
    words: tuple[bytes | None, bytes | None] = (None, None)
    """Of the message and of the entry."""


@attrs.frozen
class Found:
    """A start has found these entries, and acted on it: that is the truth from here on."""

    live: Mapping[QueueId, Seen] = attrs.field(repr=_length)


class Status(enum.Enum):
    """Of a message."""

    SENT = enum.auto()
    ACKNOWLEDGED = enum.auto()
    REFUSED = enum.auto()
    NEVER = enum.auto()
    """An earlier start did not find it."""


class State(enum.Enum):
    """Of an entry."""

    LIVE = enum.auto()
    ENDING = enum.auto()
    """Its end was asked for."""
    ENDED = enum.auto()


class EntryFact(NamedTuple):
    """An entry's state, and its attempts: so many for sure, so many at most."""

    state: State = State.LIVE
    sure: int = 0
    asked: int = 0


class MessageFact(NamedTuple):
    """A message that was sent."""

    content: bytes
    recipients: int
    status: Status
    reports: tuple[QueueId, ...]


@attrs.frozen(eq=False)
class Knowledge:
    """All that is known."""

    messages: Mapping[SpoolId, MessageFact] = attrs.field(factory=dict)
    entries: Mapping[QueueId, EntryFact] = attrs.field(factory=dict)
    where: Mapping[tuple[QueueId, int], tuple[Area, float]] = attrs.field(factory=dict)
    """Area and time of an entry with so many attempts."""
    words: Mapping[tuple[QueueId, int], tuple[bytes | None, bytes | None]] = attrs.field(factory=dict)
    """Words of an entry with so many attempts, its message's first; not here: it has none."""

    @property
    def has_acknowledged(self) -> bool:
        """A 250 went out for some message."""
        return any(message.status is Status.ACKNOWLEDGED for message in self.messages.values())

    def after(self, mark: object) -> Knowledge:
        """With one fact more."""
        messages, entries, where, words = dict(self.messages), dict(self.entries), dict(self.where), dict(self.words)
        match mark:
            case Sent(spool_id, content, count, reports, (of_message, *of_entries)):
                messages[spool_id] = MessageFact(content, count, Status.SENT, reports)
                entries |= {QueueId(spool_id, number): EntryFact() for number in range(1, count + 1)}
                words |= {(QueueId(spool_id, n), 0): (of_message, each) for n, each in enumerate(of_entries, 1)}
            case Sent(spool_id, content, count, reports):
                messages[spool_id] = MessageFact(content, count, Status.SENT, reports)
                entries |= {QueueId(spool_id, number): EntryFact() for number in range(1, count + 1)}
            case Acknowledged(spool_id):
                messages[spool_id] = messages[spool_id]._replace(status=Status.ACKNOWLEDGED)
            case Refused(spool_id):
                messages[spool_id] = messages[spool_id]._replace(status=Status.REFUSED)
            case Asked(settlement):
                fact = entries[settlement.queue_id]
                if settlement.area is not None:
                    asked = max(fact.asked, settlement.attempts)
                    entries[settlement.queue_id] = fact._replace(asked=asked)
                    where[settlement.queue_id, settlement.attempts] = settlement.area, settlement.due_at
                    before = words.get((settlement.queue_id, settlement.attempts - 1))
                    if before is not None or settlement.words is not None:
                        of_message, of_entry = before or (None, None)
                        kept = of_entry if settlement.words is None else settlement.words or None
                        words[settlement.queue_id, settlement.attempts] = of_message, kept
                elif fact.state is State.LIVE:
                    entries[settlement.queue_id] = fact._replace(state=State.ENDING)
            case Settled(settlement):
                fact = entries[settlement.queue_id]
                if settlement.area is not None:
                    entries[settlement.queue_id] = fact._replace(sure=max(fact.sure, settlement.attempts))
                else:
                    entries[settlement.queue_id] = fact._replace(state=State.ENDED)
            case Found(live):
                for queue_id in entries:
                    seen = live.get(queue_id)
                    entries[queue_id] = (
                        EntryFact(State.ENDED) if seen is None else EntryFact(State.LIVE, seen.attempts, seen.attempts)
                    )
                there = {spool_id for spool_id, _ in live}
                for spool_id, message in messages.items():
                    if spool_id in there:
                        messages[spool_id] = message._replace(status=Status.ACKNOWLEDGED)
                    elif message.status is not Status.ACKNOWLEDGED:
                        messages[spool_id] = message._replace(status=Status.NEVER)
            case _:
                raise TypeError(f"no fact: {mark!r}")
        return Knowledge(messages, entries, where, words)

    def check(self, live: Mapping[QueueId, Seen], contents: Mapping[SpoolId, bytes | None]) -> None:
        """Whether this may be found now. Raises `Broken`."""
        for queue_id in live:
            message = self.messages.get(queue_id.spool_id)
            if message is None or message.status is Status.NEVER or queue_id not in self.entries:
                raise Broken(f"I4: an entry of nobody: {queue_id}")
            if contents.get(queue_id.spool_id) != message.content:
                raise Broken(f"I2: {queue_id} is live without its bytes")
        for queue_id, fact in self.entries.items():
            seen = live.get(queue_id)
            if seen is None:
                if fact.state is State.LIVE and self.messages[queue_id.spool_id].status is Status.ACKNOWLEDGED:
                    raise Broken(f"I1: {queue_id} is lost")
                continue
            if fact.state is State.ENDED:
                raise Broken(f"I3: {queue_id} was settled and is live")
            if not fact.sure <= seen.attempts <= fact.asked:
                raise Broken(f"I3: a durable retry of {queue_id} is undone: {fact}, found {seen}")
            wanted = self.where.get((queue_id, seen.attempts))
            if wanted is not None and wanted != (seen.area, seen.due_at):
                raise Broken(f"I3: {queue_id} is {seen}, not {wanted}")
            if seen.words != (words := self.words.get((queue_id, seen.attempts), (None, None))):
                raise Broken(f"I2: {queue_id} has the words {seen.words}, not {words}")
        for spool_id, message in self.messages.items():
            if message.status not in (Status.ACKNOWLEDGED, Status.NEVER):
                self._check_whole(spool_id, message, live)
        self._check_reports(live)

    def _check_whole(self, spool_id: SpoolId, message: MessageFact, live: Mapping[QueueId, Seen]) -> None:
        alive = [QueueId(spool_id, number) in live for number in range(1, message.recipients + 1)]
        if any(alive) and not all(alive):
            facts = [self.entries[QueueId(spool_id, number)] for number in range(1, message.recipients + 1)]
            if all(fact.state is State.LIVE for fact in facts):
                raise Broken(f"I4: half of message {spool_id:016X}")

    def _check_reports(self, live: Mapping[QueueId, Seen]) -> None:
        """Of a bounce there is the bounce or one report, until that is on its way."""
        holders: dict[QueueId, list[QueueId]] = {}
        for spool_id, message in self.messages.items():
            if message.reports and message.status is not Status.NEVER:
                for bounce in message.reports:
                    holders.setdefault(bounce, [bounce]).append(QueueId(spool_id, 1))
        for bounce, candidates in holders.items():
            found = [queue_id for queue_id in candidates if queue_id in live]
            is_over = any(self.entries[queue_id].state is not State.LIVE for queue_id in candidates if queue_id != bounce)
            if len(found) > 1 or not (found or is_over):
                raise Broken(f"I7: of the bounce {bounce} and its reports there are: {found}")
