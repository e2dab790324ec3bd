"""Carries settlements out, one message after the other, until they are durable.

    settlements of a message -> its entries are brought into the hand -> batch ... -> content, index rows -> acks

*Rules*: two settlements of one message never overlap. What moves on is claimed first: where another server has it, it stays
that one's, and this outcome is forgotten. What has ended is written all the same, and does not wait for claims. Behind each
batch the marks are read: what does not count against an outcome of another server is ended (`rivals`). A batch that is not
answered is repeated, the same, as long as the server runs. Where its answer took longer than `LATE_S`, what went on moves
once more, into the present slice, and no bounce of it is kept here: due rows bring them back. The content goes when the
message is over by a durable mark, and the trigger is acked behind that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Entry, Settlement
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.counts.numbers import left
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.enqueue.plan import closed_row
from mailismus.queue.providers.distributed.enqueue.steps import LATE_S, PAUSE_S, EnqueueClock
from mailismus.queue.providers.distributed.format.due import SLOT_S, DueKind, due_row, due_share
from mailismus.queue.providers.distributed.format.ids import CLOCKS_DIFFER_S
from mailismus.queue.providers.distributed.format.marks import Marks, removed_mark
from mailismus.queue.providers.distributed.format.share import Share, ShareName, to_signed
from mailismus.queue.providers.distributed.format.tables import DELETED, MAILS
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import Basis, Delivered, HeldShare
from mailismus.queue.providers.distributed.hand.losing import end_lost
from mailismus.queue.providers.distributed.hand.owning import Owned, Owning
from mailismus.queue.providers.distributed.hand.reading import Condition, read_marks, read_share, rows_of
from mailismus.queue.providers.distributed.settle.finding import ShareFinding, open_shares
from mailismus.queue.providers.distributed.settle.plan import Leaving, SettleBatch, plan_settlements
from mailismus.queue.providers.distributed.settle.rivals import Rival, losers_of, marks_of_the_gone
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.rows import Erase, Write, kept_time
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.view.change import ViewSettings

T = TypeVar("T")
REMOVE_TRIES = 5

Settled = Mapping[int, Settlement]
"""The last settlement of each entry of a message, by its number."""


class ShareSettling:
    """Settlements of one server."""

    _log = Logger()

    def __init__(
        self,
        stores: Stores,
        hand: Hand,
        finding: ShareFinding,
        clock: EnqueueClock,
        view: Callable[[], ViewSettings],
        new_id: Callable[[], UUID],
        firing: Firing,
        owning: Owning,
        counts: CountKeeping,
        over: Callable[[SpoolId], None],
    ) -> None:
        """`over`: told of messages of which nothing is left."""
        self._stores, self._hand, self._finding, self._clock = stores, hand, finding, clock
        self._view, self._new_id, self._firing, self._owning = view, new_id, firing, owning
        self._counts, self._over = counts, over
        self._locks: dict[SpoolId, _Lock] = {}

    async def settle(self, spool_id: SpoolId, settled: Settled) -> bool:
        """Settle entries of a message, those that are there. Return whether it is over. Waits for the database."""
        await self._claim_ahead(spool_id, settled)
        async with self.lock(spool_id):
            is_over = False
            for batch in await self.begin(spool_id, settled):
                with self.counting(batch):
                    begun = self._clock.elapsed()
                    await self.write_surely(batch.writes)
                    is_over = await self.complete(spool_id, batch, late=self._clock.elapsed() - begun > LATE_S) or is_over
            return is_over

    def counting(self, batch: SettleBatch) -> AbstractContextManager[None]:
        """Within, a batch is written and completed."""
        return self._counts.changing([batch.leaving.share.name, *(share.name for share in batch.shares)])

    def lock(self, spool_id: SpoolId) -> _Turn:
        """A turn of a message's settlements, for `async with`."""
        return _Turn(self._locks, spool_id)

    async def begin(self, spool_id: SpoolId, settled: Settled) -> list[SettleBatch]:
        """The batches for these settlements. The caller has the message's turn, and calls `complete` for each that is
        durable."""
        await self._surely(lambda: self.bring(spool_id, settled))
        known = self._hand.index.messages.get(spool_id)
        if known is None:
            return []
        leaving: dict[HeldShare, dict[int, tuple[Entry, Settlement]]] = defaultdict(dict)
        for number, settlement in settled.items():
            entry = known.entries.get(number)
            if entry is not None:
                leaving[known.shares[number]][number] = (entry, settlement)
                known.go_out((number,))
        batches: list[SettleBatch] = []
        for held, entries in leaving.items():
            await self._keep_ours(held, entries)
            if entries:
                is_whole, left = held.is_whole_message, frozenset(held.left)
                batches += self._plan(Leaving(held.whole, left, is_whole, entries, held.had_first, held.is_noted))
        return batches

    async def _claim_ahead(self, spool_id: SpoolId, settled: Settled) -> None:
        """Claim what is to move on, before the message's turn: outcomes of its other entries don't wait for it."""
        known = self._hand.index.messages.get(spool_id)
        moving = {number for number, settlement in settled.items() if settlement.area is not None}
        shares = {} if known is None else known.shares
        for held in {shares[number] for number in moving if number in shares}:
            if held.basis is Basis.NEW:
                await self._claim(held)

    async def _claim(self, held: HeldShare) -> Owned:
        """Claim a share, and learn what is left of it where another server may have had it."""
        held.begin_use()
        owned = await self._surely(lambda: self._owning.claim(held))
        if owned is Owned.NOW:
            await self._surely(lambda: self._owning.read_again(held))
        self._hand.end_use(held)
        return owned

    async def _keep_ours(self, held: HeldShare, entries: dict[int, tuple[Entry, Settlement]]) -> None:
        """Leave out what is to move on and is another server's."""
        moving = [number for number, (_, settlement) in entries.items() if settlement.area is not None]
        if not moving:
            return
        held.begin_use()
        owned = Owned.STILL if held.basis is Basis.CLAIM else await self._claim(held)
        for number in moving:
            if owned is Owned.NOT or number not in held.left:
                del entries[number]
                self._hand.forget(self._hand.index.messages[held.whole.message.spool_id], number)
        self._hand.end_use(held)

    def _plan(self, leaving: Leaving) -> list[SettleBatch]:
        clock = self._clock
        return list(plan_settlements(leaving, self._view(), clock.now(), self._new_id, clock.epoch()))

    async def bring(self, spool_id: SpoolId, numbers: Collection[int]) -> None:
        """Bring entries of a message into the hand that are not there, as far as they live. Raises `NotDone`."""
        known = self._hand.index.messages.get(spool_id)
        missing = {number for number in numbers if known is None or number not in known.entries}
        if not missing:
            return
        for name in await self._finding.shares_of(spool_id):
            await self.bring_of(name, missing)

    async def carry(self, share: Share, numbers: Collection[int]) -> int:
        """Move these entries of a share into the present slice, as they are; return how many: those that are out stay, and
        all where another server has the share. Raises `NotDone`."""
        spool_id, name = share.message.spool_id, share.name
        async with self.lock(spool_id):
            if not await self.bring_ours(share, numbers, is_told=False):
                return 0
            known = self._hand.index.messages.get(spool_id)
            entries = [] if known is None else [known.entries[one] for one in numbers if known.has_free(one, name)]
            moved = 0
            for batch in await self.begin(spool_id, {entry.number: _same(entry, share) for entry in entries}):
                with self.counting(batch):
                    begun = self._clock.elapsed()
                    await self.write_surely([*batch.writes, *self._forgotten_due_row(share, batch)])
                    await self.complete(spool_id, batch, late=self._clock.elapsed() - begun > LATE_S)
                    moved += len(batch.ended)
            return moved

    def _forgotten_due_row(self, share: Share, batch: SettleBatch) -> Iterator[Write]:
        """Has the row go by which a share waited that moves with this batch, unless its slot goes soon."""
        now = self._clock.now()
        if batch.is_closed and share.due_at > now + SLOT_S:
            due = due_share(share.name, share.due_at, now, self._clock.epoch())
            yield attrs.evolve(due_row(due, now), ttl_s=SLOT_S)

    async def bring_ours(self, share: Share, numbers: Collection[int], *, is_told: bool = True) -> bool:
        """As `bring_of`, of a share whose rows were read, and that is claimed before. False: another server has it. Raises
        `NotDone`."""
        name, is_known = share.name, False
        held = self._hand.share(name)
        try:
            owned = await self._owning.claim(held)
            if owned is not Owned.NOT:
                if owned is Owned.NOW and held.share is not None:
                    await self._owning.read_again(held)
                    self._hand.drop_over(held)
                await self.bring_of(name, numbers, share, is_told=is_told)
            is_known = True
            return owned is not Owned.NOT
        finally:
            self._hand.end_use(held)
            if not is_known and name.enqueue_id not in self._hand.shares:
                self._owning.give_up(name)  # it may be claimed, and nothing of it is here

    async def bring_of(
        self, name: ShareName, numbers: Collection[int], share: Share | None = None, *, is_told: bool = True
    ) -> None:
        """Bring these entries of a share into the hand, as far as they live. `share`: its rows, which never change, where
        they were read; `is_told`: as `Hand.add`. Raises `NotDone`."""
        held, rows = self._hand.share(name), self._stores.rows
        try:
            if not held.here.issuperset(numbers):
                found = await (read_share(rows, name) if share is None else read_marks(rows, share))
                if found.lost:
                    with self._counts.doubting(name):
                        await end_lost(rows, found, self._clock.now())
                if found.condition is Condition.LIVES and name.enqueue_id not in self._hand.hidden:
                    held.learn(found.share, found.left, is_split=found.is_split)
                    self._hand.add(held, numbers, self._clock.now(), is_due=False, is_told=is_told)
        finally:
            self._hand.end_use(held)

    async def complete(self, spool_id: SpoolId, batch: SettleBatch, *, late: bool = False) -> bool:
        """A batch is durable. Return whether the message is over."""
        lost = await self._surely(lambda: self._end_losers(batch))
        is_over = await self._count(spool_id, batch)
        touched = self._hand.end(spool_id, batch.ended)
        for held in touched:
            held.note()
        if batch.shares:
            for held in touched:
                held.split()
            self._firing.add(batch.due)
            if late:
                await self._carry(batch.shares)
            else:
                self._keep_bounces(batch, lost)
        for held in touched:
            if held.heir is not None and not held.left:
                self._firing.forget(held.heir)
        acks = [delivered for held in touched for delivered in self._hand.leave(held)]
        if is_over:
            self._over(spool_id)
            has_index = bool(lost) or not batch.ends_message
            freeing = Deferred.fromCoroutine(self._free(batch.leaving.share, acks, has_index=has_index))
            freeing.addErrback(lambda failure: self._log.failure("a message can't be freed", failure))
        else:
            _ack(acks)
        return is_over

    async def _end_losers(self, batch: SettleBatch) -> set[Rival]:
        """End what does not count against another outcome, whoever wrote it. Raises `NotDone`, `Unanswered`."""
        rows, share = self._stores.rows, batch.leaving.share
        marks = Marks(await rows_of(rows, DELETED, share.name))
        now = kept_time(self._clock.now())
        gone = marks_of_the_gone(batch, marks, now)
        if gone:
            self._counts.doubt([share.name])
            await rows.write(gone)
        todo, ended = list(losers_of(batch, marks)), set[Rival]()
        while todo:
            rival = todo.pop()
            if rival not in ended:
                ended.add(rival)
                with self._counts.doubting(rival.share):
                    todo += await self._end_rival(rival, now)
        return ended

    async def _end_rival(self, rival: Rival, now: float) -> list[Rival]:
        """End one, and return that which goes on with it."""
        rows = self._stores.rows
        await rows.write([removed_mark(rival.share, rival.number, now)])
        goes_to = Marks(await rows_of(rows, DELETED, rival.share)).goes_to(rival.share.enqueue_id, rival.number)
        self._hand.end_rival(rival.share, rival.number)
        found = await read_share(rows, rival.share)
        if found.condition is Condition.OVER and found.share is not None:
            await rows.write([closed_row(found.share, now)])
        return [] if goes_to is None else [Rival(goes_to, rival.number)]

    def _keep_bounces(self, batch: SettleBatch, lost: Collection[Rival]) -> None:
        """What this server has made and is due stays here, unless its lease was void meanwhile: then another server has
        taken it over by its due row, and both would report it."""
        for share, due in zip(batch.shares, batch.due, strict=True):
            numbers = [entry.number for entry in share.message.entries if Rival(share.name, entry.number) not in lost]
            if due.kind is DueKind.GIVEN_BACK and numbers and self._owning.has_kept(due.writer):
                held = self._hand.share(share.name)
                held.learn(share, numbers, is_split=False)
                held.trust(self._clock.elapsed())
                held.inherit(due)
                self._hand.add(held, None, self._clock.now(), is_due=True)
                self._hand.end_use(held)

    async def _carry(self, shares: Iterable[Share]) -> None:
        """Move new shares into the present slice: a clean-up might have passed that of their rows."""
        for share in shares:
            entries = {entry.number: (entry, _same(entry, share)) for entry in share.message.entries}
            for batch in self._plan(Leaving(share, frozenset(entries), False, entries)):
                begun = self._clock.elapsed()
                with self.counting(batch):
                    await self.write_surely(batch.writes)
                    await self._count(share.message.spool_id, batch)
                self._firing.add(batch.due)
                if self._clock.elapsed() - begun > LATE_S:
                    await self._carry(batch.shares)

    async def _count(self, spool_id: SpoolId, batch: SettleBatch) -> bool:
        """Count what a batch has changed. Return whether the message is over."""
        share, indexed = batch.leaving.share, None
        has_others = share.message.recipient_count > 1 and bool(batch.shares)
        if not batch.ends_message and (batch.is_closed or has_others):
            indexed = await self._surely(lambda: self._finding.index_of(spool_id))
        others = None if indexed is None or share.message.recipient_count == 1 else open_shares(indexed)
        self._counts.apply(left(share, len(batch.ended), batch.shares, others, is_closed=batch.is_closed))
        return batch.ends_message or (indexed is not None and batch.is_closed and not open_shares(indexed))

    async def _free(self, share: Share, acks: Collection[Delivered], *, has_index: bool) -> None:
        if not has_index:
            has_index = await self._surely(lambda: self._finding.has_index(share))
        if has_index:  # first: a content that is left is found, and its index with it, but not the other way
            until = kept_time(self._clock.now()) + CLOCKS_DIFFER_S  # by a clock that is ahead rows may be written yet
            await self.write_surely([Erase(MAILS, (to_signed(share.message.spool_id),), until)])
        for _ in range(REMOVE_TRIES):
            try:
                await self._stores.objects.remove(share.blob.key)
                break
            except StoreFailure:
                await self._clock.pause(PAUSE_S)
        _ack(acks)

    async def write_surely(self, writes: Sequence[Write]) -> None:
        """Write until it is done."""
        await self._surely(lambda: self._write(writes))

    async def _write(self, writes: Sequence[Write]) -> None:
        await self._stores.rows.write(writes)

    async def _surely(self, call: Callable[[], Coroutine[Deferred[Any], Any, T]]) -> T:
        """Call until it is done."""
        while True:
            try:
                return await call()
            except (NotDone, Unanswered) as failure:
                self._log.debug("asked again: {failure}", failure=failure)
                await self._clock.pause(PAUSE_S)


def _same(entry: Entry, share: Share) -> Settlement:
    queue_id = QueueId(share.message.spool_id, entry.number)
    return Settlement(queue_id, share.area, share.due_at, entry.attempts, entry.reply, entry.host)


def _ack(acks: Iterable[Delivered]) -> None:
    for delivered in acks:
        delivered.ack()


@attrs.define
class _Lock:
    lock: DeferredLock = attrs.field(factory=DeferredLock)
    uses: int = 0


class _Turn:
    """A turn of a message's settlements."""

    def __init__(self, locks: dict[SpoolId, _Lock], spool_id: SpoolId) -> None:
        self._locks, self._spool_id = locks, spool_id

    async def __aenter__(self) -> None:
        lock = self._locks.setdefault(self._spool_id, _Lock())
        lock.uses += 1
        await lock.lock.acquire()

    async def __aexit__(self, *error: object) -> None:
        lock = self._locks[self._spool_id]
        lock.uses -= 1
        if not lock.uses:
            del self._locks[self._spool_id]
        lock.lock.release()
