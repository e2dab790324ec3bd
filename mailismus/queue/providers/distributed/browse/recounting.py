"""Recounts: slots are read, and what lives there is written down beside what servers had changed by then.

    what servers wrote down -> the slot is read -> the same again, written later: nothing was changed meanwhile -> a recount

*Rules*: a recount counts where no server had anything under way in the slot while it was read; else it is done again later.
Servers tell so by what they write down: who has written twice since the reading has told all that it had changed before its
end. One server at a time recounts after servers that ended without a word; doubts of its own each server sees to itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.counting import live_epochs
from mailismus.queue.providers.distributed.browse.partition import pages_of
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.counts.keeping import WRITE_S, CountKeeping, OwnCount
from mailismus.queue.providers.distributed.counts.numbers import Numbers, Slot, leader_of
from mailismus.queue.providers.distributed.counts.stored import (
    CLEAN,
    FORGET_S,
    RECOUNT,
    CountRow,
    SlotRows,
    gone_servers,
    rows_of_area,
    server_row,
    servers_of,
)
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import LEASES
from mailismus.queue.providers.distributed.hand.owning import OwnClock
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.rows import IRows

AT_A_TIME = 50
"""Slots that are read before it is asked whether they were changed meanwhile."""
LOOK_S = 15.0
LEASE = "recount"
LEASE_S = 120
AHEAD_S = 120
"""A server that is gone may have written by a clock that is ahead: what is written of it must count."""
TICK_S = 0.001
"""As small a time as the database's clock tells: of two writes at the same time each cell has the greater value."""
PATIENCE_S = 60.0
"""How long others may take to write down what they have changed."""


