"""What repairs do: rows beside those that are there, triggers, contents. Rows are never changed but for the
note of a head, and nothing is lost first.

*Rule*: what is taken away was copied to `corrupt/` in the server's own directory before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

import attrs

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import QueueId
from mailismus.queue.files.directories import make_directories
from mailismus.queue.fsck.files import LOST_REPLY
from mailismus.queue.interface import Area, Entry, Settlement
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.dump.cells import row_text
from mailismus.queue.providers.distributed.enqueue.plan import closed_row, index_row
from mailismus.queue.providers.distributed.format.due import due_row, due_share
from mailismus.queue.providers.distributed.format.marks import WHOLE, moved_mark, note_of, removed_mark, trigger_of
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, to_signed
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED, MAILS, queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.hand.reading import rows_of
from mailismus.queue.providers.distributed.settle.plan import Leaving, plan_settlements
from mailismus.queue.providers.distributed.stores.rows import Erase, Key, Put, Row, Write, kept_time
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.spool.quarantine import keep_corrupt

CORRUPT = "corrupt"
LOST = "/lost"
"""Behind the key of a content: its substitute's."""
LOST_CONTENT = (
    b"Subject: the content of this message was lost\r\n\r\nIt was damaged in its store, and can't be delivered.\r\n"
)
NOBODY = 0
"""In due rows, in the place of the epoch of a server: all servers publish them."""
_TICK = 0.001
"""Seconds: what is written behind an erasure."""


@attrs.frozen
class SharedRepairs:
    """The repairs of one queue. `now`: UTC seconds; `corrupt_path`: the directory of copies."""

    stores: Stores
    disk: IDisk
    corrupt_path: str
    view: Callable[[], ViewSettings]
    now: Callable[[], float]
    new_id: Callable[[], UUID]

    async def publish(self, share: Share) -> None:
        """Publish a trigger of a share."""
        trigger = attrs.evolve(trigger_of(share.name), is_from_row=True)  # another one may be somewhere
        await self.stores.broker.publish(queue_of(share.name.place.queue_name), write_trigger(trigger))

    async def wait_again(self, share: Share) -> None:
        """Write the due row of a share."""
        now = self.now()
        await self.stores.rows.write([due_row(due_share(share.name, share.due_at, now, NOBODY), now)])

    async def put_again(self, share: Share, numbers: Collection[int]) -> None:
        """Put entries of a share in again, in the present slice; the marks of the old ones say so."""
        now = kept_time(self.now())
        entries = {entry.number: (entry, _same(share, entry, now)) for entry in share.message.entries}
        await self._move(share, {number: entries[number] for number in numbers}, now)

    async def bounce(self, share: Share, numbers: Collection[int]) -> None:
        """Return entries whose content is lost: what goes on has a substitute."""
        body = WholeBody(LOST_CONTENT)
        key = share.blob.key.removesuffix(LOST) + LOST
        await self.stores.objects.put(key, body)
        message = attrs.evolve(share.message, size_bytes=len(LOST_CONTENT), stuffed_dots=0)
        now = kept_time(self.now())
        moved = attrs.evolve(share, message=message, blob=Blob(key, body.sha256))
        lost = {
            entry.number: (entry, _same(share, entry, now)._replace(area=Area.BOUNCES, reply=LOST_REPLY, host=b""))
            for entry in message.entries
            if entry.number in numbers
        }
        await self._move(moved, lost, now)

    async def _move(self, share: Share, settled: Mapping[int, tuple[Entry, Settlement]], now: float) -> None:
        leaving = Leaving(share, frozenset(settled), False, settled)
        for batch in plan_settlements(leaving, self.view(), now, self.new_id, NOBODY):
            writes = [write for write in batch.writes if not _is_mark(write)]
            for new in batch.shares:  # a mark of its own counts before that of the share
                writes += [moved_mark(share.name, entry.number, new.name, now) for entry in new.message.entries]
            await self.stores.rows.write(writes)

    async def mark_moved(self, share: Share, numbers: Collection[int], successor: ShareName, *, is_closed: bool) -> None:
        """Write the marks that were not written with the share that goes on."""
        now = self.now()
        closing = [*note_of(share, now), *([closed_row(share, now)] if is_closed else ())]
        await self.stores.rows.write([*(moved_mark(share.name, number, successor, now) for number in numbers), *closing])

    async def mark_removed(self, share: Share, numbers: Collection[int], *, is_closed: bool) -> None:
        """Mark entries removed."""
        now = self.now()
        closing = [*note_of(share, now), *([closed_row(share, now)] if is_closed else ())]
        await self.stores.rows.write([*(removed_mark(share.name, number, now) for number in numbers), *closing])

    async def set_aside(self, name: ShareName) -> None:
        """Copy the rows of a damaged share, and mark it removed."""
        rows = await rows_of(self.stores.rows, ENQUEUED, name)
        text = "".join(f"{row_text(row)}\n" for row in rows)
        self._keep(share_name(name).replace("/", "-"), [text.encode("utf-8", "backslashreplace")])
        await self.stores.rows.write([removed_mark(name, WHOLE, self.now())])

    async def index(self, share: Share) -> None:
        """Write the row of the index that leads to a share."""
        await self.stores.rows.write([index_row(share, self.now())])

    async def close_index(self, share: Share) -> None:
        """Say in the index that nothing is left of a share."""
        await self.stores.rows.write([closed_row(share, self.now())])

    async def open_index(self, share: Share, indexed: Sequence[Row]) -> None:
        """Write the rows of a message anew, that of this share without its end."""
        now = kept_time(self.now())
        others = [row for row in indexed if row["enqueue_id"] != share.name.enqueue_id]
        puts = [Put(MAILS, _key_of(row), _cells_of(row), now + _TICK) for row in others]
        erased = Erase(MAILS, (to_signed(share.message.spool_id),), now)
        await self.stores.rows.write([erased, index_row(share, now + _TICK), *puts])

    async def free(self, share: Share) -> None:
        """Remove the content and the rows of the index of a message that is over."""
        await self.stores.objects.remove(share.blob.key)
        key = (to_signed(share.message.spool_id),)
        await self.stores.rows.write([Erase(MAILS, key, kept_time(self.now()) + _TICK)])

    async def remove_content(self, key: str) -> None:
        """Copy an object, and remove it."""
        await self.keep_content(key)
        await self.stores.objects.remove(key)

    async def keep_content(self, key: str) -> None:
        """Copy an object, if it is there."""
        found = await self.stores.objects.get(key)
        if found is None:
            return
        pieces = []
        try:
            while piece := await found.next():
                pieces.append(piece)
        finally:
            found.close()
        self._keep(key.replace("/", "-"), pieces)

    def _keep(self, name: str, pieces: Sequence[bytes]) -> None:
        """Copy bytes durably. The first copy of a name stays."""
        root, directory = os.path.split(self.corrupt_path)
        make_directories(self.disk, root, (directory,))
        keep_corrupt(self.disk, self.corrupt_path, name, b"", b"".join(pieces))


def _same(share: Share, entry: Entry, now: float) -> Settlement:
    """The entry goes on as it is. One that waits keeps its time."""
    due_at = max(share.due_at, now) if share.area is not Area.INCOMING else now
    queue_id = QueueId(share.message.spool_id, entry.number)
    return Settlement(queue_id, share.area, due_at, entry.attempts, entry.reply, entry.host)


def _is_mark(write: Write) -> bool:
    return write.table is DELETED


def _key_of(row: Row) -> Key:
    return tuple(row[column.name] for column in MAILS.key)


def _cells_of(row: Row) -> Row:
    return {column.name: row[column.name] for column in MAILS.cells}
