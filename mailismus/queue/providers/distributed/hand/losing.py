"""What another share goes on with is ended; with the last share of a message that is left, the index of the message.

A batch of a server that was killed may come when the message is over. Its share counts no more, but what it has put into the
index would stay: the end of the message did not know of it.
"""

from __future__ import annotations

from mailismus.queue.providers.distributed.enqueue.plan import closed_row
from mailismus.queue.providers.distributed.format.marks import removed_mark
from mailismus.queue.providers.distributed.format.share import to_signed
from mailismus.queue.providers.distributed.format.tables import MAILS
from mailismus.queue.providers.distributed.hand.reading import FoundShare
from mailismus.queue.providers.distributed.stores.rows import Erase, IRows, kept_time

MOST = 1000
"""Index rows that are looked at: of a message with more they stay."""


async def end_lost(rows: IRows, found: FoundShare, now: float) -> None:
    """End what is lost of a share. `now`: UTC seconds. Raises `NotDone`, `Unanswered`."""
    share = found.share
    if not found.lost or share is None:
        return
    marks = [removed_mark(share.name, number, now) for number in found.lost]
    if found.left:
        await rows.write(marks)
        return
    await rows.write([*marks, closed_row(share, now)])
    key = (to_signed(share.message.spool_id),)
    indexed = await rows.rows(MAILS, key, None, MOST)
    if len(indexed) < MOST and all(row["closed_at"] is not None for row in indexed):
        await rows.write([Erase(MAILS, key, kept_time(now) + 0.001)])
