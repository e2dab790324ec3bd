"""Pages of a site over figures and entries of the test's, parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import cast

import attrs
from lxml import etree, html
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.admin.server.answers import LookableQueue
from mailismus.disk.interface import IDisk
from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.observe.overview import Overview
from mailismus.queue.content import IContent
from mailismus.queue.interface import Filter, Gap, Message, Page
from mailismus.queue.waiting import Explanations
from mailismus.web.history.recorder import Recorder
from mailismus.web.pictures import Pictures
from mailismus.web.search import Searches
from mailismus.web.site import Site
from tests.admin.samples import Told
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker
from tests.top.samples import NOW, idle
from tests.web.browsers import House, Response


@attrs.define
class FakeQueue:
    """A queue of these messages, which gives pages of `page_entries`. `on_page`: called before each."""

    messages: Sequence[Message] = ()
    explained: Told = attrs.Factory(Told)
    content: bytes | StorageError | Sequence[bytes] = b""
    page_entries: int = 100
    on_page: Callable[[], None] = lambda: None
    gaps: tuple[Gap, ...] = ()

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        self.on_page()
        begin = cast(int, after or 0)
        end = begin + min(self.page_entries, limit)
        found = []
        for one in self.messages[begin:end]:
            if wanted.spool_id not in (None, one.spool_id):
                continue
            entries = [entry for entry in one.entries if wanted.area in (None, entry.area) and wanted.matches(one, entry)]
            if entries:
                found.append(attrs.evolve(one, entries=entries))
        return succeed(Page(tuple(found), end if end < len(self.messages) else None, self.gaps if begin == 0 else ()))

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        if isinstance(self.content, StorageError):
            raise self.content
        return self.content if isinstance(self.content, bytes) else succeed(Pieces(list(self.content)))

    def servers(self) -> None:
        return None

    def explanations(self) -> Explanations:
        return self.explained


@attrs.define(eq=False)
class Pieces:
    """`IContent` of these pieces."""

    pieces: list[bytes]
    is_closed: bool = False

    @property
    def stored_bytes(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def at_hand(self) -> bytes | None:
        return None

    def next(self) -> Deferred[bytes]:
        return succeed(self.pieces.pop(0) if self.pieces else b"")

    def close(self) -> None:
        self.is_closed = True


class Place:
    """A site. `overviews`: one after the other, the last one for ever."""

    def __init__(
        self, overviews: Sequence[Overview] = (idle(),), queue: FakeQueue | None = None, zone: tzinfo | None = None
    ) -> None:
        self.clock, self.now = Clock(), NOW
        self.clock.rightNow = NOW
        self.queue = queue or FakeQueue()
        self._left = list(overviews)
        self.disk = MemoryDisk()
        self.monotonic_s = 0.0
        looked = cast(LookableQueue, self.queue)
        self.pictures = Pictures(self._next)
        self.recorder = Recorder(self.pictures.take, None, cast(IDisk, self.disk), MemoryWorker(), self.clock)
        self.searches = Searches(looked, self.clock, self.monotonic)
        known = lambda domain: tuple(self.queue.explained.of_domain(domain))  # noqa: E731
        self.site = Site(self.pictures, self.recorder, self.searches, known, self.clock, self.monotonic, zone)
        self.house = House(self.site.respond)

    def monotonic(self) -> float:
        return self.monotonic_s

    def _next(self, domain: bytes) -> Overview:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]

    def get(self, target: str, *, turns: int = 50) -> Response:
        """The answer to a request."""
        transport = self.house.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for _ in range(turns):
            self.clock.advance(0)
        return Response(transport.said)


def parse(response: Response) -> etree._Element:
    """A page as a browser has it."""
    assert response.fields["Content-Type"] == "text/html; charset=utf-8"
    return html.document_fromstring(response.text)


Element = tuple[str, tuple[tuple[str, str], ...]]


def skeleton(page: etree._Element, values: Sequence[str] = ("value", "href")) -> list[Element]:
    """Every element in order, with its attributes; of those in `values` the names alone."""
    found = []
    for element in page.iter():
        assert isinstance(element.tag, str), "a comment or a processing instruction"
        fields = [(str(name), "" if name in values else str(value)) for name, value in sorted(element.attrib.items())]
        found.append((element.tag, tuple(fields)))
    return found


def texts_of(page: etree._Element, path: str) -> list[str]:
    """The texts of elements."""
    return [text_of(element) for element in cast(list[etree._Element], page.xpath(path))]


def text_of(element: etree._Element) -> str:
    """All text of an element."""
    return "".join(map(str, element.itertext()))


def found_in(page: etree._Element, path: str) -> list[object]:
    """Elements, or values of attributes."""
    return list(cast(list[object], page.xpath(path)))
