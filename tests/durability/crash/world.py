"""A server at work on a disk that remembers: what it is asked for, and what the outside world learns of it.

*Not here*: what the operations of workloads are (`operations`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from mailismus.errors import StartError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Filter, Message, Placement, Settlement, Submission
from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.knowledge import Acknowledged, Asked, Found, Refused, Seen, Sent, Settled
from tests.durability.crash.server import Server, clock_workers, new_clock
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject
from tests.fakes.stuffing import stuffed_dots

ANY = 1 << 20
LATER = Reply(451, b"4.3.0", b"come back later")


class World:
    """One queue and its story so far."""

    def __init__(self, subject: Subject = CLUSTERED, *, hardlinks: bool = False) -> None:
        self.subject = subject
        self.settings = subject.settings(hardlinks=hardlinks)
        self.disk = TreeDisk()
        self.clock = new_clock()
        self._numbers = itertools.count(1)
        self._contents = itertools.count(1)
        self.server = self._start()
        self.settle_down()

    def _start(self) -> Server:
        return Server(
            self.subject,
            self.disk,
            self.settings,
            self.clock,
            lambda size: next(self._numbers).to_bytes(size, "big"),
            clock_workers(self.clock),
        )

    # the outside

    def settle_down(self) -> None:
        """Let everything that is under way end."""
        self.server.settle_down()

    def now(self) -> float:
        """Whole seconds: as times are in lines."""
        return float(int(self.clock.seconds()))

    def send(
        self, count: int = 1, size: int = 100, *, head: bytes = b"", words: tuple[bytes | None, ...] = ()
    ) -> Submission:
        """A message with so many recipients, not committed yet. `words`: of the message, then of each recipient."""
        draft = self.server.queue.draft()
        content = b"%b%d\r\n..%b\r\n..\r\n" % (head, next(self._contents), b"x" * size)
        pause = draft.write(content)
        if pause is not None:
            self.server.wait(pause)
        recipients = tuple(b"r%d@d.example" % number for number in range(1, count + 1))
        self.disk.mark(Sent(draft.spool_id, content, count, words=words))
        of_message = words[0] if words else None
        envelope = Envelope(b"a@b.example", recipients, b"192.0.2.1", False, stuffed_dots(content), of_message)
        placements = tuple(
            Placement(number, Area.INCOMING, self.now(), 0, None, b"-", each) for number, each in enumerate(words[1:], 1)
        )
        return Submission(draft, envelope, self.now(), placements or None)

    def commit(self, submissions: Sequence[Submission]) -> None:
        """Ask for it."""
        done = self.server.queue.commit(submissions, ())
        done.addCallbacks(partial(self._tell, Acknowledged, submissions), partial(self._refused, submissions))

    def _refused(self, submissions: Sequence[Submission], failure: object) -> None:
        failure.trap(Unavailable)  # type: ignore[attr-defined]  # a Failure
        self._tell(Refused, submissions, ())

    def _tell(self, fact: Callable[[SpoolId], object], submissions: Sequence[Submission], gone: object) -> None:
        for submission in submissions:
            self.disk.mark(fact(submission.draft.spool_id))

    def store(self, count: int = 1, size: int = 100, *, head: bytes = b"") -> None:
        """A message, and its reply."""
        self.commit([self.send(count, size, head=head)])
        self.settle_down()

    def settle(
        self,
        message: Message,
        entries: Sequence[Entry],
        area: Area | None,
        delay_s: float = 0.0,
        new_words: bytes | None = None,
    ) -> None:
        """Ask for it. `new_words`: of the entries; None: those of a message that has some change by turns."""
        settlements = []
        for entry in entries:
            attempts = entry.attempts + (area is not None)
            queue_id = QueueId(message.spool_id, entry.number)
            words = (b"", b"tries=%d" % attempts, None)[attempts % 3] if message.words is not None else None
            words = words if new_words is None else new_words
            settlement = Settlement(queue_id, area, self.now() + delay_s, attempts, LATER, b"mx[192.0.2.9]:25", words)
            self.disk.mark(Asked(settlement))
            settlements.append(settlement)
        self.server.queue.commit((), settlements).addCallback(partial(self._is_settled, settlements))

    def _is_settled(self, settlements: Sequence[Settlement], gone: object) -> None:
        for settlement in settlements:
            self.disk.mark(Settled(settlement))

    # what there is

    def live(self) -> dict[QueueId, Seen]:
        """All entries."""
        page = self.server.wait(self.server.queue.search(Filter(), None, ANY))
        return {
            QueueId(message.spool_id, entry.number): _seen(message, entry)
            for message in page.messages
            for entry in message.entries
        }

    def take(self, is_wanted: Callable[[QueueId], bool], most: int, areas: Sequence[Area]) -> list[Message]:
        """Entries in hand, those of the oldest messages first."""
        taken: list[Message] = []
        for area in areas:
            found = self.server.wait(self.server.queue.take(area, ANY, self.clock.seconds(), None))
            for message in sorted(found, key=_age):
                kept = []
                for entry in sorted(message.entries, key=_number):
                    queue_id = QueueId(message.spool_id, entry.number)
                    if most and is_wanted(queue_id):
                        most -= 1
                        kept.append(entry)
                    else:
                        self.server.queue.give_back([queue_id], 0.0)
                if kept:
                    message.entries = kept
                    taken.append(message)
        return taken

    def claim(self, areas: Sequence[Area], most: int) -> list[Message]:
        """Entries of these areas in hand, as for an act of an administrator: whatever their time."""
        wanted = Filter(matches=lambda message, entry: entry.area in areas)
        claimed: list[Message] = []
        cursor: object | None = None
        while True:
            page = self.server.wait(self.server.queue.claim(wanted, cursor, 1))
            for message in page.messages:
                kept = message.entries[:most]
                for entry in message.entries[most:]:
                    self.server.queue.give_back([QueueId(message.spool_id, entry.number)], entry.due_at)
                most -= len(kept)
                if kept:
                    message.entries = kept
                    claimed.append(message)
            cursor = page.cursor
            if cursor is None or not most:
                return claimed

    # what goes wrong

    def restart(self) -> None:
        """The process is killed, and started again."""
        self.clock.calls.clear()
        self.disk.kill()
        self.server = self._start()
        self.disk.mark(Found(self.live()))
        self.settle_down()

    def begin_anew(self, killed_at: Sequence[str]) -> None:
        """From an empty disk: starts that are killed before they can sync these directories, then one that is not."""
        self.clock.calls.clear()
        self.disk = TreeDisk()
        for path in killed_at:
            self.fail_all(lambda act, path=path: act.kind is Kind.SYNC_DIRECTORY and act.path == path)  # type: ignore[misc]  # bound at once
            with suppress(StartError):
                self._start()  # one of a queue that has no such directory gets on, until it is killed
            self.clock.calls.clear()
            self.disk.kill()
        self.disk.fault = None
        self.server = self._start()
        self.settle_down()

    def fail_next(self, is_meant: Callable[[Act], bool]) -> None:
        """The next write or barrier that is meant fails, once."""

        def fault(act: Act) -> OSError | None:
            if is_meant(act):
                self.disk.fault = None
                return OSError(5, "injected")
            return None

        self.disk.fault = fault

    def fail_all(self, is_meant: Callable[[Act], bool]) -> None:
        """All that are meant fail, until `disk.fault` is None."""
        self.disk.fault = lambda act: OSError(5, "injected") if is_meant(act) else None


def _seen(message: Message, entry: Entry) -> Seen:
    return Seen(entry.area, entry.attempts, entry.due_at, (message.words, entry.words))


def _age(message: Message) -> SpoolId:
    return message.spool_id


def _number(entry: Entry) -> int:
    return entry.number
