"""A stopped queue that is only read: a provider's own search, run to its end without a reactor (`IStoppedQueue`).

*Rules*: what can't be read is passed over and told as a gap, so that the rest is seen.
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

PAGE = 1000
"""Entries found at once."""

T = TypeVar("T")


class StoppedSearch(Protocol):
    """What a provider's search does, in coroutines that wait for nothing but an `AtOnceWorker`."""

    async def summarize(self) -> Summary:
        """Counts of every area."""

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `IQueue.search`."""


class AtOnceWorker:
    """An `IWorker` for a process that has nothing else to do: it runs what it is handed in the call."""

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


class StoppedQueue:
    """What the files of a queue say. `gaps`: what could not be read so far."""

    def __init__(self, search: StoppedSearch, read: Callable[[SpoolId], Generator[bytes, None, None]], gaps: Gaps) -> None:
        """`read` gives the content of a message that is there, in pieces; it raises `StorageError` or `OSError`."""
        self._search = search
        self._read = read
        self._gaps = gaps

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self._gaps.all()

    def summary(self) -> Summary:
        summary = _result(self._search.summarize())
        self._gaps.add(summary.gaps)
        return attrs.evolve(summary, exact=not self._gaps, gaps=self.gaps)

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        cursor: object | None = None
        while True:
            page = _result(self._search.search(wanted, cursor, PAGE))
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

    def close(self) -> None:
        """Nothing is held open."""


def _result(coroutine: Coroutine[Deferred[Any], Any, T]) -> T:
    """Of what never waits."""
    results: list[T] = []
    errors: list[BaseException] = []
    Deferred.fromCoroutine(coroutine).addCallbacks(
        results.append, lambda failure: errors.append(failure.value or RuntimeError())
    )
    if errors:
        raise errors[0]
    return results[0]
