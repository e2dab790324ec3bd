"""A queue that makes its entries as they are looked at, as many as one likes."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred, fail, succeed

from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, AreaCount, Entry, Filter, Flushed, Message, Page, Summary
from mailismus.queue.waiting import Explanations, NoExplanations
from tests.admin.samples import ARRIVAL, LATER, MX


class LongQueue:
    """So many deferred entries, a hundred in a message. It keeps nothing but a count of the searches. `recipient`: each
    one's address, with its number in it."""

    def __init__(self, entries: int, recipient: bytes = b"%d@d.example") -> None:
        self.entries = entries
        self._recipient = recipient
        self.searches = 0

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        self.searches += 1
        start = after if isinstance(after, int) else 0
        end = min(start + min(limit, 100), self.entries)
        entries = [
            Entry(number, self._recipient % number, Area.DEFERRED, ARRIVAL, 1, LATER, MX)
            for number in range(start + 1, end + 1)
        ]
        found = Message(SpoolId((1 << 32) + end), b"a@b.example", b"-", False, ARRIVAL, 2000, len(entries), entries)
        return succeed(Page((found,), end if end < self.entries else None))

    def counting_plan(self) -> None:
        return None

    def servers(self) -> None:
        return None

    def summary(self) -> Deferred[Summary]:
        return succeed(Summary({area: AreaCount() for area in Area}, exact=True))

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return fail(Unavailable("no such message"))

    def visit_all(self, wanted: Filter | None) -> Deferred[Flushed]:
        return succeed(Flushed(self.entries))

    def explanations(self) -> Explanations:
        return NoExplanations()


def configuration(path: Path, socket_path: str) -> str:
    """A configuration file that names the socket."""
    file = path / "mailismus.xml"
    file.write_text(f"<mailserver><admin><socket>{socket_path}</socket></admin></mailserver>")
    return str(file)
