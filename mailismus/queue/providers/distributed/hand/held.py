"""A share in the hand, and a message of which shares are there. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from mailismus.queue.due.entries import DueMessage
from mailismus.queue.interface import Entry, Message
from mailismus.queue.providers.distributed.format.due import DueShare
from mailismus.queue.providers.distributed.format.share import Share, ShareName

TRUST_S = 20.0
"""Seconds for which a trigger of new mail is trusted without a claim: others wait longer before they take over."""


class Delivered(Protocol):
    """A trigger that was delivered, and is not acked."""

    @property
    def is_redelivered(self) -> bool:
        """Whether a server may have had it before."""

    @property
    def is_lost(self) -> bool:
        """Whether its consumer has ended: it will be delivered again."""

    def ack(self) -> None:
        """It is over."""


class Basis(enum.Enum):
    """Why what is here of a share may be tried."""

    NOTHING = "nothing"
    """It may not: another server may have it."""
    NEW = "new"
    """Nobody else was ever told of it: a trigger of new mail that was never delivered before, or the share was made here."""
    CLAIM = "claim"


@attrs.define(eq=False)
class HeldShare:
    """A share of which the hand has entries, or triggers."""

    name: ShareName
    share: Share | None = None
    """None: its rows were not read yet."""
    left: set[int] = attrs.field(factory=set)
    """Numbers of the entries that no mark has ended, in the hand or not, as far as this server knows."""
    here: set[int] = attrs.field(factory=set)
    """Of these, the numbers of those that are in the hand."""
    is_split: bool = False
    """Whether some of its entries have moved, so that other shares of the message may be there."""
    deliveries: list[Delivered] = attrs.field(factory=list)
    """Triggers that said so. They are acked when nothing of it is here."""
    uses: int = 0
    """What is under way for it, and needs to know of entries that end meanwhile."""
    basis: Basis = Basis.NOTHING
    new_since: float = 0.0
    """Since when it is `Basis.NEW`, in elapsed seconds."""
    had_first: bool = False
    """Whether its first trigger came here, or it was made here: no other server will get that."""
    is_noted: bool = False
    """Whether its head says that there are marks; unless its message was over with the first."""
    heir: DueShare | None = None
    """Of a share that was made here and needs no trigger: the row by which another server learns of it."""

    def begin_use(self) -> None:
        """Something is under way for it."""
        self.uses += 1

    def end_use(self) -> None:
        """It has ended."""
        self.uses -= 1

    def learn(self, share: Share | None, left: Iterable[int], *, is_split: bool) -> None:
        """Note what was read of it. An entry that was over stays so."""
        if self.share is None:
            self.share, self.left, self.is_split = share, set(left), is_split
        else:
            self.left.intersection_update(left)
            self.is_split = self.is_split or is_split

    def forget(self) -> None:
        """It is to be read again, unless something of it is here."""
        if not self.here:
            self.share = None

    def note(self) -> None:
        """A mark was written, and the note beside it."""
        self.is_noted = True

    def split(self) -> None:
        """Some of its entries have moved."""
        self.is_split = True

    def trust(self, since: float) -> None:
        """Nobody else was told of it, by this time."""
        self.basis, self.new_since, self.had_first = Basis.NEW, since, True

    def claimed(self) -> None:
        """It is claimed for this server."""
        self.basis = Basis.CLAIM

    def lose(self) -> None:
        """Another server may have it."""
        self.basis = Basis.NOTHING

    def inherit(self, heir: DueShare) -> None:
        """Another server will learn of it by this row."""
        self.heir = heir

    def may_try(self, elapsed: float) -> bool:
        """Whether what is here of it may be tried."""
        return self.basis is Basis.CLAIM or (self.basis is Basis.NEW and elapsed < self.new_since + TRUST_S)

    @property
    def rests_on_trigger(self) -> bool:
        """Whether it is this server's by an unacked trigger alone."""
        return self.basis is Basis.NEW and self.heir is None

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

    def has_free(self, number: int, name: ShareName) -> bool:
        """Whether an entry is here, as one of this share, and not out."""
        held = self.shares.get(number)
        return held is not None and held.name == name and number not in self.out

    def begin(self, entries: Sequence[Entry], held: HeldShare) -> None:
        """The first entries, of one share."""
        self.entries = {entry.number: entry for entry in entries}
        self.shares = {entry.number: held for entry in entries}
