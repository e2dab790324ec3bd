"""A stopped queue, opened for reading: a provider's own search, run to its end (`IStoppedQueue`).

*Rules*: files that can't be read are passed over and told as gaps, so that the others are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import attrs
from twisted.internet.defer import Deferred, fail, succeed

from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Filter, Gap, Message, Page, Summary
from mailismus.queue.servers import KnownServer

PAGE = 1000
"""Entries of one page."""

T = TypeVar("T")


class StoppedSearch(Protocol):
    """A provider's search."""

    async def summarize(self) -> Summary:
        """Counts of every area."""

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `IQueue.search`."""


@attrs.frozen
class StoppedCursor:
    """Where a search over messages goes on: `held` of a message that was given out in part, then these."""

    messages: Iterator[Message]
    held: Message | None = None

    def page(self, limit: int) -> Page:
        """The next `limit` entries, 1 at least; the cursor of a page is where the one behind it begins."""
        found: list[Message] = []
        held = self.held
        while limit:
            message = held or next(self.messages, None)
            if message is None:
                return Page(tuple(found), None)
            now, later = message.entries[:limit], message.entries[limit:]
            found.append(attrs.evolve(message, entries=now))
            limit -= len(now)
            held = attrs.evolve(message, entries=later) if later else None
        return Page(tuple(found), StoppedCursor(self.messages, held))


class AtOnceWorker:
    """An `IWorker` for a process without other work: it runs each function in the call."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        try:
            return succeed(function())
        except OSError as error:
            return fail(error)

    def start(self) -> None:
        """There is no thread."""

    def stop(self) -> None:
        """Nothing is under way."""

    def leave(self) -> None:
        """Nothing is under way."""


class RunToEnd(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, coroutine: Coroutine[Deferred[Any], Any, T], /) -> T:
        """Its result, or what it raises."""


def at_once(coroutine: Coroutine[Deferred[Any], Any, T], /) -> T:
    """`RunToEnd` without a reactor, for coroutines that wait for nothing but an `AtOnceWorker`."""
    results: list[T] = []
    errors: list[BaseException] = []
    Deferred.fromCoroutine(coroutine).addCallbacks(
        results.append, lambda failure: errors.append(failure.value or RuntimeError())
    )
    if errors:
        raise errors[0]
    return results[0]


class StoppedQueue:
    """Reads a queue. `gaps`: what could not be read so far."""

    def __init__(
        self,
        search: StoppedSearch,
        read: Callable[[SpoolId], Generator[bytes, None, None]],
        gaps: Gaps,
        wait: RunToEnd = at_once,
    ) -> None:
        """`read` yields the content of an existing message in pieces; it raises `StorageError` or `OSError`."""
        self._search = search
        self._read = read
        self._gaps = gaps
        self._wait = wait

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self._gaps.all()

    def summary(self) -> Summary:
        summary = self._wait(self._search.summarize())
        self._gaps.add(summary.gaps)
        return attrs.evolve(summary, exact=not self._gaps, gaps=self.gaps)

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        cursor: object | None = None
        while True:
            page = self._wait(self._search.search(wanted, cursor, PAGE))
            self._gaps.add(page.gaps)
            yield page.messages
            cursor = page.cursor
            if cursor is None:
                return

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        try:
            yield from self._read(spool_id)
        except OSError as error:
            raise Unavailable(f"a message can't be read: {error}") from None

    def servers(self) -> Sequence[KnownServer] | None:
        return None

    def close(self) -> None:
        """Nothing is held open."""
