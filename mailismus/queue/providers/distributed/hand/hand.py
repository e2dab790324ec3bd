"""The shares in the hand, and the index of their entries. Pure.

*Rules*: an entry is in the hand once, however many triggers said so. A share's triggers are acked when the hand has nothing
more of it: what left it then is over by a mark, or has a due row; where another server has it, it gets one first. What a
commit under way has put in waits for its end. What another server may have leaves the hand, but for what is out: that leaves
when it is settled or given back, and is begun no more. So does what others have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Area, Entry
from mailismus.queue.providers.distributed.format.share import Share, ShareName
from mailismus.queue.providers.distributed.hand.held import Basis, Delivered, HandMessage, HeldShare
from mailismus.queue.providers.distributed.stores.rows import kept_time

MOST_ENTRIES = 5000
"""Entries that wait in memory, beside those that are out: shares beyond are read when there is room."""


class Hand:
    """The hand. `came`: told of areas whose entries may be taken; `left`: of claimed shares that leave it and live on;
    `strayed`: of shares that other servers have, and whose triggers are here; `gone`: of messages that have
    left the hand, be it for a moment."""

    def __init__(
        self,
        came: Callable[[set[Area]], None],
        left: Callable[[ShareName], None],
        strayed: Callable[[HeldShare], None],
        gone: Callable[[SpoolId], None],
    ) -> None:
        self.index: DueIndex[HandMessage] = DueIndex()
        self.shares: dict[UUID, HeldShare] = {}
        self.hidden: set[UUID] = set()
        """Shares of commits that are under way, or were refused and may be there all the same."""
        self._came, self._left, self._strayed, self._gone = came, left, strayed, gone

    def tell(self, areas: set[Area]) -> None:
        """Entries of these areas may be taken."""
        self._came(areas)

    def hide(self, shares: Sequence[Share]) -> None:
        """Shares are about to be written: they are nobody's until their commit has ended."""
        self.hidden.update(share.name.enqueue_id for share in shares)

    def has_room(self, now: float) -> bool:
        """Whether more shares may be read."""
        return self.index.has_room(MOST_ENTRIES, now)

    def share(self, name: ShareName) -> HeldShare:
        """The share of this name, known from now on. The caller adds a use, and ends it by `end_use`."""
        held = self.shares.get(name.enqueue_id)
        if held is None:
            held = self.shares[name.enqueue_id] = HeldShare(name)
        held.begin_use()
        return held

    def end_use(self, held: HeldShare) -> None:
        """What was under way for it has ended."""
        held.end_use()
        for delivered in self.leave(held):
            delivered.ack()

    def leave(self, held: HeldShare) -> Collection[Delivered]:
        """Forget a share, if nothing of it is here and nothing is under way for it. Return the triggers to be acked."""
        if held.here or held.uses:
            return ()
        if held.basis is Basis.NOTHING and held.deliveries:
            self._strayed(held)
            return ()
        if self.shares.pop(held.name.enqueue_id, None) is not None and held.left and held.basis is Basis.CLAIM:
            self._left(held.name)
        return held.take_deliveries()

    def add(
        self, held: HeldShare, numbers: Collection[int] | None, now: float, *, is_due: bool, is_told: bool = True
    ) -> None:
        """Add entries of a share that was read: those that are left and not here. `numbers` None: all. `is_due`: they are
        due, whatever their rows say. `is_told` False: nobody is told that they may be taken."""
        self.drop_over(held)
        now = max(now, kept_time(now))  # a time that was written may be one of this very millisecond
        share = held.whole
        spool_id = share.message.spool_id
        known = self.index.messages.get(spool_id)
        entries = [
            _due(entry, now) if is_due else entry
            for entry in share.message.entries
            if entry.number in held.left and (numbers is None or entry.number in numbers)
        ]
        if known is not None:
            entries = [entry for entry in entries if entry.number not in known.entries]
        if not entries:
            return
        for entry in entries:
            held.here.add(entry.number)
        if known is None:
            known = HandMessage(share.message.with_entries([]))
            known.begin(entries, held)
            self.index.add(known, now)
        else:
            for entry in entries:
                known.shares[entry.number] = held
                self.index.put(known, entry, now)
        if is_told and any(entry.due_at <= now for entry in entries):
            self._came({share.area})

    def end_elsewhere(self, held: HeldShare) -> None:
        """Nothing of a share is left, by marks of others."""
        held.learn(held.share, (), is_split=held.is_split)
        self.drop_over(held)

    def end_rival(self, name: ShareName, number: int) -> None:
        """An entry of a share has lost against another outcome."""
        held = self.shares.get(name.enqueue_id)
        if held is not None:
            held.left.discard(number)
            self.drop_over(held)

    def drop_over(self, held: HeldShare) -> None:
        """What others have ended leaves the hand, but for what is out: that is settled yet."""
        known = self.index.messages.get(held.whole.message.spool_id) if held.here else None
        for number in held.here - held.left if known is not None else ():
            if known is not None and number not in known.out:
                self._remove(known, number)

    def is_elsewhere(self, held: HeldShare, numbers: Collection[int] | None) -> bool:
        """Whether an entry of a share is here as that of another one, which it moved from: only one of the two counts in the
        end."""
        known = self.index.messages.get(held.whole.message.spool_id)
        if known is None:
            return False
        return any(
            known.shares.get(number, held) is not held for number in held.left if numbers is None or number in numbers
        )

    def is_out(self, queue_id: QueueId) -> bool:
        """Whether an entry is handed out, or being settled."""
        known = self.index.messages.get(queue_id.spool_id)
        return known is not None and queue_id.number in known.out

    def end(self, spool_id: SpoolId, numbers: Iterable[int]) -> set[HeldShare]:
        """These entries have ended, or moved, by durable marks. Return their shares, from some of which nothing is here."""
        known, touched = self.index.messages[spool_id], set()
        for number in numbers:
            held = known.shares[number]
            held.left.discard(number)
            touched.add(held)
            self._remove(known, number)
        return touched

    def let_go(self, known: HandMessage, number: int) -> HeldShare:
        """An entry leaves the hand, and lives on: something durable brings it back. Return its share."""
        held = known.shares[number]
        self._remove(known, number)
        return held

    def _remove(self, known: HandMessage, number: int) -> None:
        held = known.shares.pop(number)
        held.here.discard(number)
        known.settling.pop(number, None)
        self.index.move(known, number)
        if not known.entries:
            self._gone(known.message.spool_id)

    def drop_lost(self) -> None:
        """Forget triggers whose consumer has ended: they are delivered again, maybe to others. What rests on them alone is
        lost."""
        for held in list(self.shares.values()):
            held.drop_lost()
            if held.rests_on_trigger and not held.deliveries:
                self.lose(held)

    def lose(self, held: HeldShare) -> None:
        """Another server may have a share."""
        held.lose()
        known = self.index.messages.get(held.share.message.spool_id) if held.share is not None else None
        for number in list(held.here) if known is not None else ():
            if known is not None and number not in known.out:
                self._remove(known, number)
        if not held.here and not held.uses:
            self.shares.pop(held.name.enqueue_id, None)

    def lose_all(self) -> None:
        """Other servers may have everything."""
        for held in list(self.shares.values()):
            self.lose(held)

    def come_back(self, queue_ids: Iterable[QueueId]) -> list[QueueId]:
        """What was out, and is lost or over by marks of others, leaves the hand. Return the rest."""
        ours = []
        for queue_id in queue_ids:
            known = self.index.messages.get(queue_id.spool_id)
            held = None if known is None else known.shares.get(queue_id.number)
            if known is None or held is None or (held.basis is not Basis.NOTHING and queue_id.number in held.left):
                ours.append(queue_id)
            else:
                self.forget(known, queue_id.number)
        return ours

    def has(self, queue_id: QueueId) -> bool:
        """Whether an entry is in the hand."""
        known = self.index.messages.get(queue_id.spool_id)
        return known is not None and queue_id.number in known.entries

    def put_back(self, queue_ids: Iterable[QueueId]) -> None:
        """What was brought, and is not used, leaves the hand; not where a trigger has brought it too."""
        for queue_id in queue_ids:
            known = self.index.messages.get(queue_id.spool_id)
            held = None if known is None else known.shares.get(queue_id.number)
            if known is not None and held is not None and not (held.deliveries or self.is_out(queue_id)):
                self.forget(known, queue_id.number)

    def forget(self, known: HandMessage, number: int) -> None:
        """An entry that another server may have leaves the hand."""
        held = self.let_go(known, number)
        for delivered in self.leave(held):
            delivered.ack()

    def may_try(self, spool_id: SpoolId, elapsed: float) -> bool:
        """Whether all that is here of a message may be tried, and something of it lives."""
        known = self.index.messages.get(spool_id)
        lives = False
        for held in set(known.shares.values()) if known is not None else ():
            if not held.may_try(elapsed):
                return False
            lives = lives or not held.left.isdisjoint(held.here)
        return lives


def _due(entry: Entry, now: float) -> Entry:
    if entry.due_at <= now:
        return entry
    return Entry(
        *(entry.number, entry.recipient, entry.area, now, entry.attempts, entry.reply, entry.host, entry.words),
    )
