"""A rate: messages and recipients that may go to a destination in a minute (pure).

*Promise*: a minute of 60 s, wherever it begins, never sees more than the limit, whenever the caller asks. Sends are
counted in `SPAN_S`, a second more than a minute, because the receiver counts where the mail arrives, and that comes up
to a second earlier or later than it left. So the most that goes is 60 / 61 of the limit.

*Evenly*: what was sent is paid for before the next may go, a 61st of the limit each second. With more than 60 a minute
what one second allows may go at once; then a wake-up a second is enough.

*What counts* is what was begun: the caller notes a transaction as it writes its MAIL. There is no refund: what was
written may have been counted by the receiver, however it ended. What waits in the queue of a connection is not noted
yet.

*The caller* cuts transactions to `most_recipients`, and lets nothing of the same destination pass a transaction that
may not go yet: many small ones would hold back a large one for ever. A transaction of more recipients than a minute
allows (the limit was lowered after it was cut) goes alone, when a whole minute is free, and pays for all of them before
the next.

Memory: two numbers for each half second in which something was sent, of the last minute alone.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

SPAN_S = 61.0
"""The time in which no more than the limit is begun, as it is spread."""
_SLOTS_A_SECOND = 2.0
"""A power of two: times of slots are exact. What was sent counts for at least `SPAN_S` less one slot."""


class Meter:
    """One limit: so many units in a minute."""

    __slots__ = ("_allowance_s", "_counted", "_limit", "_paid_at", "_slots", "_unit_s")

    def __init__(self, limit: int) -> None:
        """`limit`: from 1."""
        self._slots: deque[list[float]] = deque()
        """Those with something sent, oldest first: its end of counting, and the units."""
        self._counted = 0
        self._paid_at = -math.inf
        """When all that was sent is paid for."""
        self.use_limit(limit)

    def use_limit(self, limit: int) -> None:
        """Take over another limit; what was sent counts against it."""
        self._limit = limit
        self._unit_s = SPAN_S / limit
        self._allowance_s = (max(1, limit // 60) - 1) * self._unit_s

    def may_send(self, now: float, units: int) -> bool:
        """Whether so many may go now."""
        if now < self._paid_at - self._allowance_s:
            return False
        self._forget(now)
        return self._counted + units <= self._limit or not self._counted

    def next_at(self, now: float, units: int) -> float:
        """When so many may go if nothing else goes before: now, or later."""
        self._forget(now)
        at = max(now, self._paid_at - self._allowance_s)
        left = self._counted
        for ends_at, sent in self._slots:
            if left + units <= self._limit:
                break
            left -= int(sent)
            at = max(at, ends_at)
        return at

    def note_sent(self, now: float, units: int) -> None:
        """Count what goes now."""
        ends_at = math.floor(now * _SLOTS_A_SECOND) / _SLOTS_A_SECOND + SPAN_S
        if self._slots and self._slots[-1][0] >= ends_at:
            self._slots[-1][1] += units
        else:
            self._slots.append([ends_at, units])
        self._counted += units
        self._paid_at = max(self._paid_at, now) + units * self._unit_s

    @property
    def others(self) -> int:
        """What other servers may send in a minute: nothing counts here but what is sent here."""
        return 0

    def _forget(self, now: float) -> None:
        """Drop what was sent more than a minute ago."""
        slots = self._slots
        while slots and slots[0][0] <= now:
            self._counted -= int(slots.popleft()[1])


class IMeters(Protocol):
    """Makes the meters of one rate over all servers."""

    def meter(self, limit: int, *, of_recipients: bool) -> Meter:
        """A meter, of recipients or of messages."""

    def most_recipients(self, limit: int) -> int:
        """What a server can have of so many recipients a minute, for sure."""


class Rate:
    """The limits of one destination: messages and recipients a minute. 0: no limit."""

    __slots__ = ("_messages", "_meters", "_recipients", "limits")

    def __init__(self, messages_per_minute: int, recipients_per_minute: int, meters: IMeters | None = None) -> None:
        """`meters`: makes those of limits over all servers; None: they are of this one."""
        self._meters = meters
        self._messages = self._renewed(None, messages_per_minute, of_recipients=False)
        self._recipients = self._renewed(None, recipients_per_minute, of_recipients=True)
        self.limits = (messages_per_minute, recipients_per_minute)
        """Messages and recipients a minute, for sentences."""

    def use_limits(self, messages_per_minute: int, recipients_per_minute: int) -> None:
        """Take over other limits. What was sent in the last minute counts against them, where it was counted."""
        self._messages = self._renewed(self._messages, messages_per_minute, of_recipients=False)
        self._recipients = self._renewed(self._recipients, recipients_per_minute, of_recipients=True)
        self.limits = (messages_per_minute, recipients_per_minute)

    def most_recipients(self, maxrecips: int) -> int:
        """The recipients of one transaction at most, where `maxrecips` are allowed without the rate (0: no limit; so is the
        result). Equal parts leave little of a minute unused: 30 and 30 of 60, in place of 50 and a rest of 10 that no other
        50 fit into."""
        limit = self.limits[1] if self._meters is None else self._meters.most_recipients(self.limits[1])
        if not limit:
            return maxrecips
        return limit // -(-limit // maxrecips) if maxrecips else limit

    def may_send(self, now: float, recipients: int) -> bool:
        """Whether a transaction with so many recipients may begin now."""
        messages, of_recipients = self._messages, self._recipients
        return (messages is None or messages.may_send(now, 1)) and (
            of_recipients is None or of_recipients.may_send(now, recipients)
        )

    def next_at(self, now: float, recipients: int) -> float:
        """When it may begin if no other does before: now, or later."""
        at = now if self._messages is None else self._messages.next_at(now, 1)
        return at if self._recipients is None else max(at, self._recipients.next_at(now, recipients))

    def note_sent(self, now: float, recipients: int) -> None:
        """Note that a transaction with so many recipients begins."""
        if self._messages is not None:
            self._messages.note_sent(now, 1)
        if self._recipients is not None:
            self._recipients.note_sent(now, recipients)

    @property
    def of_others(self) -> tuple[int, int]:
        """Messages and recipients a minute that are other servers'."""
        return (
            0 if self._messages is None else self._messages.others,
            0 if self._recipients is None else self._recipients.others,
        )

    def _renewed(self, meter: Meter | None, limit: int, *, of_recipients: bool) -> Meter | None:
        if not limit:
            return None
        if meter is not None:
            meter.use_limit(limit)
            return meter
        return Meter(limit) if self._meters is None else self._meters.meter(limit, of_recipients=of_recipients)