class Recounting:
    """The recounts of one server."""

    _log = Logger()

    def __init__(
        self,
        rows: IRows,
        keeping: CountKeeping,
        starts: Starts,
        finding: ShareFinding,
        clock: OwnClock,
        reactor: IReactorTime,
    ) -> None:
        self._rows, self._keeping, self._starts, self._finding = rows, keeping, starts, finding
        self._clock = clock
        self._looking = Regular(LOOK_S, reactor, "the queue can't be recounted")
        self._gone: frozenset[int] = frozenset()
        """Servers for whose sake all is recounted."""
        self._todo: set[Slot] = set()

    def start(self) -> None:
        """Look, and go on looking."""
        self._looking.start(self.look)

    def close(self) -> None:
        """Begin nothing more."""
        self._looking.close()

    async def look(self) -> None:
        """Recount what is to be recounted, as far as it can be now. Raises `NotDone`, `Unanswered`."""
        self._keeping.forget_before({area.value: self._starts.browse_start(area) for area in Area})
        gone = frozenset(gone_servers(await servers_of(self._rows), await live_epochs(self._rows)))
        if gone and await self._is_first():
            if not gone <= self._gone:
                self._todo = self._all_slots()
                self._gone = gone
            await self._recount_all(self._todo)
            if not self._todo and not self._looking.is_closed:
                await self._end(gone)
                self._gone = frozenset()
        doubted = self._keeping.doubted()
        await self._recount_all(doubted)

    async def _is_first(self) -> bool:
        """Whether this server has the lease for recounts of all. Raises `NotDone`, `Unanswered`."""
        mine = {"owner": self._keeping.epoch}
        found = await self._rows.add(LEASES, (LEASE,), mine, LEASE_S)
        if found is not None and found["owner"] == self._keeping.epoch:
            found = await self._rows.change(LEASES, (LEASE,), mine, mine, LEASE_S)
        elif found is not None and found["owner"] not in await live_epochs(self._rows):
            found = await self._rows.change(LEASES, (LEASE,), mine, {"owner": found["owner"]}, LEASE_S)
        return found is None

    async def _end(self, gone: Collection[int]) -> None:
        """All was recounted: nothing of these servers is missing."""
        at = await self._rows.now()
        for epoch in sorted(gone):
            ahead_s, ttl_s = (0, 0) if epoch == RECOUNT else (AHEAD_S, FORGET_S)
            await self._rows.write([server_row(epoch, CLEAN, 0, at + ahead_s, ttl_s)])
        self._log.info("The queue was counted anew.")

    def _all_slots(self) -> set[Slot]:
        now = self._clock.now()
        return {(area.value, start) for area in Area for start in self._starts.slices(area, now)}

    async def _recount_all(self, slots: set[Slot]) -> None:
        """Recount these slots; those that were recounted are taken out."""
        todo = sorted(slots)
        for at in range(0, len(todo), AT_A_TIME):
            if self._looking.is_closed:
                return
            slots.difference_update(await self._recount(todo[at : at + AT_A_TIME]))

    async def _recount(self, slots: Collection[Slot]) -> set[Slot]:
        """Return those that were recounted."""
        keeping, epoch = self._keeping, self._keeping.epoch
        begun_at = await self._rows.now()
        before, live = await self._rows_of(slots), await live_epochs(self._rows)
        live.discard(epoch)
        read: dict[Slot, tuple[Numbers, OwnCount]] = {}
        for slot in slots:
            own = keeping.slots.get(slot, OwnCount())
            changes = own.changes
            if own.under_way or any(row.under_way for other, row in before.get(slot, {}).items() if other in live):
                continue
            numbers = await self._read(slot)
            own = keeping.slots.get(slot, OwnCount())
            if numbers is not None and own.changes == changes:
                read[slot] = numbers, OwnCount(own.numbers, own.changes, 0, own.doubts)
        if not read or not await self._others_have_written():
            return set()
        await keeping.write()
        behind, live = await self._rows_of(read), await live_epochs(self._rows)
        while (at := await self._rows.now()) <= begun_at:  # later than the recount of a server before this one
            await self._clock.pause(TICK_S)
        done = set()
        for slot, (numbers, own) in read.items():
            others = {other: row for other, row in behind.get(slot, {}).items() if other not in (RECOUNT, epoch)}
            is_same = all(_is_same(before.get(slot, {}).get(other), row) for other, row in others.items() if other in live)
            if keeping.epoch != epoch or not is_same:
                continue
            former = behind.get(slot, {}).get(RECOUNT)
            over = (self._gone if former is None else self._gone | former.over) - {RECOUNT}
            base = {other: (row.numbers, row.doubts) for other, row in others.items() if other not in over}
            base[epoch] = own.numbers, own.doubts
            row = CountRow(slot, RECOUNT, numbers, base=base, over=over)
            await self._rows.write([row.put(at)])
            keeping.recounted(row)
            done.add(slot)
        return done

    async def _rows_of(self, slots: Collection[Slot]) -> Mapping[Slot, SlotRows]:
        found: dict[Slot, SlotRows] = {}
        for area in {area for area, _ in slots}:
            first = min(start for name, start in slots if name == area)
            found |= await rows_of_area(self._rows, area, first)
        return found

    async def _others_have_written(self) -> bool:
        """Wait until each other server has written twice: it began the second time behind this call."""
        own = self._keeping.epoch
        known = await servers_of(self._rows)
        live = await live_epochs(self._rows)
        waited_for = {epoch: writes + 2 for epoch, (_, writes) in known.items() if epoch in live and epoch != own}
        end = self._clock.elapsed() + PATIENCE_S
        while waited_for:
            if self._looking.is_closed or self._clock.elapsed() > end:
                return False
            await self._clock.pause(WRITE_S)
            for epoch, (_, writes) in (await servers_of(self._rows)).items():
                if epoch in waited_for and writes >= waited_for[epoch]:
                    del waited_for[epoch]
        return True

    async def _read(self, slot: Slot) -> Numbers | None:
        """What lives in a slot; None: some of it can't be read. Raises `NotDone`."""
        entries = messages = stored_bytes = 0
        for place in self._starts.places(Area(slot[0]), slot[1]):
            async for page in pages_of(self._rows, place):
                if page.gap is not None:
                    return None
                for living in page.shares:
                    entries += len(living.entries)
                    if await self._leads(living.share):
                        messages += 1
                        stored_bytes += living.share.message.stored_bytes
        return Numbers(entries, messages, stored_bytes)

    async def _leads(self, share: Share) -> bool:
        """Whether a message counts in an area by this share, of which something lives."""
        if share.message.recipient_count == 1:
            return True
        others = await self._finding.open_shares_of(share.message.spool_id)
        return leader_of(share.name.place.queue_name, [share.name, *others]) == share.name


def _is_same(before: CountRow | None, behind: CountRow) -> bool:
    return behind.under_way == 0 and behind.changes == (0 if before is None else before.changes)
