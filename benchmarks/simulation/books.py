"""The books: what is measured of the mail while a simulation runs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.queue.interface import Entry, Message
from mailismus.queue.outcome.disposition import Disposition

SMALL = "small"
"""The class of ordinary mail, whose delays are measured."""


class Delays:
    """Delays of delivered recipients, and when their mail had come."""

    def __init__(self) -> None:
        self.came_at = array("d")
        self.delay_s = array("d")

    def add(self, came_at: float, delay_s: float) -> None:
        """Add a recipient."""
        self.came_at.append(came_at)
        self.delay_s.append(delay_s)

    def between(self, begin: float, end: float) -> list[float]:
        """The delays of what came in this time, sorted."""
        return sorted([delay for at, delay in zip(self.came_at, self.delay_s, strict=True) if begin <= at < end])


class Service:
    """What one sender asked for and got: the times at which recipients came, and at which they had their first outcome."""

    def __init__(self) -> None:
        self.came_at = array("d")
        self.served_at = array("d")


class Record:
    """The books of one run. `kind_of`: the kind of the receiver of each domain."""

    def __init__(self, kind_of: dict[bytes, str]) -> None:
        self._kind_of = kind_of
        self._class_of: dict[SpoolId, str] = {}
        self.delays: dict[tuple[str, str], Delays] = {}
        """By class of the message and kind of the receiver."""
        self.services: dict[bytes, Service] = {}
        """By sender."""
        self.delivered = 0
        self.failed = 0
        self.attempts_used = 0
        """Attempts that were counted for entries, those without a connection included."""
        self.ended_at: dict[str, float] = {}
        """When the last recipient of a class had its first outcome."""

    def came(self, message: Message, of_class: str) -> None:
        """Note a message that was accepted now."""
        self._class_of[message.spool_id] = of_class
        service = self.services.get(message.sender)
        if service is None:
            service = self.services[message.sender] = Service()
        service.came_at.extend([message.received_at] * len(message.entries))

    def note(
        self,
        message: Message,
        entries: Sequence[Entry],
        outcome: Outcome,
        dispositions: Sequence[Disposition],
        now: float,
    ) -> None:
        """See `waiting.Books`."""
        of_class = self._class_of[message.spool_id]
        served_at = self.services[message.sender].served_at
        is_delivered = outcome.kind is OutcomeKind.DELIVERED
        came_at = message.received_at
        self.attempts_used += len(entries)
        for entry in entries:
            if not entry.attempts:
                served_at.append(now)
                self.ended_at[of_class] = now
            if is_delivered:
                recipient = entry.recipient
                kind = self._kind_of.get(recipient[recipient.rfind(b"@") + 1 :], "local")
                delays = self.delays.get((of_class, kind))
                if delays is None:
                    delays = self.delays[of_class, kind] = Delays()
                delays.add(came_at, now - came_at)
        if is_delivered:
            self.delivered += len(entries)
        elif outcome.kind is OutcomeKind.FAILED:
            self.failed += len(entries)
