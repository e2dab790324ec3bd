"""The site: a path and its arguments to a page. Nothing here changes anything."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import tzinfo

from twisted.internet.interfaces import IReactorTime

from mailismus.mail.ids import parse_queue_id, parse_spool_id
from mailismus.observe.amounts import zone_name
from mailismus.observe.grades import BAD, PLAIN, WARN
from mailismus.queue.filter import FilterError, parse_subject
from mailismus.queue.interface import Filter
from mailismus.web.history.recorder import Recorder
from mailismus.web.pages.day import day_values, last_hour
from mailismus.web.pages.front import front_values, order_of
from mailismus.web.pages.listing import SearchExtent, listing_values
from mailismus.web.pages.message import message_values
from mailismus.web.pages.templates import ICON, SCRIPT, STYLE, render
from mailismus.web.pictures import Pictures
from mailismus.web.search import MAX_QUERY, MAX_WORDS, MOST_S_AGAIN, MOST_S_OF_ID, Crowded, Searches, subject_of
from mailismus.web.wire.answer import WebAnswer, refusal
from mailismus.web.wire.channel import Wanted

MOST_ENTRIES = 100
"""Entries of one answer of a search."""
MOST_SKIPPED = 5000
"""Entries before the last page of a search: each page looks for those before it anew."""
MOST_RECIPIENTS = 200
"""Recipients of a message that are shown."""
REFRESH_S = 5
REFRESH_DAY_S = 60

_FILES: Mapping[str, tuple[bytes, bytes]] = {
    "/style.css": (STYLE, b"text/css; charset=utf-8"),
    "/refresh.js": (SCRIPT, b"text/javascript; charset=utf-8"),
    "/icon.svg": (ICON, b"image/svg+xml"),
}


class Site:
    """The pages of one server. `clock`: UTC seconds; `monotonic`: those of overviews; `zone`: of the times shown, None: the
    local one."""

    def __init__(
        self,
        pictures: Pictures,
        recorder: Recorder,
        searches: Searches,
        known: Callable[[bytes], tuple[bytes, ...]],
        clock: IReactorTime,
        monotonic: Callable[[], float],
        zone: tzinfo | None = None,
    ) -> None:
        """`known`: what is known of the mail hosts of a domain."""
        self._pictures, self._recorder, self._searches, self._known = pictures, recorder, searches, known
        self._clock, self._monotonic, self._zone = clock, monotonic, zone

    async def respond(self, wanted: Wanted) -> WebAnswer:
        """The answer to a request."""
        path = wanted.path
        if path in _FILES:
            content, content_type = _FILES[path]
            return WebAnswer(200, content, content_type)
        if path == "/":
            return self._front(wanted.arguments)
        if path == "/day":
            return self._day()
        if path == "/queue":
            return await self._queue(wanted)
        if path == "/message":
            return await self._message(wanted)
        return refusal(404, "There is no such page; there are /, /day, /queue and /message.")

    def _front(self, arguments: Mapping[str, str]) -> WebAnswer:
        now = self._clock.seconds()
        picture = self._pictures.latest(self._monotonic())
        values = front_values(
            picture, order_of(arguments.get("order", "")), self._zone, has_all=arguments.get("all", "") == "1"
        )
        return self._page(
            "front", {**values, "hour": last_hour(self._recorder.samples, now, self._zone)}, refresh_s=REFRESH_S
        )

    def _day(self) -> WebAnswer:
        values = day_values(self._recorder.samples, self._clock.seconds(), self._zone)
        return self._page("day", values, refresh_s=REFRESH_DAY_S)

    async def _queue(self, wanted: Wanted) -> WebAnswer:
        query, now = wanted.arguments.get("q", "").strip(), self._clock.seconds()
        if not query:
            return self._page("queue", listing_values((), (), SearchExtent(0, 0.0, False, False), now))
        try:
            words = _words_of(query)
            subject = subject_of(words, now)
        except FilterError as error:
            return self._trouble(400, "This is no query", str(error), WARN, query)
        try:
            find, skipped = self._searches.find, _skipped(wanted.arguments.get("skip", ""))
            is_brief = not subject.domain
            found = await find(subject.wanted, MOST_ENTRIES, wanted.is_lost, is_brief=is_brief, skipped=skipped)
        except Crowded:
            return self._crowded(query)
        known = self._known(subject.domain) if subject.domain else ()
        next_skip = skipped + MOST_ENTRIES if found.looked.is_cut and skipped < MOST_SKIPPED else None
        looked, zone = found.looked, self._zone
        values = listing_values(found.messages, known, looked, now, zone, skipped=skipped, next_skip=next_skip)
        return self._page("queue", values, query)

    async def _message(self, wanted: Wanted) -> WebAnswer:
        name = wanted.arguments.get("id", "").strip()
        queue_id, spool_id = parse_queue_id(name), parse_spool_id(name)
        if queue_id is not None:
            spool_id = queue_id.spool_id
        if spool_id is None:
            text = "An ID has 16 upper-case hexadecimal digits, and -N behind them for one recipient."
            return self._trouble(400, "This is no ID", text, WARN, name)
        subject: Filter = parse_subject(name).wanted
        remembered = self._searches.remembered(spool_id, None if queue_id is None else queue_id.number)
        most_s = MOST_S_OF_ID if remembered is None else MOST_S_AGAIN
        most = MOST_RECIPIENTS if queue_id is None else 1
        try:
            found = await self._searches.find(subject, most, wanted.is_lost, is_brief=False, most_s=most_s)
        except Crowded:
            return self._crowded(name)
        messages, at = found.messages, None
        if not messages and remembered is not None and found.looked.is_late:
            messages, at = [self._searches.explain(remembered.message)], remembered.at
        if not messages:
            return self._not_found(name, found.looked)
        header, is_one = await self._searches.header(spool_id), queue_id is not None
        values = message_values(messages, header, found.looked, self._zone, is_one_recipient=is_one, found_at=at)
        return self._page("message", values, name)

    def _page(
        self, name: str, values: Mapping[str, object], query: str = "", *, status: int = 200, refresh_s: int = 0
    ) -> WebAnswer:
        here = {"message": "queue", "trouble": "queue"}.get(name, name)
        zone = zone_name(self._clock.seconds(), self._zone)
        frame = {"query": query, "here": here, "refresh_s": refresh_s, "zone": zone}
        return WebAnswer(status, render(name, {**frame, **values}))

    def _not_found(self, name: str, looked: SearchExtent) -> WebAnswer:
        if looked.is_late or looked.gaps:
            text = f"It was not found in what could be read in time. With all the time it needs: mailismus queue show {name}"
            return self._trouble(503, name, text, WARN, name)
        return self._trouble(404, name, "It is not in the queue: it was delivered or returned, or never came.", PLAIN, name)

    def _crowded(self, query: str) -> WebAnswer:
        return self._trouble(503, "Try again", "Other searches are under way: each takes a few seconds.", BAD, query)

    def _trouble(self, status: int, title: str, text: str, grade: str, query: str) -> WebAnswer:
        return self._page("trouble", {"title": title, "text": text, "grade": grade}, query, status=status)


def _words_of(query: str) -> list[str]:
    """The words of a query; blanks may stand in quotes. Raises `FilterError`."""
    if len(query) > MAX_QUERY:
        raise FilterError(f"it is longer than {MAX_QUERY} characters")
    try:
        words = shlex.split(query)
    except ValueError:
        raise FilterError("a quote or a backslash has no end") from None
    if len(words) > MAX_WORDS:
        raise FilterError(f"it has more than {MAX_WORDS} words")
    return words


def _skipped(text: str) -> int:
    """How many entries stand on the pages before the one that is asked for; 0: that is no number of a page."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return number if number <= MOST_SKIPPED and not number % MOST_ENTRIES else 0
