"""Messages to list, and a queue of files that is a list."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

import attrs

from mailismus.admin.model.tally import Tally
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Filter, Gap, Message, Summary
from mailismus.queue.waiting import NoExplanations, Waiting

ARRIVAL = 1_700_000_000.5
LATER = Reply(451, b"4.3.0", b"come back later")
UNKNOWN = Reply(550, b"5.1.1", b"no such user")
MX = b"mx.example[192.0.2.1]:25"


def message(number: int, *entries: Entry, sender: bytes = b"a@b.example", count: int = 0, size_bytes: int = 2000) -> Message:
    return Message(
        SpoolId((1 << 32) + number),
        sender,
        b"192.0.2.7",
        False,
        ARRIVAL,
        size_bytes,
        count or len(entries),
        list(entries),
    )


def incoming(number: int = 1, recipient: bytes = b"c@d.example") -> Entry:
    return Entry(number, recipient, Area.INCOMING, ARRIVAL)


def deferred(number: int = 1, recipient: bytes = b"c@d.example", reply: Reply | None = LATER) -> Entry:
    return Entry(number, recipient, Area.DEFERRED, ARRIVAL + 900, 1, reply, MX if reply else b"-")


def bounced(number: int = 1, recipient: bytes = b"c@d.example") -> Entry:
    return Entry(number, recipient, Area.BOUNCES, ARRIVAL, 1, UNKNOWN, MX)


@attrs.define(eq=False)
class Told(NoExplanations):
    """Explanations that the test gives."""

    waiting: Mapping[QueueId, Waiting] = attrs.Factory(dict)
    known: Sequence[bytes] = ()

    def of(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        ids = {queue_id for one in messages for queue_id in one.queue_ids()}
        return {queue_id: waiting for queue_id, waiting in self.waiting.items() if queue_id in ids}

    def of_domain(self, domain: bytes) -> Sequence[bytes]:
        return self.known


@attrs.define(eq=False)
class ListedQueue:
    """An offline queue of these messages."""

    messages: Sequence[Message] = ()
    page_size: int = 2
    pieces: Mapping[SpoolId, Sequence[bytes]] = attrs.Factory(dict)
    gaps: tuple[Gap, ...] = ()
    is_closed: bool = False

    def summary(self) -> Summary:
        tally = Tally()
        for one in self.messages:
            tally.add(one)
        return tally.summary()

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        found = []
        for one in self.messages:
            if wanted.spool_id not in (None, one.spool_id):
                continue
            entries = [entry for entry in one.entries if wanted.area in (None, entry.area) and wanted.matches(one, entry)]
            if entries:
                found.append(attrs.evolve(one, entries=entries))
        for at in range(0, len(found), self.page_size):
            yield found[at : at + self.page_size]

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        yield from self.pieces[spool_id]

    def servers(self) -> None:
        return None

    def close(self) -> None:
        self.is_closed = True
