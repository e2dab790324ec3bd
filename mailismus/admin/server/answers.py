"""Answers of the running server about its queue, made in parts as the client reads.

*Rules*: a part is small, so that no delivery waits for it; between two parts the server holds a cursor and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.admin.model.shape import By, Row, ShapeCount
from mailismus.admin.model.tally import Tally
from mailismus.admin.protocol.wire import (
    Refusal,
    encode_known,
    encode_message,
    encode_number,
    encode_part,
    encode_piece,
    encode_plan,
    encode_row,
    encode_summary,
)
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.filter import Subject
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Filter, Flushed, ICountingPlan, Message, Page, Summary
from mailismus.queue.servers import KnownServer
from mailismus.queue.waiting import Explanations, NoExplanations

PAGE_ENTRIES = 100
"""Entries of one part of a listing: a millisecond's work."""

BARE_ENTRIES = 500
"""The same of a listing without reasons: some milliseconds'."""

PIECE_BYTES = 64 << 10
"""Content of one part."""


class LookableQueue(Protocol):
    """The part of the queue manager that answers are made from."""

    def summary(self) -> Deferred[Summary]: ...

    def counting_plan(self) -> ICountingPlan | None: ...

    def servers(self) -> Deferred[Sequence[KnownServer]] | None: ...

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]: ...

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]: ...

    def visit_all(self, wanted: Filter | None) -> Deferred[Flushed]: ...

    def explanations(self) -> Explanations: ...


class VerbAnswer(Protocol):
    """An answer that comes in parts."""

    gaps: Gaps
    """The entries that could not be read so far."""

    async def next(self) -> list[bytes] | None:
        """The lines of the next part, maybe none; None: that was all. One at a time. Raises `Refusal` or `StorageError`."""

    def close(self) -> None:
        """Make no more parts; a part that is being made is dropped. Harmless when repeated."""


class Search:
    """A search page by page. It adds what can't be read to `gaps`."""

    def __init__(self, queue: LookableQueue, wanted: Filter, gaps: Gaps) -> None:
        self._queue = queue
        self._wanted = wanted
        self._gaps = gaps
        self._cursor: object | None = None
        self.is_over = False

    async def next(self, limit: int = PAGE_ENTRIES) -> Sequence[Message]:
        """The next page: at most `limit` entries, none at all maybe."""
        page = await self._queue.search(self._wanted, self._cursor, limit)
        self._cursor = page.cursor
        self.is_over = page.cursor is None
        self._gaps.add(page.gaps)
        return page.messages


class ListAnswer:
    """Messages with their matching entries, at most `limit` entries. `is_bare`: without the reasons why they wait."""

    def __init__(self, queue: LookableQueue, wanted: Filter, limit: int | None, *, is_bare: bool = False) -> None:
        self.gaps = Gaps()
        self._search = Search(queue, wanted, self.gaps)
        self._left = limit
        self._explanations = NoExplanations() if is_bare else queue.explanations()
        self._page = BARE_ENTRIES if is_bare else PAGE_ENTRIES

    async def next(self) -> list[bytes] | None:
        if self._search.is_over or self._left == 0:
            return None
        messages = await self._search.next(self._page if self._left is None else min(self._page, self._left))
        if self._left is not None:
            self._left = max(0, self._left - sum(len(message.entries) for message in messages))
        waiting = self._explanations.of(messages, is_brief=True)
        return [encode_message(message, waiting) for message in messages]

    def close(self) -> None:
        """It holds nothing open."""


class WhyAnswer:
    """The entries of one message, address or domain, at most `limit`, each with the reason why it is still here. Without
    entries: what is known of the domain, if it is one."""

    def __init__(self, queue: LookableQueue, subject: Subject, limit: int | None) -> None:
        self.gaps = Gaps()
        self._search = Search(queue, subject.wanted, self.gaps)
        self._domain = subject.domain
        self._left = limit
        self._explanations = queue.explanations()
        self._has_entries = self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        if self._left == 0 or self._search.is_over:
            self._is_over = True
            known = () if self._has_entries or not self._domain else self._explanations.of_domain(self._domain)
            return [encode_known(known)] if known else None
        messages = await self._search.next(PAGE_ENTRIES if self._left is None else min(PAGE_ENTRIES, self._left))
        self._has_entries = self._has_entries or bool(messages)
        if self._left is not None:
            self._left = max(0, self._left - sum(len(message.entries) for message in messages))
        waiting = self._explanations.of(messages, is_brief=False)
        return [encode_message(message, waiting) for message in messages]

    def close(self) -> None:
        """It holds nothing open."""


