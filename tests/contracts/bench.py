"""The queue's users in short words, for the tests of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    IQueue,
    Latest,
    Message,
    Placement,
    Settlement,
    Shares,
    Submission,
    Summary,
)
from tests.contracts.harness import QueueHarness
from tests.fakes.stuffing import stuffed_dots

T = TypeVar("T")

CONTENT = b"Received: by mx.example\r\n\r\nHello.\r\n"
LATER_REPLY = Reply(451, b"4.3.0", b"come back later")
NO_REPLY = Reply(550, b"5.1.1", b"no such user")


def beyond(latest: float, now: float) -> Latest:
    """What waits for a time behind `latest` is due now (`IQueue.hasten`)."""
    return lambda area, attempts, due_at: now if due_at > latest else due_at


class Bench:
    """A queue and its harness."""

    def __init__(self, harness: QueueHarness, queue: IQueue) -> None:
        self.harness = harness
        self.queue = queue

    def wait(self, deferred: Deferred[T]) -> T:
        return self.harness.wait(deferred)

    def now(self) -> float:
        return self.harness.now()

    def submission(
        self,
        recipients: Sequence[bytes] = (b"c@d.example",),
        content: bytes = CONTENT,
        *,
        sender: bytes = b"a@b.example",
        client: bytes = b"192.0.2.1",
        eightbit: bool = False,
        received_at: float | None = None,
        placements: tuple[Placement, ...] | None = None,
    ) -> Submission:
        draft = self.queue.draft()
        for at in range(0, len(content), 16384):
            pause = draft.write(content[at : at + 16384])
            if pause is not None:
                self.wait(pause)
        assert draft.stored_bytes == len(content)
        envelope = Envelope(sender, tuple(recipients), client, eightbit, stuffed_dots(content))
        return Submission(draft, envelope, self.now() if received_at is None else received_at, placements)

    def put(
        self,
        recipients: Sequence[bytes] = (b"c@d.example",),
        content: bytes = CONTENT,
        *,
        sender: bytes = b"a@b.example",
        client: bytes = b"192.0.2.1",
        eightbit: bool = False,
        received_at: float | None = None,
        placements: tuple[Placement, ...] | None = None,
    ) -> SpoolId:
        """A message, durable."""
        submission = self.submission(
            recipients,
            content,
            sender=sender,
            client=client,
            eightbit=eightbit,
            received_at=received_at,
            placements=placements,
        )
        self.commit([submission])
        return submission.draft.spool_id

    def commit(self, submissions: Sequence[Submission] = (), settlements: Sequence[Settlement] = ()) -> list[SpoolId]:
        """The messages that are over."""
        return self.gone(self.queue.commit(submissions, settlements))

    def gone(self, done: Deferred[Sequence[SpoolId]]) -> list[SpoolId]:
        """The messages that a commit was the end of, when it is durable."""
        spool_ids = self.wait(done)
        return list(spool_ids)

    def take(
        self, area: Area = Area.INCOMING, limit: int = 10_000, shares: Shares | None = None, now: float | None = None
    ) -> list[Message]:
        return self.wait(self.queue.take(area, limit, self.now() if now is None else now, shares))

    def take_ids(
        self, area: Area = Area.INCOMING, limit: int = 10_000, shares: Shares | None = None, now: float | None = None
    ) -> list[QueueId]:
        return ids(self.take(area, limit, shares, now))

    def take_until(self, area: Area, count: int, now: float | None = None) -> list[Message]:
        """Take until `count` entries are there: for providers whose resting entries come in several takes."""
        taken: list[Message] = []
        for _ in range(100):
            taken += self.take(area, now=now)
            if len(ids(taken)) >= count or self.harness.takes_at_once:
                break
            self.harness.advance(0.1)
        return taken

    def take_overlapping(self) -> dict[Area, list[QueueId]]:
        """Take from all areas at the same time: each take begins before any has ended, and the last one is waited for
        first."""
        taking = {area: self.queue.take(area, 100, self.now(), None) for area in Area}
        taken = {area: self.wait(taking[area]) for area in reversed(Area)}
        return {area: sorted(ids(messages)) for area, messages in taken.items()}

    def remove(self, queue_ids: Iterable[QueueId]) -> list[SpoolId]:
        return self.commit((), [Settlement(queue_id, None) for queue_id in queue_ids])

    def defer(self, queue_ids: Iterable[QueueId], due_at: float, attempts: int = 1, reply: Reply = LATER_REPLY) -> None:
        self.commit(
            (), [Settlement(queue_id, Area.DEFERRED, due_at, attempts, reply, b"mx[192.0.2.9]:25") for queue_id in queue_ids]
        )

    def read(self, spool_id: SpoolId) -> bytes:
        content = self.queue.read(spool_id)
        if isinstance(content, bytes):
            return content
        pieces = []
        reader = self.wait(content)
        size = reader.stored_bytes
        while piece := self.wait(reader.next()):
            assert len(piece) <= 64 << 10
            pieces.append(piece)
        reader.close()
        reader.close()
        whole = b"".join(pieces)
        assert len(whole) == size
        return whole

    def search(self, wanted: Filter | None = None, limit: int = 1000) -> list[tuple[Message, Entry]]:
        """All pages, flat."""
        found: list[tuple[Message, Entry]] = []
        cursor: object | None = None
        for _ in range(10_000):
            page = self.wait(self.queue.search(wanted or Filter(), cursor, limit))
            here = [(message, entry) for message in page.messages for entry in message.entries]
            assert len(here) <= limit
            assert all(message.entries for message in page.messages)
            found += here
            cursor = page.cursor
            if cursor is None:
                return found
        raise AssertionError("the search never ends")

    def summary(self) -> Summary:
        """Exact counts, waiting for a count that is under way; whoever counts by a plan counts the same."""
        for _ in range(1000):
            plan = self.queue.counting_plan()
            counted = None if plan is None else self.harness.count(plan)
            summary = self.wait(self.queue.summary())
            if summary.exact:
                assert counted in (None, summary)
                return summary
            self.harness.advance(0.1)
        raise AssertionError("the count never ends")

    def entry_count(self) -> int:
        return sum(count.entries for count in self.summary().areas.values())


def ids(messages: Iterable[Message]) -> list[QueueId]:
    """The queue ids of all entries."""
    return [queue_id for message in messages for queue_id in message.queue_ids()]


def addresses(number: int) -> list[bytes]:
    """So many different recipients."""
    return [b"r%d@d.example" % at for at in range(1, number + 1)]
