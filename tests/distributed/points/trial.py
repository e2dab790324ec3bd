"""A trial: two servers, their users, and their time; one of them is in trouble at one call.

    workload is prepared -> armed -> the operation begins -> time goes on until nothing is left -> what must hold

*Rules*: `a` is the server in trouble, `b` the second one, which runs from the beginning. Time goes from one event to the
next, so that nothing comes later than it would. Whatever a part of the queue logs as broken is a break.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.python.failure import Failure

from mailismus.errors import StartError, StorageError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.distributed.format.marks import WHOLE
from mailismus.queue.providers.distributed.format.share import to_signed
from mailismus.queue.providers.distributed.format.tables import DEAD, DELETED, ENQUEUED
from tests.distributed.points.digest import digest_of
from tests.distributed.points.ledger import Broken, Ledger, name_of
from tests.distributed.points.point import END, At, Point
from tests.distributed.points.settlements import release
from tests.distributed.points.user import CONTENT, User
from tests.distributed.points.watch import CallWatch
from tests.distributed.servers import Node, Servers

LATE_S = 20.0
"""Until what is late comes, of a server that lives: it has gone on by then."""
TAKEN_OVER_S = 45.0
"""The same, of one that was killed, and of which the other one has taken nothing over."""
PATIENCE_S = 1500
"""By then what has no trigger was looked for twice."""
HELP_S = 30
"""Seconds between two looks of the administrator."""
TRIES = 12


class Known(Exception):
    """An equal state was looked at before."""


class Trial:
    """One state of a workload: a context manager. `point`: None: nothing happens. `known`: digests of states that were
    looked at; that of this one is added."""

    def __init__(self, point: Point | None = None, known: set[bytes] | None = None) -> None:
        self.point, self._known = point, set[bytes]() if known is None else known
        self._is_known = False
        self.servers = Servers()
        self.ledger = Ledger()
        self.watch = CallWatch(self._kill_a)
        self.users: list[User] = []
        self.is_helped = False
        """Whether an administrator at `b` releases what is held."""
        self.is_moved_late = False
        """Whether entries, or marks, came late of a server that was killed."""
        self._broken: list[str] = []
        self._met_at: float | None = None
        self._begun_before = 0

    @property
    def _observer(self) -> ILogObserver:
        return cast(ILogObserver, self._note)

    def __enter__(self) -> Trial:
        globalLogPublisher.addObserver(self._observer)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        globalLogPublisher.removeObserver(self._observer)
        self.servers.clock.calls.clear()

    def _note(self, event: LogEvent) -> None:
        failure = event.get("log_failure")
        if failure is not None:
            self._broken.append(failure.getTraceback())

    # servers

    def start_both(self) -> None:
        """Both servers run; their users rest."""
        self.start("a")
        self.start("b")

    def start(self, name: str) -> User:
        """A server, and its user, who rests."""
        return self.use(name, self.servers.start(name, self.watch if name == "a" else None))

    def use(self, name: str, node: Node) -> User:
        """A user of a server."""
        user = User(name, node, self.ledger)
        user.is_resting = True
        self.users.append(user)
        return user

    @property
    def a(self) -> User:
        """The server in trouble."""
        return next(user for user in self.users if user.name == "a")

    @property
    def b(self) -> User:
        """The second one."""
        return next(user for user in self.users if user.name == "b")

    def living(self) -> list[User]:
        """The users whose servers live."""
        return [user for user in self.users if not user.node.host.is_dead]

    def wake(self) -> None:
        """All users work from now on."""
        for user in self.users:
            user.is_resting = False

    def end_window(self) -> None:
        """What is behind the calls of the workload comes now."""
        if self.point is not None and self.point.call == END:
            self.watch.disarm()
            self._kill_a()

    def _kill_a(self) -> None:
        """The server in trouble is killed. Is an equal state known, the trial ends soon."""
        self.kill(self.a)
        late = self.point if self.watch.late is not None else None
        digest = digest_of(self.servers.world, late, self.ledger.state())
        self._is_known = digest in self._known
        self._known.add(digest)

    def kill(self, user: User) -> None:
        """SIGKILL."""
        self.ledger.kill(user.name, self._is_durable)
        user.node.kill()

    def _is_durable(self, queue_id: QueueId) -> bool:
        """Whether a mark says that an entry has ended: of a share that has it."""
        rows, spool_id = self.servers.world.rows, to_signed(queue_id.spool_id)
        for key, partition in rows.tables[ENQUEUED.name].items():
            for place in partition.rows:
                head = rows.seen(ENQUEUED, (*key, *place)) if place[1] == 0 else None
                if head is None or head["spool_id"] != spool_id or (place[0], queue_id.number) not in partition.rows:
                    continue
                marks = (rows.seen(DELETED, (*key, place[0], number)) for number in (WHOLE, queue_id.number))
                if any(mark is not None and mark["done_at"] is not None for mark in marks):
                    return True
        return False

    # time

    def now(self) -> float:
        return self.servers.now()

    def advance(self, seconds: float) -> None:
        """So much time goes by, event by event; users do something each second."""
        end = self.now() + seconds
        while end - self.now() > 0.0005:
            for user in self.living():
                user.turn()
            self._advance(min(1.0, end - self.now()))

    def _advance(self, seconds: float) -> None:
        clock = self.servers.clock
        end = self.now() + seconds
        while end - self.now() > 0.0005:
            following = clock.calls[0].getTime() - self.now() if clock.calls else seconds
            clock.advance(min(max(0.001, following), end - self.now()))
            self._look()

    def _look(self) -> None:
        """What is late may come now. What broke is told."""
        if self._is_known:
            raise Known
        if self._broken:
            raise Broken("logged: " + self._broken[0])
        for user in self.users:
            if user.failures:
                raise Broken(user.failures[0].getTraceback())
        if self.point is None or self.point.at is not At.LATE or self.watch.late is None:
            return
        if self._met_at is None:
            self._met_at, self._begun_before = self.now(), self._begun_elsewhere()
        waited = self.now() - self._met_at
        has_gone_on = self._begun_elsewhere() > self._begun_before if self.point.is_kill else waited >= LATE_S
        if has_gone_on or waited >= TAKEN_OVER_S:
            self._do_late()

    def _do_late(self) -> None:
        """What is late comes. Entries of a server that was killed may move by that, or a report of it may come."""
        before = self._count_rows()
        self.watch.do_late()
        if self.a.node.host.is_dead and self._count_rows() != before:
            self.is_moved_late = True
            self.ledger.come_late(self.a.name)

    def _count_rows(self) -> int:
        tables = self.servers.world.rows.tables
        return sum(len(part.rows) for table in (ENQUEUED, DELETED) for part in tables[table.name].values())

    def _begun_elsewhere(self) -> int:
        return sum(user.begun for user in self.users if user.name != "a")

    def jump(self, seconds: float) -> None:
        """The machines sleep for so long, and have their leases again behind it."""
        self.servers.clock.advance(seconds)
        self.advance(45)

    # words of workloads

    def put(self, user: User, recipients: Sequence[bytes] = (b"x@d.example",), content: bytes = CONTENT) -> None:
        """A message, taken."""
        user.send((recipients, content))
        self.advance(0.01)

    def hold(self, user: User, recipients: Sequence[bytes] = (b"x@d.example",), content: bytes = CONTENT) -> Message:
        """New mail that this server has taken, and not begun."""
        for number in range(TRIES):
            (mail,) = user.send((recipients, content))
            self.advance(1)
            held = self._take(user, Area.INCOMING, mail.spool_id)
            if held is not None:
                return held
            self.let_deliver()
            if number % 4 == 3:
                self.put(user)  # servers are told in turn, and a report may come between two messages each time
        raise Broken("the server never gets new mail")

    def hold_deferred(self, user: User, recipients: Sequence[bytes]) -> Message:
        """The same, of mail that waited."""
        for _ in range(TRIES):
            message = self.hold(user, recipients)
            user.attempt(message)
            self.advance(17)
            held = self._take(user, Area.DEFERRED, message.spool_id)
            if held is not None:
                return held
            self.let_deliver()
        raise Broken("the server never gets deferred mail")

    @staticmethod
    def _take(user: User, area: Area, spool_id: SpoolId) -> Message | None:
        """Take this message, and deliver all others."""
        found = None
        for message in user.node.take(area):
            if message.spool_id == spool_id:
                found = message
            else:
                user.attempt(message)
        return found

    def let_deliver(self) -> None:
        """All servers work for some seconds."""
        for user in self.living():
            user.is_resting = False
        self.advance(3)
        for user in self.living():
            user.is_resting = True

    def open(self, name: str) -> None:
        """A server starts, and works. It ends where it can't be opened."""
        user = self.use(name, Node(self.servers, name, self.watch))

        def on_failed(failure: Failure) -> None:
            if not isinstance(failure.value, StartError):
                failure.raiseException()
            self.kill(user)

        self.begin(user, lambda: user.node.queue.open().addErrback(on_failed))

    def close(self, user: User) -> None:
        """A server stops; its user has stopped before."""
        user.is_ending = True
        self.begin(user, lambda: user.node.queue.close().addCallback(lambda _: user.node.host.kill()))

    def begin(self, user: User, call: Callable[[], Deferred[Any]]) -> None:
        """An operation of this server begins. What it refuses is not done."""
        user.under_way += 1
        called: Deferred[Any] = call()

        def ended(result: object) -> None:
            user.under_way -= 1
            if isinstance(result, Failure) and not isinstance(result.value, StorageError):
                user.failures.append(result)

        called.addBoth(ended)

    def begin_coroutine(self, user: User, call: Callable[[], Coroutine[Deferred[Any], Any, Any]]) -> None:
        """The same, of a coroutine."""
        self.begin(user, lambda: Deferred.fromCoroutine(call()))

    # until all is over

    def drain(self) -> None:
        """Time goes on until nothing is left. Raises `Broken`."""
        self.wake()
        for second in range(PATIENCE_S):
            self.advance(1)
            if self.is_helped and second % HELP_S == HELP_S - 1:
                self.b.act((Area.HELD, release), (Area.DELETED, release))
            if second % 2 or not self._is_quiet() or self.b.node.search():
                continue
            if self.watch.late is None:
                break
            self._do_late()
        else:
            left = [
                f"{name_of(QueueId(one.spool_id, entry.number))} ({entry.area.value})" for one, entry in self.b.node.search()
            ]
            raise Broken(f"left behind: {', '.join(left)}; triggers: {self._triggers()}; under way: {self._under_way()}")

    def _is_quiet(self) -> bool:
        """Whether nothing is under way, and no trigger is left."""
        return not any(self._under_way().values()) and not any(self._triggers().values())

    def _under_way(self) -> dict[str, int]:
        return {user.name: user.under_way for user in self.living()}

    def _triggers(self) -> dict[str, int]:
        """How many each queue of the broker has, delivered or not."""
        queues = self.servers.world.broker.queues
        held = {name: sum(len(one.held) for one in queue.consumers) for name, queue in queues.items()}
        return {name: len(queue.waiting) + held[name] for name, queue in queues.items() if name != DEAD}
