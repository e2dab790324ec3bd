"""What is written for the settlements of one message. Pure.

Entries that end get a mark each, or one for all that is left of their share. Entries that go on are put into a new share of
the present slice, for each area and time; the mark of each names it. Share, mark, due row and index rows come by one batch;
where it would be too large, by several, each for some of the entries. A bounce that is due stays with the server that made
it, so that those of one round are one report; its due row is for another server, should this one be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

import attrs

from mailismus.queue.entering import successor_of
from mailismus.queue.interface import Area, Entry, Settlement
from mailismus.queue.providers.distributed.enqueue.plan import closed_row, index_row
from mailismus.queue.providers.distributed.format.batches import BATCH_BYTES
from mailismus.queue.providers.distributed.format.due import DueKind, DueShare, due_row, due_share
from mailismus.queue.providers.distributed.format.marks import WHOLE, done_mark, moved_mark, note_of
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace, pieces_of, writes_of
from mailismus.queue.providers.distributed.format.slices import bucket_of, slice_start
from mailismus.queue.providers.distributed.stores.rows import Put, Write, kept_time
from mailismus.queue.providers.distributed.view.change import ViewSettings

_BESIDE = 1000
"""Bytes of a share beside its entries, at most: head, index row, due row, mark."""
HEIR_S = 120.0
"""A bounce stays with the server that made it. So much later others learn of it."""
_MARK = 100
"""Bytes of a mark without the name of a share, at most."""


@attrs.frozen
class Leaving:
    """A share of which entries are settled. `left`: numbers that are not over, those among them. `is_whole_message`: whether
    the message is over with it. `had_first`, `is_noted`: as of `HeldShare`."""

    share: Share
    left: frozenset[int]
    is_whole_message: bool
    settled: Mapping[int, tuple[Entry, Settlement]]
    had_first: bool = False
    is_noted: bool = False


@attrs.frozen
class SettleBatch:
    """Writes that are carried out as one, and what is true then. `ended`: numbers of entries that left the share. `shares`:
    new ones, and `due` their rows: those of kind `GIVEN_BACK` stay with this server. `is_closed`: nothing is left of it.
    `ends_message`: whether the message is over is known without a look at its index rows."""

    leaving: Leaving
    writes: tuple[Write, ...]
    ended: tuple[int, ...]
    shares: tuple[Share, ...]
    due: tuple[DueShare, ...]
    is_closed: bool
    ends_message: bool


def plan_settlements(
    leaving: Leaving, view: ViewSettings, now: float, new_id: Callable[[], UUID], writer: int
) -> Iterator[SettleBatch]:
    """The batches, in their order. `now`: UTC seconds; `writer`: the epoch of this server."""
    now = kept_time(now)
    left = set(leaving.left)
    is_whole_message = leaving.is_whole_message
    for piece in _pieces(leaving):
        left.difference_update(piece)
        batch = _batch(leaving, piece, frozenset(left), is_whole_message, view, now, new_id, writer)
        is_whole_message = is_whole_message and not batch.shares
        yield batch


def _pieces(leaving: Leaving) -> Iterator[list[int]]:
    """Numbers of entries whose settlements fit into one batch."""
    piece: list[int] = []
    groups: set[tuple[Area | None, float]] = set()
    size = _BESIDE
    for number, (entry, settlement) in leaving.settled.items():
        group = (settlement.area, settlement.due_at)
        each = _size_of(entry, settlement) + (0 if group in groups else _size_of_share(leaving.share))
        if piece and size + each > BATCH_BYTES:
            yield piece
            piece, size, groups = [], _BESIDE, set()
        piece.append(number)
        groups.add(group)
        size += each
    if piece:
        yield piece


def _size_of(entry: Entry, settlement: Settlement) -> int:
    """Bytes of an entry and its mark, at most."""
    if settlement.area is None:
        return _MARK
    reply = settlement.reply
    words = entry.words if settlement.words is None else settlement.words
    return 3 * _MARK + sum(map(len, (entry.recipient, settlement.host, words or b"", b"" if reply is None else reply.text)))


def _size_of_share(share: Share) -> int:
    """Bytes of a new share beside its entries, at most."""
    return _BESIDE + len(share.message.sender) + len(share.message.words or b"")


def _batch(
    leaving: Leaving,
    numbers: Sequence[int],
    left: frozenset[int],
    is_whole_message: bool,
    view: ViewSettings,
    now: float,
    new_id: Callable[[], UUID],
    writer: int,
) -> SettleBatch:
    share = leaving.share
    ending = [number for number in numbers if leaving.settled[number][1].area is None]
    groups: dict[tuple[Area, float], list[Entry]] = {}
    for number in numbers:
        entry, settlement = leaving.settled[number]
        if settlement.area is not None:
            due_at = kept_time(settlement.due_at)
            successor = successor_of(entry, settlement._replace(due_at=due_at), settlement.area)
            groups.setdefault((settlement.area, due_at), []).append(successor)
    shares = [
        _successor(share, area, due_at, piece, view, now, new_id)
        for (area, due_at), entries in groups.items()
        for piece in pieces_of(entries)
    ]
    writes: list[Write] = []
    due = []
    for new in shares:
        writes += writes_of(new, now)
        waiting = _due_of(new, now, writer)
        due.append(waiting)
        writes += [due_row(waiting, now), index_row(new, now)]
    is_closed = not left
    if is_closed and set(numbers) == leaving.left and not (ending and shares) and len(shares) <= 1:
        writes.append(moved_mark(share.name, WHOLE, shares[0].name, now) if shares else done_mark(share.name, WHOLE, now))
    else:
        writes += [done_mark(share.name, number, now) for number in ending]
        writes += [moved_mark(share.name, entry.number, new.name, now) for new in shares for entry in new.message.entries]
    ends_message = is_closed and is_whole_message and not shares
    if not (leaving.is_noted or (leaving.had_first and ends_message)):
        writes += note_of(share, now)
    if not ends_message:
        writes += _index_of(share, now, is_closed=is_closed, has_moved=bool(shares))
    return SettleBatch(leaving, tuple(writes), tuple(numbers), tuple(shares), tuple(due), is_closed, ends_message)


def _successor(
    share: Share,
    area: Area,
    due_at: float,
    entries: Sequence[Entry],
    view: ViewSettings,
    now: float,
    new_id: Callable[[], UUID],
) -> Share:
    message = share.message
    place = SharePlace(area.value, slice_start(now, view.slice_window_s), bucket_of(message.spool_id, view.bucket_count))
    name = ShareName(place, new_id())
    return Share(name, message.with_entries(list(entries)), share.blob, now, due_at, share.name)


def stays_with_maker(share: Share) -> bool:
    """Whether it is a bounce that was due as it was made: its maker has it without a claim, and a due row brings it to
    another server `HEIR_S` later."""
    return share.area is Area.BOUNCES and share.was_due


def _due_of(share: Share, now: float, writer: int) -> DueShare:
    """When a new share is published."""
    if stays_with_maker(share):
        return due_share(share.name, now + HEIR_S, now, writer, DueKind.GIVEN_BACK)
    return due_share(share.name, share.due_at, now, writer)


def _index_of(share: Share, now: float, *, is_closed: bool, has_moved: bool) -> list[Put]:
    """The index row of the share itself. Where some of it moves, it must be found as well as those that go on."""
    if is_closed:
        return [closed_row(share, now)]
    return [index_row(share, now)] if has_moved else []
