"""What the running server answers: one verb, one answer, which comes in parts as the client reads.

*Rules*: a part is small, so that no delivery waits for it; between parts nothing is held but a cursor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.admin.tally import Tally
from mailismus.admin.wire import Refusal, Request, encode_message, encode_summary
from mailismus.queue.filter import FilterError, parse_filter
from mailismus.queue.interface import Filter, Page, Summary

PAGE_ENTRIES = 100
"""Entries of one part of a listing: a millisecond's work."""


class LookableQueue(Protocol):
    """What is needed of the queue manager."""

    def summary(self) -> Deferred[Summary]: ...

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]: ...


class Answer(Protocol):
    """An answer that comes in parts."""

    async def next(self) -> list[bytes] | None:
        """The lines of the next part, maybe none; None: that was all."""


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
        return [encode_message(message) for message in page.messages]


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


def begin_answer(request: Request, queue: LookableQueue, now: float) -> Answer:
    """The answer to a request. `now`: UTC seconds. Raises `Refusal`."""
    verb = _VERBS.get(request.verb)
    if verb is None:
        raise Refusal(os.EX_UNAVAILABLE, "the running server is of a version that does not know this command")
    try:
        wanted = parse_filter(request.words, now)
    except FilterError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None
    return verb(request, queue, wanted)


def _list(request: Request, queue: LookableQueue, wanted: Filter) -> Answer:
    return ListAnswer(queue, wanted, request.limit)


def _count(request: Request, queue: LookableQueue, wanted: Filter) -> Answer:
    return CountAnswer(queue, wanted if request.words else None)


_VERBS: dict[str, Callable[[Request, LookableQueue, Filter], Answer]] = {"list": _list, "count": _count}
