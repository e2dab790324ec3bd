"""What the running server answers: one verb, one answer, which comes in parts as the client reads.

*Rules*: a part is small, so that no delivery waits for it; between parts nothing is held but a cursor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.admin.shape import By, Row, ShapeCount
from mailismus.admin.tally import Tally
from mailismus.admin.wire import (
    Refusal,
    Request,
    encode_message,
    encode_number,
    encode_part,
    encode_piece,
    encode_row,
    encode_summary,
)
from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.filter import FilterError, parse_filter
from mailismus.queue.interface import Filter, IContent, ICountingPlan, Page, Summary

PAGE_ENTRIES = 100
"""Entries of one part of a listing: a millisecond's work."""

PIECE_BYTES = 64 << 10
"""Content of one part."""


class LookableQueue(Protocol):
    """What is needed of the queue manager."""

    def summary(self) -> Deferred[Summary]: ...

    def counting_plan(self) -> ICountingPlan | None: ...

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]: ...

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]: ...

    def visit_all(self, wanted: Filter) -> Deferred[int]: ...

    def stuck(self) -> Mapping[QueueId, bytes]: ...


class Answer(Protocol):
    """An answer that comes in parts."""

    async def next(self) -> list[bytes] | None:
        """The lines of the next part, maybe none; None: that was all. One at a time. Raises `Refusal` or `StorageError`."""

    def close(self) -> None:
        """Nobody wants more of it, a part that is being made included. Harmless when repeated."""


class ListAnswer:
    """Messages with their matching entries, at most `limit` entries."""

    def __init__(self, queue: LookableQueue, wanted: Filter, limit: int | None) -> None:
        self._queue = queue
        self._wanted = wanted
        self._left = limit
        self._cursor: object | None = None
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        limit = PAGE_ENTRIES if self._left is None else min(PAGE_ENTRIES, self._left)
        page = await self._queue.search(self._wanted, self._cursor, limit)
        self._cursor = page.cursor
        if self._left is not None:
            self._left -= sum(len(message.entries) for message in page.messages)
        self._is_over = page.cursor is None or (self._left is not None and self._left <= 0)
        stuck = self._queue.stuck()
        return [encode_message(message, stuck) for message in page.messages]

    def close(self) -> None:
        """It holds nothing open."""


class CountAnswer:
    """Counts of all, or of what matches."""

    def __init__(self, queue: LookableQueue, wanted: Filter | None) -> None:
        self._queue = queue
        self._wanted = wanted
        self._cursor: object | None = None
        self._tally = Tally()
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        if self._wanted is None:
            self._is_over = True
            return [encode_summary(await self._queue.summary())]
        page = await self._queue.search(self._wanted, self._cursor, PAGE_ENTRIES)
        for message in page.messages:
            self._tally.add(message)
        self._cursor = page.cursor
        if self._cursor is not None:
            return []
        self._is_over = True
        return [encode_summary(self._tally.summary())]

    def close(self) -> None:
        """It holds nothing open."""


class PlanAnswer:
    """What the client needs to count by itself."""

    def __init__(self, plan: ICountingPlan) -> None:
        self._plan: ICountingPlan | None = plan

    async def next(self) -> list[bytes] | None:
        part = self._plan.next() if self._plan is not None else None
        return [encode_part(part)] if part is not None else None

    def close(self) -> None:
        self._plan = None


class ShapeAnswer:
    """Counts of what matches by name and age: first those of all others, then the rows, most entries first."""

    def __init__(self, queue: LookableQueue, wanted: Filter, by: By, now: float) -> None:
        self._queue = queue
        self._wanted = wanted
        self._cursor: object | None = None
        self._count = ShapeCount(by, now)
        self._rows: list[Row] | None = None

    async def next(self) -> list[bytes] | None:
        if self._rows is not None:
            rows, self._rows = self._rows[:PAGE_ENTRIES], self._rows[PAGE_ENTRIES:]
            return [encode_row(row.name, row.counts) for row in rows] or None
        page = await self._queue.search(self._wanted, self._cursor, PAGE_ENTRIES)
        for message in page.messages:
            self._count.add(message)
        self._cursor = page.cursor
        if self._cursor is not None:
            return []
        shape = self._count.shape()
        self._rows = list(shape.rows)
        return [encode_row(b"", shape.others)]

    def close(self) -> None:
        """It holds nothing open."""


class ContentAnswer:
    """The content of one message, as it is stored."""

    def __init__(self, queue: LookableQueue, spool_id: SpoolId) -> None:
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
            page = await self._queue.search(Filter(self._spool_id), None, 1)
            if page.messages:
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
    """Deferred entries that match are due now; how many."""

    def __init__(self, queue: LookableQueue, wanted: Filter) -> None:
        self._queue = queue
        self._wanted = wanted
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        self._is_over = True
        return [encode_number(await self._queue.visit_all(self._wanted))]

    def close(self) -> None:
        """It holds nothing open."""


def begin_answer(request: Request, queue: LookableQueue, now: float) -> Answer:
    """The answer to a request. `now`: UTC seconds, what ages count from. Raises `Refusal`."""
    verb = _VERBS.get(request.verb)
    if verb is None:
        raise Refusal(os.EX_UNAVAILABLE, "the running server is of a version that does not know this command")
    try:
        wanted = parse_filter(request.words, now)
    except FilterError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None
    return verb(request, queue, wanted, now)


def _list(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    return ListAnswer(queue, wanted, request.limit)


def _count(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    return CountAnswer(queue, wanted if request.words else None)


def _plan(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    plan = queue.counting_plan()
    if plan is None or request.words:
        raise Refusal(os.EX_UNAVAILABLE, "the server alone can count this")
    return PlanAnswer(plan)


def _shape(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    try:
        by = By(request.by)
    except ValueError:
        raise Refusal(os.EX_USAGE, f"the shape by what: write {', '.join(by.value for by in By)}") from None
    return ShapeAnswer(queue, wanted, by, now)


def _content(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    if wanted.spool_id is None:
        raise Refusal(os.EX_USAGE, "the content of which message: write its ID")
    return ContentAnswer(queue, wanted.spool_id)


def _flush(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> Answer:
    return FlushAnswer(queue, wanted)


_VERBS: dict[str, Callable[[Request, LookableQueue, Filter, float], Answer]] = {
    "list": _list,
    "count": _count,
    "plan": _plan,
    "shape": _shape,
    "content": _content,
    "flush": _flush,
}
