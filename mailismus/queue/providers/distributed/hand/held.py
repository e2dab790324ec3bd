"""A share in the hand, and a message of which shares are there. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from mailismus.queue.due.entries import DueMessage
from mailismus.queue.interface import Entry, Message
from mailismus.queue.providers.distributed.format.share import Share, ShareName


class Delivered(Protocol):
    """A trigger that was delivered, and is not acked."""

    @property
    def is_lost(self) -> bool:
        """Whether its consumer has ended: it will be delivered again."""

    def ack(self) -> None:
        """It is over."""


@attrs.define(eq=False)
class HeldShare:
    """A share of which the hand has entries, or triggers."""

    name: ShareName
    share: Share | None = None
    """None: its rows were not read yet."""
    left: set[int] = attrs.field(factory=set)
    """Numbers of the entries that no mark has ended, in the hand or not. All changes are this server's."""
    here: set[int] = attrs.field(factory=set)
    """Of these, the numbers of those that are in the hand."""
    is_split: bool = False
    """Whether some of its entries have moved, so that other shares of the message may be there."""
    deliveries: list[Delivered] = attrs.field(factory=list)
    """Triggers that said so. They are acked when nothing of it is here."""
    uses: int = 0
    """What is under way for it, and needs to know of entries that end meanwhile."""

    def begin_use(self) -> None:
        """Something is under way for it."""
        self.uses += 1

    def end_use(self) -> None:
        """It has ended."""
        self.uses -= 1

    def learn(self, share: Share | None, left: Iterable[int], *, is_split: bool) -> None:
        """Note what was read of it. What is known already stays: it is newer."""
        if self.share is None:
            self.share, self.left, self.is_split = share, set(left), is_split

    def forget(self) -> None:
        """It is to be read again, unless something of it is here."""
        if not self.here:
            self.share = None

    def split(self) -> None:
        """Some of its entries have moved."""
        self.is_split = True

    def take_deliveries(self) -> list[Delivered]:
        """Its triggers, which are acked now."""
        deliveries, self.deliveries = self.deliveries, []
        return deliveries

    def drop_lost(self) -> None:
        """Forget triggers that will be delivered again."""
        self.deliveries = [delivered for delivered in self.deliveries if not delivered.is_lost]

    def drop(self, gone: Delivered) -> None:
        """Forget a trigger."""
        self.deliveries = [delivered for delivered in self.deliveries if delivered is not gone]

    @property
    def whole(self) -> Share:
        """The share, whose rows were read."""
        assert self.share is not None, "its rows were read"
        return self.share

    @property
    def is_whole_message(self) -> bool:
        """Whether its end is surely that of the message."""
        message = self.whole.message
        return not self.is_split and self.whole.origin is None and len(message.entries) == message.recipient_count


class HandMessage(DueMessage):
    """A message, the share of each entry, and the number of pending settlements of each: such an entry is out until the
    last."""

    __slots__ = ("settling", "shares")

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.shares: dict[int, HeldShare] = {}
        """By the number of the entry."""
        self.settling: Counter[int] = Counter()

    def begin(self, entries: Sequence[Entry], held: HeldShare) -> None:
        """The first entries, of one share."""
        self.entries = {entry.number: entry for entry in entries}
        self.shares = {entry.number: held for entry in entries}
