"""`IQueueBuilder` of the shared queue: mail of another provider is put in, while servers are shut out.

*Rules*: it is built where no mail lives. What a conversion left that was stopped is removed first. Spool ids stay, so each
message is found by index rows. Shares lie in the present slice. What is due has a trigger, which says that servers are to
claim it; what waits has a due row of no server's. A content is in memory, one at a time. Numbers of acts that entries are
marked with are given to no others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from uuid import UUID

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import StartError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import format_spool_id
from mailismus.queue.acts.marking import acts_of
from mailismus.queue.interface import Area, Message, Placement
from mailismus.queue.provider import QueueRoom
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.conversion.asking import until_answered
from mailismus.queue.providers.distributed.conversion.emptying import empty, is_empty
from mailismus.queue.providers.distributed.conversion.shutting import shut
from mailismus.queue.providers.distributed.counts.stored import OPEN, RECOUNT, server_row
from mailismus.queue.providers.distributed.enqueue.plan import Arrived, plan_enqueue
from mailismus.queue.providers.distributed.format.batches import in_turn
from mailismus.queue.providers.distributed.format.due import SHARD, slot_of
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import Blob
from mailismus.queue.providers.distributed.format.tables import DUE_START, SPIDS
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.format.version import OWNERSHIP
from mailismus.queue.providers.distributed.identity.epochs import LAST, MOST_EPOCHS, next_number
from mailismus.queue.providers.distributed.identity.gate import ConversionGate, set_gate
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.alone import AloneLease
from mailismus.queue.providers.distributed.stopped.look import LookTerms, SharedLook, look_at
from mailismus.queue.providers.distributed.stores.failure import Unanswered
from mailismus.queue.providers.distributed.stores.rows import Put
from mailismus.queue.providers.distributed.view.current import CurrentView
from mailismus.queue.providers.distributed.view.history import ViewHistory
from mailismus.queue.redirect import redirects_of
from mailismus.queue.sharing import ACTS

NO_SLICE = float("-inf")
"""Of the epoch of a message: it is found by its index rows."""
NOBODY = 0
"""In due rows, in the place of the epoch of a server: all servers publish them."""


class SharedBuilder:
    """`IQueueBuilder`. `path`: the directory of a server of the new queue."""

    room = QueueRoom()

    def __init__(
        self, reached: IReached, terms: LookTerms, disk: IDisk, path: str, epoch: int, new_id: Callable[[], UUID]
    ) -> None:
        self._reached, self._terms, self._disk, self._path, self._epoch = reached, terms, disk, path, epoch
        self._new_id, self._alone = new_id, AloneLease(reached)
        self._last_act = 0
        """Of those that entries are marked with."""
        self._not_before = float("-inf")
        """Rows that are written before would be hidden by what was removed."""

    def room_of(self, message: Message) -> QueueRoom:
        return QueueRoom()

    def begin(self) -> None:
        if self._epoch >= MOST_EPOCHS - 1:
            raise StartError(os.EX_DATAERR, f"the old queue has spool ids of epoch {self._epoch}, which are too high")
        self._reached.wait(self._begin())

    async def _begin(self) -> None:
        stores, now = self._reached.stores, self._reached.now()
        await self._alone.begin()
        found = await shut(
            stores.rows,
            self._alone,
            (ConversionGate.OPEN, ConversionGate.FILLING, ConversionGate.FILLED),
            ConversionGate.FILLING,
        )
        await CurrentView(ViewHistory(stores.rows, "queue convert", self._reached.now), self._terms.view).adopt()
        look = await self._look()
        if found is ConversionGate.OPEN and not await is_empty(look):
            await set_gate(stores.rows, (ConversionGate.FILLING,), ConversionGate.OPEN)
            text = "the shared queue of these services holds mail: a conversion goes into one without any"
            raise StartError(os.EX_CONFIG, f"{text}; nothing was changed")
        if found is not ConversionGate.OPEN:
            self._not_before = await empty(stores, look)
        await self._raise_epoch()
        await look.starts.load()
        for area in Area:
            if await stores.rows.row(DUE_START, (area.value, SHARD)) is None:
                slot = slot_of(now)
                start = Put(DUE_START, (area.value, SHARD), {"due_slot": slot}, slot)
                await until_answered(stores.rows.write, [start])

    async def _look(self) -> SharedLook:
        return await look_at(self._reached.stores, self._terms)

    async def _raise_epoch(self) -> None:
        """No server gives out ids of the old queue. Nobody else is there."""
        rows = self._reached.stores.rows
        while True:
            row = await rows.row(SPIDS, (LAST,))
            last = 0 if row is None else row["epoch"]
            if isinstance(last, int) and row is not None and last >= self._epoch:
                return
            try:
                if row is None:
                    await rows.add(SPIDS, (LAST,), {"epoch": max(1, self._epoch)})
                else:
                    await rows.change(SPIDS, (LAST,), {"epoch": self._epoch}, {"epoch": last})
            except Unanswered:
                continue

    def add(self, message: Message, content: Iterator[bytes]) -> None:
        body = WholeBody(b"".join(content))
        self._reached.wait(self._add(message, body))

    async def _add(self, message: Message, content: WholeBody) -> None:
        stores, now = self._reached.stores, max(self._reached.now(), self._not_before)
        key = f"mail/{int(now // 86_400)}/{format_spool_id(message.spool_id).lower()}"
        await until_answered(stores.objects.put, key, content)
        arrived = Arrived(
            message.spool_id,
            _envelope_of(message),
            message.received_at,
            message.size_bytes,
            Blob(key, content.sha256),
            tuple(
                Placement(one.number, one.area, one.due_at, one.attempts, one.reply, one.host, one.words)
                for one in message.entries
            ),
        )
        for entry in message.entries:
            acts = (*acts_of(entry), *(redirect.act for redirect in redirects_of(entry.words)))
            self._last_act = max(self._last_act, *acts, 0)
        plan = plan_enqueue(arrived, self._terms.view, NO_SLICE, now, self._new_id, NOBODY)
        for batch in in_turn(plan.writes):
            await until_answered(stores.rows.write, batch)
        for one in plan.publications:
            body = write_trigger(attrs.evolve(trigger_of(one.share.name), is_from_row=True))
            await until_answered(stores.broker.publish, one.queue, body)

    def finish(self) -> None:
        OWNERSHIP.mark(self._disk, self._path, is_known=False)
        self._reached.wait(self._finish())

    async def _finish(self) -> None:
        rows = self._reached.stores.rows
        if self._last_act:
            await next_number(rows, ACTS, self._last_act - 1)  # nobody has this one, and others get those above
        await until_answered(rows.write, [server_row(RECOUNT, OPEN, 0, self._reached.now())])
        await set_gate(rows, (ConversionGate.FILLING,), ConversionGate.FILLED)

    def close(self) -> None:
        self._alone.close()


def _envelope_of(message: Message) -> Envelope:
    """The envelope, without recipients that are over."""
    recipients = [b""] * message.recipient_count
    for entry in message.entries:
        recipients[entry.number - 1] = entry.recipient
    return Envelope(message.sender, tuple(recipients), message.client, message.eightbit, message.stuffed_dots, message.words)
