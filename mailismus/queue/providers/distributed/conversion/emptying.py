"""Removes all mail: each share that lives is marked removed, and its content goes, with the index of its message.

*Rules*: the mark is durable before the content goes. It may be stopped anywhere, and begun again: contents that a stop
leaves are found by the sweep. Triggers and due rows stay, and find the marks.
"""

from __future__ import annotations

from mailismus.queue.providers.distributed.conversion.asking import until_answered
from mailismus.queue.providers.distributed.conversion.living import Living
from mailismus.queue.providers.distributed.counts.stored import OPEN, RECOUNT, server_row
from mailismus.queue.providers.distributed.format.marks import WHOLE, note_of, removed_mark
from mailismus.queue.providers.distributed.format.share import to_signed
from mailismus.queue.providers.distributed.format.tables import MAILS
from mailismus.queue.providers.distributed.stopped.look import SharedLook
from mailismus.queue.providers.distributed.stores.rows import Erase
from mailismus.queue.providers.distributed.stores.stores import Stores

_TICK = 0.001


async def empty(stores: Stores, look: SharedLook) -> float:
    """Remove all. Return a time behind which rows of the same messages count. Raises `NotDone`, `Unanswered`."""
    rows, erased = stores.rows, look.now()
    await until_answered(rows.write, [server_row(RECOUNT, OPEN, 0, look.now())])
    async for share, _ in Living(look).shares():
        now = max(look.now(), share.enqueued_at)  # the clock of who put it in may have been ahead
        erased = max(erased, now + _TICK)
        await until_answered(rows.write, [removed_mark(share.name, WHOLE, now), *note_of(share, now)])
        await until_answered(rows.write, [Erase(MAILS, (to_signed(share.message.spool_id),), now + _TICK)])
        await until_answered(stores.objects.remove, share.blob.key)
    return erased + _TICK


async def is_empty(look: SharedLook) -> bool:
    """Whether nothing lives. Raises `NotDone`."""
    async for _ in Living(look).shares():
        return False
    return True
