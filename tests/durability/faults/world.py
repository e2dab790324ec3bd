"""The world around a queue whose disk fails: clients, next hops and an operator, and what each of them knows.

Everybody goes on as they would: a client that is refused keeps its mail, a next hop is not asked for what can't be read, an
operator starts the server again when it says why it did not start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from twisted.python.failure import Failure

from mailismus.errors import StartError, StorageError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Filter, IQueue, Message, Settlement, Submission
from mailismus.queue.manager import QueueManager
from mailismus.queue.outcome.disposition import Disposition
from tests.contracts.bench import addresses
from tests.durability.faults.disk import FaultyDisk
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.harness import SubjectHarness
from tests.durability.subjects.interface import RunningSubject, Subject
from tests.fakes.managing import accept, settle

LARGE = 100_000
"""Contents longer than this go to their silo."""
ANSWER_S = 10.0
"""A client is answered within so many seconds, whatever the disk does."""

_DELIVERED = Outcome(OutcomeKind.DELIVERED, Reply(250, b"2.0.0", b"Ok"), b"mx[192.0.2.9]:25")
DEFERRED = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.3.0", b"later"), b"mx[192.0.2.9]:25")
_FAILED = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user"), b"mx[192.0.2.9]:25")


class Broken(AssertionError):
    """A promise was."""


@attrs.define
class Letter:
    """A message that somebody sent."""

    content: bytes
    count: int
    is_acknowledged: bool = False
    covers: tuple[QueueId, ...] = ()
    """Of a report: the bounces that it is about."""


class NullLog:
    """`MailLog` of nobody."""

    def write(self, line: bytes) -> None:
        pass

    def write_lines(self, lines: Sequence[bytes]) -> None:
        pass


class World:
    """One server over one disk. `refusals`: what clients got in place of a 250; `start_errors`: why it did not start."""

    def __init__(self, subject: Subject = CLUSTERED, *, hardlinks: bool = False, disk: FaultyDisk | None = None) -> None:
        self.subject = subject
        self.hardlinks = hardlinks
        self.disk = disk or FaultyDisk()
        self.harness = SubjectHarness(subject, subject.settings(hardlinks=hardlinks, large=LARGE), self.disk)
        self.letters: dict[SpoolId, Letter] = {}
        self.gone: set[QueueId] = set()
        """Entries that are delivered, or of which a report is."""
        self.tried: dict[QueueId, int] = {}
        """Attempts that ended in a deferral or a bounce."""
        self.refusals: list[int] = []
        self.jumped_s = 0.0
        """How far the wall clock has jumped, as against the monotonic one."""
        self.unreadable = 0
        """Times that a message could not be read."""
        self.start_errors: list[StartError] = []
        self.was_in_doubt = False
        """When the server was last killed, an outcome was not durable."""
        self.queue: IQueue | None = None
        self.manager: QueueManager | None = None

    # the operator

    def start(self) -> bool:
        """Whether it started."""
        assert self.queue is None
        files = len(self.disk.open_files)
        self.disk.stage = "start"
        try:
            self.queue = self.harness.open()
        except StartError as error:
            self.start_errors.append(error)
            if not error.text or error.status not in (74, 75, 77):
                raise Broken(f"a start ends without a word: {error!r}") from error
            if self.disk.locks:
                raise Broken("a start that was refused holds locks") from error
            if len(self.disk.open_files) > files:
                raise Broken(f"a start that was refused leaves files open: {self._paths()}") from error
            self._is_gone()
            return False
        self.disk.stage = "run"
        clock = self.harness.clock
        self.manager = QueueManager(
            self.queue, self.harness.settings.retry, clock, lambda: float(clock.seconds()) - self.jumped_s, NullLog()
        )
        self.settle_down()
        return True

    def start_at_last(self) -> None:
        """As an operator does: again and again, and in the end with a disk that works."""
        for _ in range(2):
            if self.start():
                return
        self.disk.heal()
        if not self.start():
            raise Broken(f"it does not start although the disk works: {self.start_errors[-1]}")

    def stop(self) -> None:
        """SIGTERM."""
        queue = self.running()
        done: list[object] = []
        queue.close().addBoth(done.append)
        for _ in range(1000):  # each act of a worker takes two turns of this clock at least
            if done:
                break
            self.harness.clock.advance(0.05)
        if not done or isinstance(done[0], Failure):
            raise Broken(f"a stop does not end: {done}")
        self._is_gone()

    def kill(self) -> None:
        """kill -9."""
        self._is_gone()

    def cut(self) -> None:
        """The power."""
        self._is_gone()
        self.disk.power_cut()

    def _is_gone(self) -> None:
        if self.manager is not None and self.manager.in_doubt:
            self.was_in_doubt = True
        self.queue = self.manager = None
        self.harness.clock.calls.clear()
        self.disk.kill()

    def running(self) -> IQueue:
        assert self.queue is not None
        return self.queue

    def settle_down(self, seconds: float = 0.3) -> None:
        """Time goes by."""
        for _ in range(int(seconds * 50)):
            self.harness.clock.advance(0.02)

    def _paths(self) -> list[str]:
        return sorted(file.path for file in self.disk.open_files)

    # clients

    def store(self, recipients: int = 1, size: int = 100, sender: bytes = b"a@b.example") -> bool:
        """Whether it got its 250."""
        done: list[bool] = []
        self.send(recipients, size, sender, done.append)
        return self._on_answered(done)

    def _on_answered(self, done: list[bool]) -> bool:
        self.settle_down(0.1)
        waited = 0.0
        while not done:
            self.harness.clock.advance(0.1)
            waited += 0.1
            if waited > ANSWER_S:
                raise Broken("a client gets no answer")
        return done[0]

    def send(self, recipients: int, size: int, sender: bytes, told: Callable[[bool], None]) -> None:
        """A message; `told` is called with whether there was a 250."""
        assert self.manager is not None
        try:
            draft = self.manager.draft()
        except Unavailable as error:
            self._is_refused(error)
            told(False)
            return
        content = b"%016X " % draft.spool_id + b"x" * size
        letter = self.letters[draft.spool_id] = Letter(content, recipients)
        for at in range(0, len(content), 60_000):
            draft.write(content[at : at + 60_000])

        def accepted(_: object) -> None:
            letter.is_acknowledged = True
            told(True)

        def refused(failure: Failure) -> None:
            failure.trap(Unavailable)  # type: ignore[no-untyped-call]  # Twisted's
            draft.abandon()
            assert isinstance(failure.value, Unavailable)
            self._is_refused(failure.value)
            told(False)

        envelope = Envelope(sender, tuple(addresses(recipients)), b"192.0.2.1", False)
        accept(self.manager, draft, envelope).addCallbacks(accepted, refused)

    def _is_refused(self, error: Unavailable) -> None:
        if self.disk.is_ill is None:  # otherwise it was the workload that saw to it
            self.refusals.append(452 if error.full else 451)

    def burst(self, count: int, size: int) -> None:
        """Many at once."""
        answers: list[bool] = []
        for _ in range(count):
            self.send(1, size, b"a@b.example", answers.append)
        for _ in range(count):
            self._on_answered(answers)
        if len(answers) != count:
            raise Broken("a client gets no answer, or two")

    # next hops

    def take(self, area: Area, limit: int) -> list[Message]:
        assert self.manager is not None
        return self.harness.wait(self.manager.take(area, limit))

    def attempt(self, area: Area, outcome: Outcome, limit: int = 1) -> int:
        """Try so many entries at most; gives how many were."""
        count = 0
        for message in self.take(area, limit):
            count += len(message.entries)
            self.settle(message, outcome)
        self.settle_down(0.1)
        return count

    def settle(self, message: Message, outcome: Outcome) -> None:
        """The attempt came to this, if the message can be read."""
        assert self.manager is not None
        try:
            content = self.read(message.spool_id)
        except StorageError:
            self.unreadable += 1
            outcome = DEFERRED
        else:
            letter = self.letters.get(message.spool_id)
            if letter is None:
                raise Broken("an entry that nobody sent")
            if content != letter.content:
                raise Broken("other bytes than were sent")
        dispositions = settle(self.manager, message, [(entry, outcome) for entry in message.entries])
        for entry, disposition in zip(message.entries, dispositions, strict=True):
            self._note(message, entry, disposition)

    def _note(self, message: Message, entry: Entry, disposition: Disposition) -> None:
        queue_id = QueueId(message.spool_id, entry.number)
        is_over = disposition is not Disposition.DEFERRED and not message.sender  # of a failed report there is no report
        if disposition is Disposition.SENT or is_over:
            if queue_id in self.gone and not self.was_in_doubt:
                raise Broken("delivered twice")
            self.gone.add(queue_id)
        else:
            self.tried[queue_id] = entry.attempts + 1

    def read(self, spool_id: SpoolId) -> bytes:
        content = self.running().read(spool_id)
        if isinstance(content, bytes):
            return content
        reader = self.harness.wait(content)
        pieces = []
        try:
            while piece := self.harness.wait(reader.next()):
                pieces.append(piece)
        finally:
            reader.close()
        return b"".join(pieces)

    def deliver(self, area: Area = Area.INCOMING, limit: int = 1) -> None:
        self.attempt(area, _DELIVERED, limit)

    def defer(self, area: Area = Area.INCOMING, limit: int = 1) -> None:
        self.attempt(area, DEFERRED, limit)

    def fail(self, area: Area = Area.INCOMING, limit: int = 1) -> None:
        self.attempt(area, _FAILED, limit)

    def report(self) -> None:
        """A bounce becomes a report, in one commit."""
        messages = self.take(Area.BOUNCES, 1)
        if not messages:
            return
        assert self.manager is not None
        (message,) = messages
        queue_ids = [QueueId(message.spool_id, entry.number) for entry in message.entries]
        try:
            draft = self.manager.draft()
        except Unavailable as error:
            self._is_refused(error)
            self.manager.give_back(message, message.entries, 0.0)
            return
        content = b"%016X report" % draft.spool_id
        letter = self.letters[draft.spool_id] = Letter(content, 1, covers=tuple(queue_ids))
        draft.write(content)
        submission = Submission(draft, Envelope(b"", (message.sender,), b"127.0.0.1", False), self.harness.now())

        def reported(_: object) -> None:
            letter.is_acknowledged = True
            self.gone.update(queue_ids)

        def refused(failure: Failure) -> None:
            failure.trap(Unavailable)  # type: ignore[no-untyped-call]  # Twisted's
            self.running().give_back(queue_ids, 0.0)

        done = self.running().commit((submission,), [Settlement(queue_id, None) for queue_id in queue_ids])
        done.addCallbacks(reported, refused)
        self.settle_down(0.1)

    def take_all(self) -> bool:
        """Whatever is due, and whatever is not, is delivered; whether there was something."""
        self.harness.wait(self.running().visit_all(Filter(), self.harness.now()))
        return sum(self.attempt(area, _DELIVERED, 1000) for area in Area) > 0

    # time

    def checkpoint(self) -> None:
        """What stays is written behind; never later than the server would of itself."""
        self._provider().write_behind()
        self.settle_down()

    def _provider(self) -> RunningSubject:
        assert self.queue is not None
        assert self.harness.running is not None
        return self.harness.running

    def unrest(self) -> str | None:
        """What never ends, in words."""
        return self._provider().unrest()

    def later(self, seconds: float) -> None:
        """Time goes by in great steps."""
        for _ in range(8):
            self.harness.clock.advance(seconds / 8)
        self.settle_down(0.1)

    def checkpoint_in_vain(self, act: str) -> None:
        """One that is abandoned because this act on a file that it writes fails; the next has to clean up behind it."""
        upkept = self.subject.upkept
        if not upkept:
            return
        self.disk.is_ill = lambda one, path: one == act and path.endswith(upkept)
        self.checkpoint()
        self.disk.is_ill = None
        self.later(4)

    def store_in_vain(self, size: int = 100) -> None:
        """A message whose barrier fails: what lives in that segment is said again in another."""
        left = [1]

        def is_ill(act: str, path: str) -> bool:
            if act == "sync" and self.subject.is_commit_barrier(path) and left:
                left.pop()
                return True
            return False

        self.disk.is_ill = is_ill
        self.send(1, size, b"a@b.example", lambda told: None)
        self.settle_down()
        self.disk.is_ill = None

    def live(self) -> dict[QueueId, Entry]:
        """Every entry that the queue tells of."""
        cursor: object | None = None
        found: dict[QueueId, Entry] = {}
        while True:
            page = self.harness.wait(self.running().search(Filter(), cursor, 1000))
            for message in page.messages:
                for entry in message.entries:
                    queue_id = QueueId(message.spool_id, entry.number)
                    if queue_id in found:
                        raise Broken(f"{queue_id} is there twice")
                    found[queue_id] = entry
            cursor = page.cursor
            if cursor is None:
                return found

    def covered(self, live: dict[QueueId, Entry]) -> set[QueueId]:
        """Bounces whose report is there, or delivered: with one that was refused they may come back together."""
        known = {queue_id.spool_id for queue_id in (*live, *self.gone)}
        return {bounce for spool_id, letter in self.letters.items() if spool_id in known for bounce in letter.covers}

    def idle_files(self) -> Sequence[str]:
        """Files that are open though nothing goes on, but for those that the provider holds open all the time."""
        held = self.subject.held
        own = [path for path in self._paths() if held and path.startswith(held)]
        others = [path for path in self._paths() if path not in own]
        return [*others, *(own if len(own) > self._provider().own_files() else ())]
