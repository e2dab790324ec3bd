"""Searches for the page: entries that match, and the header of a message, within bounds.

*Rules*
- At most `MAX_SEARCHES` at a time; more are refused. They take no places of the admin socket's commands, nor these theirs.
- A search ends with `limit` entries, after `MOST_S` (`MOST_S_OF_ID` for one message), or when nobody waits for it any
  more: it looks between two pages. A page is a small piece of work, and the queue makes pauses between pages while the
  server is busy (`queue.throttle`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.admin.model.noted import noted
from mailismus.admin.render.content import MAX_HEADER, header_of, unstuff
from mailismus.admin.server.answers import PAGE_ENTRIES, LookableQueue, Search
from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.filter import Subject, parse_filter, parse_subject
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Entry, Filter, Message
from mailismus.web.pages.listing import SearchExtent
from mailismus.web.pages.message import ShownHeader

MAX_SEARCHES = 2
MOST_S = 5.0
MOST_S_OF_ID = 15.0
MOST_S_AGAIN = 1.0
"""For a message that was found before: it is shown as it was then, if it is not found again in this time."""
REMEMBERED = 1000
"""Messages that are remembered as they were found last."""
MAX_WORDS = 20
MAX_QUERY = 1000
"""Characters of a query."""


class Crowded(Exception):
    """So many searches are under way that this one is refused."""


@attrs.frozen
class Remembered:
    """A message as it was found last. `at`: UTC seconds."""

    at: float
    message: Message


@attrs.frozen
class Found:
    """What a search found. Entries are noted ones where the server knows why they wait."""

    messages: Sequence[Message]
    looked: SearchExtent


class Searches:
    """The searches in one queue. `monotonic`: seconds of a clock that does not jump."""

    def __init__(self, queue: LookableQueue, clock: IReactorTime, monotonic: Callable[[], float]) -> None:
        self._queue, self._clock, self._monotonic = queue, clock, monotonic
        self._running = 0
        self._remembered: OrderedDict[SpoolId, Remembered] = OrderedDict()

    async def find(
        self,
        wanted: Filter,
        limit: int,
        is_lost: Callable[[], bool],
        *,
        is_brief: bool,
        most_s: float = MOST_S,
        skipped: int = 0,
    ) -> Found:
        """The first entries that match, behind those `skipped`. `is_lost`: whether nobody waits any more; `is_brief`: as
        `Explanations.of`; `most_s`: how long it may take. Raises `Crowded`, `StorageError`."""
        if self._running >= MAX_SEARCHES:
            raise Crowded
        self._running += 1
        try:
            return await self._find(wanted, limit, is_lost, is_brief, most_s, skipped)
        finally:
            self._running -= 1

    async def _find(
        self, wanted: Filter, limit: int, is_lost: Callable[[], bool], is_brief: bool, most_s: float, skipped: int
    ) -> Found:
        looked_at = 0

        def matches(message: Message, entry: Entry) -> bool:
            nonlocal looked_at
            looked_at += 1
            return wanted.matches(message, entry)

        gaps = Gaps()
        search = Search(self._queue, attrs.evolve(wanted, matches=matches), gaps)
        explanations = self._queue.explanations()
        began_s, found, left, is_late, has_more = self._monotonic(), list[Message](), limit, False, False
        while left > 0 and not search.is_over and not is_lost():
            for message in await search.next(min(PAGE_ENTRIES, skipped + left)):
                some = message.entries[skipped : skipped + left]
                has_more = has_more or len(message.entries) > skipped + left
                skipped = max(0, skipped - len(message.entries))
                if some:
                    shown = message if len(some) == len(message.entries) else message.with_entries(some)
                    found.append(noted(shown, explanations.of([shown], is_brief=is_brief)))
                    self._remember(shown)
                    left -= len(some)
            is_late = self._monotonic() - began_s >= most_s and not search.is_over
            if is_late:
                break
            await deferLater(self._clock, 0)  # other work of the reactor comes first
        took_s = self._monotonic() - began_s
        is_cut = has_more or (left <= 0 and not search.is_over)
        return Found(found, SearchExtent(looked_at, took_s, is_cut, is_late, gaps.all()))

    def remembered(self, spool_id: SpoolId, number: int | None) -> Remembered | None:
        """A message as a search found it last, with the entries that matched it, or the one of this number; None: none did,
        or it is long ago."""
        found = self._remembered.get(spool_id)
        if found is None or number is None:
            return found
        entries = [entry for entry in found.message.entries if entry.number == number]
        return Remembered(found.at, attrs.evolve(found.message, entries=entries)) if entries else None

    def explain(self, message: Message) -> Message:
        """The same with what is known now of why its entries wait."""
        return noted(message, self._queue.explanations().of([message], is_brief=False))

    def _remember(self, message: Message) -> None:
        self._remembered.pop(message.spool_id, None)
        self._remembered[message.spool_id] = Remembered(self._clock.seconds(), message)
        if len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)

    async def header(self, spool_id: SpoolId) -> ShownHeader:
        """The header of a message, as far as it is shown."""
        try:
            read = self._queue.read(spool_id)
            if isinstance(read, bytes):
                return _header([read[: MAX_HEADER + 1000]])
            return await _read_header(await read)
        except StorageError as error:
            return ShownHeader(trouble=str(error))


async def _read_header(content: IContent) -> ShownHeader:
    pieces: list[bytes] = []
    try:
        while piece := await content.next():
            pieces.append(piece)
            if sum(map(len, pieces)) > MAX_HEADER or b"\r\n\r\n" in b"".join(pieces[-2:]):
                break
    finally:
        content.close()
    return _header(pieces)


def _header(pieces: Sequence[bytes]) -> ShownHeader:
    data, is_whole = header_of(unstuff(pieces))
    return ShownHeader(data, is_whole)


def subject_of(words: Sequence[str], now: float) -> Subject:
    """What a query means: words of FILTER, or one ID, address or domain, as for `mailismus why`. Raises `FilterError`."""
    if len(words) == 1 and "=" not in words[0]:
        return parse_subject(words[0])
    return Subject(parse_filter(words, now))