class CountAnswer:
    """Counts of all entries, or of those that match."""

    def __init__(self, queue: LookableQueue, wanted: Filter | None) -> None:
        self.gaps = Gaps()
        self._queue = queue
        self._search = None if wanted is None else Search(queue, wanted, self.gaps)
        self._tally = Tally()
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        if self._search is None:
            self._is_over = True
            summary = await self._queue.summary()
            self.gaps.add(summary.gaps)
            return [encode_summary(summary)]
        for message in await self._search.next():
            self._tally.add(message)
        self._is_over = self._search.is_over
        return [encode_summary(self._tally.summary(self.gaps.all()))] if self._is_over else []

    def close(self) -> None:
        """It holds nothing open."""


class PlanAnswer:
    """The plan by which the client counts: first whose it is, then its parts."""

    def __init__(self, plan: ICountingPlan) -> None:
        self.gaps = Gaps()
        self._plan: ICountingPlan | None = plan
        self._is_begun = False

    async def next(self) -> list[bytes] | None:
        if self._plan is not None and not self._is_begun:
            self._is_begun = True
            return [encode_plan(self._plan.provider)]
        part = self._plan.next() if self._plan is not None else None
        return [encode_part(part)] if part is not None else None

    def close(self) -> None:
        self._plan = None


class ShapeAnswer:
    """Counts of the matching entries by name and age: first those of all names without a row, then the rows, most entries
    first."""

    def __init__(self, queue: LookableQueue, wanted: Filter, by: By, now: float) -> None:
        self.gaps = Gaps()
        self._search = Search(queue, wanted, self.gaps)
        self._count = ShapeCount(by, now)
        self._rows: list[Row] | None = None

    async def next(self) -> list[bytes] | None:
        if self._rows is not None:
            rows, self._rows = self._rows[:PAGE_ENTRIES], self._rows[PAGE_ENTRIES:]
            return [encode_row(row.name, row.counts) for row in rows] or None
        for message in await self._search.next():
            self._count.add(message)
        if not self._search.is_over:
            return []
        shape = self._count.shape()
        self._rows = list(shape.rows)
        return [encode_row(b"", shape.others)]

    def close(self) -> None:
        """It holds nothing open."""


class ContentAnswer:
    """The content of one message, as it is stored."""

    def __init__(self, queue: LookableQueue, spool_id: SpoolId) -> None:
        self.gaps = Gaps()
        self._queue = queue
        self._spool_id = spool_id
        self._whole: bytes | None = None
        """All of it, where it was at hand at once."""
        self._offset = 0
        self._content: IContent | None = None
        self._is_begun = False
        self._is_closed = False

    async def next(self) -> list[bytes] | None:
        if not self._is_begun:
            self._is_begun = True
            await self._begin()
        if self._whole is not None:
            piece = self._whole[self._offset : self._offset + PIECE_BYTES]
            self._offset += len(piece)
        elif self._content is not None:
            piece = await self._content.next()
        else:
            return None  # closed while it was being opened
        return [encode_piece(piece)] if piece else None

    async def _begin(self) -> None:
        try:
            read = self._queue.read(self._spool_id)
            if isinstance(read, bytes):
                self._whole = read
                return
            self._content = await read
        except Unavailable:
            search = Search(self._queue, Filter(self._spool_id), self.gaps)
            while not search.is_over and not self._is_closed:
                if await search.next(1) or self.gaps:
                    raise
            raise Refusal(os.EX_DATAERR, "no such message in the queue") from None
        if self._is_closed:
            self.close()

    def close(self) -> None:
        self._is_closed = True
        self._whole = None
        if self._content is not None:
            self._content.close()
            self._content = None


class FlushAnswer:
    """Make deferred entries that match due now, and tell their number."""

    def __init__(self, queue: LookableQueue, wanted: Filter | None) -> None:
        """`wanted` None: all of them."""
        self.gaps = Gaps()
        self._queue = queue
        self._wanted = wanted
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        self._is_over = True
        flushed = await self._queue.visit_all(self._wanted)
        self.gaps.add(flushed.gaps)
        return [encode_number(flushed.entries)]

    def close(self) -> None:
        """It holds nothing open."""
