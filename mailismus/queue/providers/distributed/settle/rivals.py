"""Of two outcomes of one entry, which both were written, one counts: who wrote looks at the marks behind it. Pure.

A server that was cut off or stood still may settle what its heir has settled too, and so may an administrator elsewhere.
Each writes its own cells, then reads. Gone counts before a bounce, a bounce before another move, of two equal ones what the
cell holds (`format.marks`). What does not count is ended: a share that would go on with the entry has it no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from mailismus.queue.providers.distributed.format.marks import Marks, done_mark
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.settle.plan import SettleBatch
from mailismus.queue.providers.distributed.stores.rows import Put


@attrs.frozen
class Rival:
    """A share that would go on with an entry, and does not count."""

    share: ShareName
    number: int


def successors_of(batch: SettleBatch) -> Mapping[int, ShareName]:
    """The new share of each entry that goes on."""
    return {entry.number: share.name for share in batch.shares for entry in share.message.entries}


def losers_of(batch: SettleBatch, marks: Marks) -> Iterator[Rival]:
    """What does not count, by the marks behind a batch that is durable: shares of others, or its own."""
    name, mine = batch.leaving.share.name.enqueue_id, successors_of(batch)
    for number in batch.ended:
        mark, own = marks.of(name, number), mine.get(number)
        if mark is None:
            continue  # the slice was removed meanwhile
        if own is not None and mark.successor != own.enqueue_id:
            yield Rival(own, number)
        elif own is None and (goes_to := marks.goes_to(name, number)) is not None:
            yield Rival(goes_to, number)


def marks_of_the_gone(batch: SettleBatch, marks: Marks, at: float) -> list[Put]:
    """Marks of entries that this batch has ended by a mark for all that was left, while another server moved them by marks
    of their own."""
    name, mine = batch.leaving.share.name, successors_of(batch)
    gone = []
    for number in batch.ended:
        mark = marks.of(name.enqueue_id, number)
        if number not in mine and mark is not None and not mark.is_gone:
            gone.append(done_mark(name, number, at))
    return gone
