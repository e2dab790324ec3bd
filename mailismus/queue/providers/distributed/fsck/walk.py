"""One look at a queue: all faults, in their order: numbers, then share by share, then what no share was met for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from functools import partial

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.fsck.finding import Checked
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.partition import whole_pages_of
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import DEAD
from mailismus.queue.providers.distributed.fsck.contents import ContentCheck
from mailismus.queue.providers.distributed.fsck.fault import SharedFault, fault
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind as Kind
from mailismus.queue.providers.distributed.fsck.numbers import NumberCheck
from mailismus.queue.providers.distributed.fsck.repairs import SharedRepairs
from mailismus.queue.providers.distributed.fsck.shares import ShareCheck
from mailismus.queue.providers.distributed.fsck.waiting import ShareReminders, gather_due_rows, gather_triggers
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.stopped.look import SharedLook
from mailismus.queue.providers.distributed.stores.stores import Stores


@attrs.define
class SharedWalk:
    """A look. `now`: UTC seconds; `keep_s`: as of `Starts`; `is_beside`: servers run, whose triggers are left alone;
    `contents`: keys of those that are read, None: all."""

    stores: Stores
    look: SharedLook
    repairs: SharedRepairs
    timers: IReactorTime
    now: Callable[[], float]
    keep_s: float
    is_beside: bool = False
    contents: Collection[str] | None = None
    shares: int = 0
    entries: int = 0
    objects: int = 0

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""
        return (
            Checked("shares", self.shares, "share", "shares"),
            Checked("entries", self.entries, "entry", "entries"),
            Checked("contents", self.objects, "content", "contents"),
        )

    async def faults(self) -> AsyncIterator[SharedFault]:
        """All of them. Raises `StartError`, `NotDone`."""
        rows, finding = self.stores.rows, self.look.finding
        window_s = self.look.view.reading().slice_window_s
        numbers, waiting = NumberCheck(rows, self.now, window_s, self.keep_s), ShareReminders()
        async for one in numbers.faults():
            yield one
        if not self.is_beside:
            await gather_triggers(self.stores.broker, self.timers, waiting)
        await gather_due_rows(rows, self.now(), waiting)
        contents = ContentCheck(self.stores.objects, rows, finding, self.repairs, self.contents)
        check = ShareCheck(rows, finding, numbers, waiting, contents, self.repairs, not self.is_beside)
        contents.highest_epoch = numbers.highest_epoch
        for place in self._places(numbers):
            async for one in self._partition(place, check):
                yield one
        async for one in self._not_met(waiting):
            yield one
        async for one in contents.faults():
            yield one
        self.objects = contents.count
        dead = await self.stores.broker.depth(DEAD)
        if dead:
            yield fault(Kind.DEAD_LETTERS, DEAD, None, count=dead)

    def _places(self, numbers: NumberCheck) -> Iterator[SharePlace]:
        """All partitions that may have rows; a clock that is ahead may have put some into the next slice."""
        view = self.look.view.reading()
        window = view.slice_window_s
        until = slice_start(self.now() + window, window)
        for area in Area:
            start = slice_start(min(numbers.content[area], numbers.browse[area]), window)
            while start <= until:
                yield from (SharePlace(area.value, start, bucket) for bucket in range(view.bucket_count))
                start += window

    async def _partition(self, place: SharePlace, check: ShareCheck) -> AsyncIterator[SharedFault]:
        async for page in whole_pages_of(self.stores.rows, place):
            for enqueue_id in page.damaged:
                name = ShareName(place, enqueue_id)
                check.waiting.lacks(name, ())  # it is there
                yield fault(Kind.SHARE_DAMAGED, share_name(name), partial(self.repairs.set_aside, name))
            for share in page.shares:
                self.shares += 1
                self.entries += len(share.message.entries)
                async for one in check.faults(share, page.marks):
                    yield one

    async def _not_met(self, waiting: ShareReminders) -> AsyncIterator[SharedFault]:
        for name in waiting.not_met():
            if (await read_share(self.stores.rows, name)).condition is Condition.UNKNOWN:
                yield fault(Kind.TRIGGER_UNKNOWN, share_name(name), None)
        for queue, count in waiting.foreign_triggers.items():
            yield fault(Kind.TRIGGER_FOREIGN, queue, None, count=count)
        for area, count in waiting.foreign_rows.items():
            yield fault(Kind.DUE_FOREIGN, f"due_mails {area}", None, count=count)
