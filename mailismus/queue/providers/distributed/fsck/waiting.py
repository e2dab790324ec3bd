"""What brings shares back: triggers in the broker, and due rows.

*Rules*: triggers are looked at by consuming them, none of them acked: they are delivered again. Of due rows those are known
that a start would read: from the first slot on, `AHEAD_S` into the future; of a share that is due later its own row is
looked at.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from uuid import UUID

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.errors import StartError
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.due import SHARD, SLOT_S, due_share_of, slot_key, slot_of
from mailismus.queue.providers.distributed.format.marks import name_of
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.format.tables import DUE, DUE_START, queue_of
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.stores.broker import IBroker, TriggerDelivery
from mailismus.queue.providers.distributed.stores.rows import IRows, Key
from mailismus.queue.providers.distributed.stores.together import together

AHEAD_S = 3 * 3600.0
MOST_HELD = 50_000
"""Messages of one consumer: the broker has no larger number."""
QUIET_S = 10.0
LOOK_S = 0.05
AT_A_TIME = 64
PAGE = 1000


@attrs.define
class ShareReminders:
    """What was found, by share. `None` among the numbers: all entries."""

    found: dict[UUID, set[int | None]] = attrs.field(factory=dict)
    names: dict[UUID, ShareName] = attrs.field(factory=dict)
    foreign_triggers: dict[str, int] = attrs.field(factory=dict)
    foreign_rows: dict[str, int] = attrs.field(factory=dict)

    def add(self, name: ShareName, numbers: Collection[int] | None) -> None:
        """Something brings these entries back."""
        self.found.setdefault(name.enqueue_id, set()).update((None,) if numbers is None else numbers)
        self.names[name.enqueue_id] = name

    def lacks(self, name: ShareName, numbers: Collection[int]) -> bool:
        """Whether nothing brings some of these back. From now on the share is known to be there."""
        self.names.pop(name.enqueue_id, None)
        found = self.found.get(name.enqueue_id, set())
        return None not in found and not found.issuperset(numbers)

    def not_met(self) -> Iterator[ShareName]:
        """Shares that nobody asked about."""
        yield from list(self.names.values())


@attrs.define(eq=False)
class _Receiver:
    """`TriggerReceiver` of one queue."""

    queue: str
    waiting: ShareReminders
    count: int = 0
    is_lost: bool = False

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        """A message was delivered."""
        self.count += 1
        read = read_trigger(trigger.body)
        if read is None or read.queue_name not in {area.value for area in Area}:
            self.waiting.foreign_triggers[self.queue] = self.waiting.foreign_triggers.get(self.queue, 0) + 1
            return
        self.waiting.add(name_of(read), read.numbers)

    def on_lost(self) -> None:
        """The connection is lost."""
        self.is_lost = True


async def gather_triggers(broker: IBroker, timers: IReactorTime, waiting: ShareReminders) -> None:
    """Learn all triggers. Raises `StartError` (75) where the broker does not hand them out, `NotDone`."""
    for area in Area:
        queue = queue_of(area.value)
        receiver, consumers = _Receiver(queue, waiting), []
        depth = await broker.depth(queue)
        try:
            while receiver.count < depth:
                consumers.append(await broker.consume(queue, MOST_HELD, receiver))
                await _receive(receiver, min(depth, len(consumers) * MOST_HELD), timers)
        finally:
            for consumer in consumers:
                await consumer.cancel()


async def _receive(receiver: _Receiver, count: int, timers: IReactorTime) -> None:
    before, quiet_since = -1, timers.seconds()
    while receiver.count < count:
        if receiver.count != before:
            before, quiet_since = receiver.count, timers.seconds()
        if receiver.is_lost or timers.seconds() > quiet_since + QUIET_S:
            text = f"queue {receiver.queue} of the broker has {count} messages, and hands out {receiver.count}: try again"
            raise StartError(os.EX_TEMPFAIL, text)
        await deferLater(timers, LOOK_S)


async def gather_due_rows(rows: IRows, now: float, waiting: ShareReminders) -> None:
    """Learn the due rows that a start would read. Raises `NotDone`."""
    for area in Area:
        row = await rows.row(DUE_START, (area.value, SHARD))
        start = None if row is None else row["due_slot"]
        slot = min(float(start), slot_of(now)) if isinstance(start, int | float) else slot_of(now)
        slots = [slot + step * SLOT_S for step in range(max(0, int((now + AHEAD_S - slot) // SLOT_S) + 1))]
        for at in range(0, len(slots), AT_A_TIME):
            await together(_gather_slot(rows, area, one, waiting) for one in slots[at : at + AT_A_TIME])


async def _gather_slot(rows: IRows, area: Area, slot: float, waiting: ShareReminders) -> None:
    after: Key | None = None
    while True:
        page = await rows.rows(DUE, slot_key(area.value, slot), after, PAGE)
        for row in page:
            due = due_share_of(row)
            if due is None:
                waiting.foreign_rows[area.value] = waiting.foreign_rows.get(area.value, 0) + 1
            else:
                waiting.add(due.name, None)
        if len(page) < PAGE:
            return
        after = (page[-1]["due_at"], page[-1]["enqueue_id"])
