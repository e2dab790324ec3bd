"""A rule in force: which entries of new mail it holds, and which commits it has a part in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs
from twisted.internet.defer import Deferred, succeed

from mailismus.queue.acts.act import Act
from mailismus.queue.acts.lines import acted_line
from mailismus.queue.acts.marking import FOR_EVER, marked
from mailismus.queue.filter import parse_arrival_filter
from mailismus.queue.interface import Area, Entry, Message, Placement

Log = Callable[[Sequence[bytes]], None]


def log_nothing(lines: Sequence[bytes]) -> None:
    """Of a process that has no mail log."""


class Rule:
    """A rule (`queue.arriving.ArrivalRule`). `act`: as it is now; its counts are of entries that are durable. Raises
    `FilterError`."""

    def __init__(self, act: Act, log: Log = log_nothing) -> None:
        self.act = act
        self._matches = parse_arrival_filter(act.order.words)
        self._log = log
        self._under_way = 0
        self._waiting: list[Deferred[None]] = []

    def is_over(self, now: float) -> bool:
        """Whether its time is over. `now`: UTC seconds."""
        return self.act.until is not None and now >= self.act.until

    def quiet(self) -> Deferred[None]:
        """Fires when no commit is under way that it has a part in."""
        if not self._under_way:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    # `ArrivalRule`

    def placement_of(self, message: Message, entry: Entry) -> Placement | None:
        if self.is_over(message.received_at) or not self._matches(message, entry):
            return None
        until = FOR_EVER if self.act.until is None else self.act.until
        words = marked(entry, self.act.number)
        return Placement(entry.number, Area.HELD, until, entry.attempts, entry.reply, entry.host, words)

    def begin(self) -> None:
        self._under_way += 1

    def end(self, message: Message, entries: Sequence[Entry]) -> None:
        self._under_way -= 1
        if entries:
            act = self.act
            self.act = attrs.evolve(act, entries=act.entries + len(entries), messages=act.messages + 1)
            self._log([acted_line(act, message, entry) for entry in entries])
        if not self._under_way:
            waiting, self._waiting = self._waiting, []
            for deferred in waiting:
                deferred.callback(None)


def rules_in_force(acts: Iterable[Act]) -> list[Rule]:
    """Return the rules among these acts that are in force, the oldest first."""
    return [Rule(act) for act in sorted(acts, key=lambda act: act.number) if act.is_in_force]
