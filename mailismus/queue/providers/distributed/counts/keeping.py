"""The counts of one server: in memory what it has changed, written down each `WRITE_S`.

    begin -> the stores are changed -> apply -> end        each of them seen by who recounts

*Rules*: what is changed in the stores lies between a begin and an end of its slots. Nothing is written down while the lease
is not sure: by then others may have recounted. Under another lease all counts begin anew; what was under way meanwhile is
in doubt. Counts are no promise: what can't be written is written later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

import attrs
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.counts.numbers import Changes, Numbers, Slot, slot_of
from mailismus.queue.providers.distributed.counts.stored import CLEAN, FORGET_S, OPEN, CountRow, server_row
from mailismus.queue.providers.distributed.format.share import Share, ShareName
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import IRows

WRITE_S = 5.0


@attrs.define
class OwnCount:
    """What this server has changed of a slot."""

    numbers: Numbers = attrs.field(factory=Numbers)
    changes: int = 0
    under_way: int = 0
    doubts: int = 0
    settled_doubts: int = 0
    """Those that a recount came behind."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is to be recounted."""
        return self.doubts > self.settled_doubts

    def begin(self) -> None:
        """Something is changed from now on."""
        self.changes += 1
        self.under_way += 1

    def end(self) -> None:
        """It was changed."""
        self.changes += 1
        self.under_way -= 1

    def add(self, change: Numbers) -> None:
        """So much has changed."""
        self.numbers = self.numbers + change

    def doubt(self) -> None:
        """It is not known how much has changed."""
        self.doubts += 1

    def settle(self, doubts: int) -> None:
        """A recount came behind so many doubts."""
        self.settled_doubts = max(self.settled_doubts, doubts)

    def row(self, slot: Slot, epoch: int) -> CountRow:
        """As it is written down."""
        return CountRow(slot, epoch, self.numbers, self.changes, self.under_way, self.doubts)


class CountKeeping:
    """The counts. `now`: UTC seconds."""

    def __init__(self, rows: IRows, lease: ServerLease, reactor: IReactorTime, now: Callable[[], float]) -> None:
        self._rows, self._lease, self._now = rows, lease, now
        self._writing = Regular(WRITE_S, reactor, "the counts can't be written")
        self.epoch = 0
        self.slots: dict[Slot, OwnCount] = {}
        self._unwritten: set[Slot] = set()
        self._hidden: dict[UUID, Slot] = {}
        """Shares that were begun, and where."""
        self._writes = 0
        self._last_at = 0.0
        self._lock = DeferredLock()

    async def start(self) -> None:
        """Count under the lease that was acquired. Raises `NotDone`, `Unanswered`."""
        self.epoch = self._lease.epoch
        await self._rows.write([server_row(self.epoch, OPEN, 0, self._at())])
        self._writing.start(self.write, WRITE_S)

    async def close(self) -> None:
        """Write all down, and end in order."""
        self._writing.close()
        try:
            await self.write()
            is_sure = self._lease.is_sure and self.epoch == self._lease.epoch and not self._unwritten
            if is_sure and not any(own.is_in_doubt or own.under_way for own in self.slots.values()):
                await self._rows.write([server_row(self.epoch, CLEAN, self._writes, self._at(), FORGET_S)])
        except StoreFailure:
            return  # another server counts anew

    # changes

    @contextmanager
    def changing(self, names: Iterable[ShareName]) -> Iterator[None]:
        """Shares are changed within."""
        slots = [slot_of(name) for name in names]
        for slot in slots:
            self._own(slot).begin()
        try:
            yield
        finally:
            for slot in slots:
                self._own(slot).end()

    @contextmanager
    def doubting(self, name: ShareName) -> Iterator[None]:
        """A share is changed within, and it is not known how much."""
        with self.changing([name]):
            try:
                yield
            finally:
                self.doubt([name])

    def hide(self, shares: Sequence[Share]) -> None:
        """Shares are about to be written."""
        for share in shares:
            if share.name.enqueue_id not in self._hidden:
                slot = self._hidden[share.name.enqueue_id] = slot_of(share.name)
                self._own(slot).begin()

    def show(self, names: Iterable[UUID]) -> None:
        """They are there, or removed."""
        for name in names:
            slot = self._hidden.pop(name, None)
            if slot is not None:
                self._own(slot).end()

    def apply(self, changes: Changes) -> None:
        """This has changed."""
        for slot, change in changes.items():
            self._own(slot).add(change)

    def doubt(self, names: Iterable[ShareName]) -> None:
        """Of these shares something was changed, and it is not known how much."""
        for name in names:
            self._own(slot_of(name)).doubt()

    def doubted(self) -> set[Slot]:
        """Slots that are to be recounted."""
        return {slot for slot, own in self.slots.items() if own.is_in_doubt}

    def recounted(self, row: CountRow) -> None:
        """A recount was written."""
        own = self.slots.get(row.slot)
        if own is not None and self.epoch in row.base:
            own.settle(row.base[self.epoch][1])

    def _own(self, slot: Slot) -> OwnCount:
        self._unwritten.add(slot)
        return self.slots.setdefault(slot, OwnCount())

    # writing

    def forget_before(self, starts: Mapping[str, float]) -> None:
        """Nothing lives before these slices of areas."""
        for slot in [slot for slot, own in self.slots.items() if slot[1] < starts[slot[0]] and not own.under_way]:
            del self.slots[slot]
            self._unwritten.discard(slot)

    async def write(self) -> None:
        """Write down what was changed. Raises `NotDone`, `Unanswered`."""
        await self._lock.acquire()
        try:
            await self._write()
        finally:
            self._lock.release()

    async def _write(self) -> None:
        if self.epoch and self._lease.epoch != self.epoch:
            self._begin_anew()
        if not self.epoch or not self._lease.is_sure:
            return
        for area in {area for area, _ in self._unwritten}:
            slots = {slot: self.slots[slot].changes for slot in self._unwritten if slot[0] == area}
            at = self._at()
            doubts = Counter({slot: self.slots[slot].doubts for slot in slots})
            await self._rows.write([self.slots[slot].row(slot, self.epoch).put(at) for slot in slots])
            for slot, changes in slots.items():
                own = self.slots.get(slot)
                if own is None or (own.changes == changes and own.doubts == doubts[slot]):
                    self._unwritten.discard(slot)
        self._writes += 1
        await self._rows.write([server_row(self.epoch, OPEN, self._writes, self._at())])

    def _begin_anew(self) -> None:
        """The lease was void, and there is another one: others have counted anew."""
        self.epoch, self._writes = self._lease.epoch, 0
        doubted = {slot: own.under_way for slot, own in self.slots.items() if own.under_way}
        self.slots = {slot: OwnCount(under_way=count, doubts=1) for slot, count in doubted.items()}
        self._unwritten = set(self.slots)

    def _at(self) -> float:
        """The time of a write: later than that of the one before, whatever the clock says."""
        self._last_at = max(self._now(), self._last_at + 0.001)
        return self._last_at
