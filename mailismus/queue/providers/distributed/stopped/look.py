"""The parts of a queue that read, over an empty hand: what a server has in memory is in the stores as well.

*Rules*: nothing is written, and no lease is asked for: a server may serve the queue meanwhile. The settings of slices are
those that servers have written down; the command's own ones count where there are none yet.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Filter, Page, Summary
from mailismus.queue.providers.distributed.browse.counting import count_all, count_by_rows
from mailismus.queue.providers.distributed.browse.search import Searching
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.content.absent import AbsentContents
from mailismus.queue.providers.distributed.content.kept import KeptContents
from mailismus.queue.providers.distributed.content.stored import StoredContents
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import TABLES
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.setup import not_set_up
from mailismus.queue.providers.distributed.stores.rows import IRows
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.providers.distributed.view.current import CurrentView
from mailismus.queue.providers.distributed.view.history import ViewHistory


@attrs.frozen
class LookTerms:
    """What a look is given. `view`: the settings of the command; `keep_s`: as a server's; `now`: UTC seconds;
    `random_bits`: so many random bits."""

    view: ViewSettings
    keep_s: float
    now: Callable[[], float]
    random_bits: Callable[[int], int]


@attrs.frozen
class SharedLook:
    """A queue that is looked at: a `StoppedSearch`."""

    rows: IRows
    view: CurrentView
    hand: Hand
    finding: ShareFinding
    starts: Starts
    searching: Searching
    contents: StoredContents
    now: Callable[[], float]

    async def summarize(self) -> Summary:
        """As `IQueue.summary`: by counts where they are sure, else all that lives is read. Raises `NotDone`."""
        counted = await count_by_rows(self.rows, self.starts, None, "")
        return counted if counted.exact else await count_all(self.rows, self.hand, self.starts, self.now(), "")

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `IQueue.search`. Raises `NotDone`."""
        return (await self.searching.search(wanted, after, limit)).page()


async def look_at(stores: Stores, terms: LookTerms) -> SharedLook:
    """Look at the queue of these stores. Raises `StartError` (78) where its tables are not there, `NotDone`."""
    rows, now = stores.rows, terms.now
    missing = await rows.missing(TABLES)
    if missing:
        raise not_set_up([f"table {name}" for name in missing])
    view = CurrentView(ViewHistory(rows, "", now), terms.view)
    await view.look()
    starts = Starts(rows, view.reading, now, terms.keep_s)
    await starts.look()
    hand = Hand(_nothing, _nothing, _nothing, _nothing)
    finding = ShareFinding(rows, view.bucket_counts)
    searching = Searching(rows, hand, starts, finding, ShareIds(now, terms.random_bits), now)

    async def find(spool_id: SpoolId) -> Share | None:
        found = await searching.shares_of(spool_id)
        return found[0].share if found else None

    async def lives(share: Share) -> bool:
        return False  # nothing is stopped by what a command can't read

    contents = StoredContents(stores.objects, KeptContents(0), AbsentContents(), find, lives, _nothing)
    return SharedLook(rows, view, hand, finding, starts, searching, contents, now)


def _nothing(told: object) -> None:
    """Nothing ever comes into the hand."""
