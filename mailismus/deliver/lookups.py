"""Look-ups: the hosts of destinations, for the schedule.

*Rules*
- While jobs come, the hosts are looked up again every `LOCATED_S`; the age of an answer is the locator's concern. Until the
  answer comes, sessions that stand serve.
- A failure is the outcome of all jobs that wait for it. If the hosts found earlier still serve, it changes nothing.
- At most `LIMIT` destinations are looked up at a time. A worker is a look-up under way; what the cache tells needs none. A
  free one goes to the first job of the line that may have it; each message that waits for a destination has a job there.
  `KEPT` workers are for senders that have few.
- A destination whose look-up took longer than `SLOW_S` last time is *slow*. Those have a line of their own, behind the
  other one, and at most `MOST_SLOW` workers: whatever their number, they delay only each other.
- While all workers are busy and others wait for one, a look-up that takes longer than `SLOW_S` is ended, and its destination
  waits in that line. So no number of senders with silent domains keeps the workers for longer.
- Waiting for a worker costs a job nothing: no time-out runs, no attempt is used. While some wait, look-ups have less time.

*Not here*: how names are looked up (`locator`), the order (`schedule.line`), what is allowed (`schedule.shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import key_of
from mailismus.deliver.routes.locator import Located, Locator
from mailismus.deliver.routes.route import HOST_NONE, HostFinding, NextHop
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.line import Line
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.deliver.schedule.shares import PoolShares
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Message

LIMIT = 100
"""Workers: destinations that are looked up at a time. Not more than the DNS client has sockets: a question waits for
one only if look-ups have several."""
KEPT = LIMIT // 11
"""Workers for senders that have few: as many as one large message leaves."""
SLOW_S = 1.0
"""A look-up that takes longer is slow: recursive name servers mostly answer within some tenths of a second."""
MOST_SLOW = LIMIT // 4
MOST_ENDED = 10
"""Slow look-ups that one tick ends: a turn of the reactor must be short."""
MAX_SLOW = 10_000
"""Next hops that are remembered as slow; the ones found slow longest ago are forgotten."""
LOCATED_S = 10.0
MAX_FORGIVEN = 10_000
"""Next hops whose hosts are treated as alive when they are found."""
NO_HOST = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.4", b"no mail host has an address"), HOST_NONE)


class LookupOwner(Protocol):
    """Who settles jobs without hosts."""

    def defer(self, job: Job, destination: Destination, reply: Reply, label: bytes, known_for_s: float | None) -> None:
        """As `placing.ScheduleOwner.defer`."""


class Lookups:
    """The look-ups under way, and those that wait for a worker."""

    def __init__(self, locator: Locator, schedule: Schedule, owner: LookupOwner, monotonic: Callable[[], float]) -> None:
        self._locator, self._schedule, self._owner = locator, schedule, owner
        self._monotonic = monotonic
        self._shares = PoolShares(schedule.limits, LIMIT, KEPT)
        self._underway: dict[Destination, tuple[Message, float, Deferred[Located]]] = {}
        """Destinations that are looked up, the earliest first: the message whose worker does it, since when, and the
        look-up."""
        self._line, self._slow_line = Line(is_by_job=True), Line(is_by_job=True)
        self._waiting: dict[Destination, dict[SpoolId, Job]] = {}
        """The jobs in the lines, by destination and message."""
        self._slow: dict[NextHop, None] = {}
        """Next hops whose last look-up was slow, in that order."""
        self._slow_underway: set[Destination] = set()
        self._ended: set[Destination] = set()
        """Destinations whose look-up is being ended, since it is slow."""
        self._forgiven: dict[NextHop, None] = {}
        """Next hops whose mail was flushed while their hosts were not known."""
        self._is_serving = self._is_stopped = False

    @property
    def underway(self) -> int:
        """Destinations that are looked up."""
        return len(self._underway)

    @property
    def waiting(self) -> int:
        """Destinations that wait for a worker."""
        return len(self._waiting)

    @property
    def most(self) -> int:
        """Destinations that may be looked up at a time."""
        return LIMIT

    def is_underway(self, destination: Destination) -> bool:
        """Whether a destination is looked up, and does not wait for that."""
        return destination in self._underway

    def use_locator(self, locator: Locator) -> None:
        """Use another locator for later look-ups."""
        self._locator = locator
        locator.press(bool(self._waiting))

    def stop(self) -> None:
        """Ignore results from now on, and begin nothing."""
        self._is_stopped = True

    def forgive(self, next_hop: NextHop) -> bool:
        """Treat no host that is found next for this next hop as dead. False: there are too many such next hops."""
        if len(self._forgiven) < MAX_FORGIVEN:
            self._forgiven[next_hop] = None
        return next_hop in self._forgiven

    def forget(self) -> None:
        """Trust only what look-ups begun from now on tell."""
        self._locator.forget()
        for destination in self._schedule.destinations.values():
            destination.set_located(0.0)

    def locate(self, destination: Destination, job: Job, now: float) -> bool | Outcome:
        """Whether the hosts of a destination are known now. If not, its waiting jobs are placed or settled when they are. An
        outcome: that of its mail, known without a look-up. `job`: it waits for them."""
        is_waiting = destination in self._waiting
        if destination.is_locating and not is_waiting:
            return False
        located: Located | Deferred[Located] | None = None
        may_go = self._may_go if destination.next_hop not in self._slow else self._may_go_slow
        if self._may_send(job.message.sender) and may_go(job):
            if is_waiting:
                self._end_wait(destination)
            located = self._locator.locate(destination.next_hop)
        elif not is_waiting:
            located = self._locator.known(destination.next_hop)
        if located is None:
            self._line_up(destination, job)
            return False
        if isinstance(located, Deferred):
            self._begin(located, destination, job)
            return False
        failure = self._tell(located, destination, now)
        return True if failure is None else failure

    def _line_up(self, destination: Destination, job: Job) -> None:
        """Let a destination wait for a worker in the turn of this job's message."""
        if not self._waiting:
            self._locator.press(True)
        destination.begin_locating()
        jobs = self._waiting.setdefault(destination, {})
        if job.message.spool_id not in jobs:
            jobs[job.message.spool_id] = job
            (self._slow_line if destination.next_hop in self._slow else self._line).add(job)

    def _end_wait(self, destination: Destination) -> None:
        """Take a destination out of the line."""
        for job in self._waiting.pop(destination).values():
            if not self._line.remove(job):
                self._slow_line.remove(job)
        if not self._waiting:
            self._locator.press(False)

    def _begin(self, located: Deferred[Located], destination: Destination, job: Job) -> None:
        """Note that a worker of this job's message looks up a destination."""
        destination.begin_locating()
        self._shares.hold(job.message)
        self._underway[destination] = job.message, self._monotonic(), located
        if destination.next_hop in self._slow:
            self._slow_underway.add(destination)
        located.addCallback(self._located, destination)

    def _located(self, located: Located, destination: Destination) -> None:
        message, began_at, _ = self._underway.pop(destination)
        self._shares.release(message)
        self._slow_underway.discard(destination)
        now = self._monotonic()
        self._note_time(destination.next_hop, now - began_at)
        if self._is_stopped:
            destination.end_locating()
            return
        if destination in self._ended:
            self._wait_again(destination, now)
        else:
            self._tell(located, destination, now)
        self._serve()

    def end_slow(self, now: float) -> None:
        """End slow look-ups while others wait for their workers, some in each call. Call it at each tick."""
        if self._is_stopped or self._free or not self._line:
            return
        slow: list[Destination] = []
        for destination, (_, began_at, _) in self._underway.items():
            if now - began_at <= SLOW_S or len(slow) == MOST_ENDED:
                break
            if destination in self._slow_underway:
                continue
            if len(self._slow_underway) < MOST_SLOW:
                self._slow_underway.add(destination)
            else:
                slow.append(destination)
        for destination in slow:
            if destination in self._underway:
                self._ended.add(destination)
                self._underway[destination][2].cancel()

    def _wait_again(self, destination: Destination, now: float) -> None:
        """Let a destination whose look-up was ended wait for another one, among the slow ones."""
        self._ended.discard(destination)
        destination.end_locating()
        if destination.is_served:  # the hosts found earlier still serve
            destination.set_located(now + LOCATED_S)
        for job in destination.unlocated:
            self._line_up(destination, job)
        self._schedule.known.forget_if_unused(destination)

    def _note_time(self, next_hop: NextHop, seconds: float) -> None:
        """Note how long a look-up took."""
        self._slow.pop(next_hop, None)
        if seconds > SLOW_S:
            self._slow[next_hop] = None
            if len(self._slow) > MAX_SLOW:
                del self._slow[next(iter(self._slow))]

    def _tell(self, located: Located, destination: Destination, now: float) -> Outcome | None:
        """Set the hosts of a destination, and place the jobs that wait for them. An outcome: there are none, and these jobs
        are settled."""
        destination.end_locating()
        failure = self._adopt(located, destination, now)
        if failure is None:
            self._schedule.located(destination, now)
        else:
            for job in self._schedule.take_unlocated(destination):
                self._owner.defer(job, destination, failure.reply, failure.host, None)
        self._schedule.known.forget_if_unused(destination)
        return failure

    # ------------------------------------------------------------------ the pool

    @property
    def _free(self) -> int:
        return LIMIT - len(self._underway)

    def _may_go(self, job: Job) -> bool:
        free = self._free
        return free > 0 and self._shares.allows(job.message, free)

    def _may_go_slow(self, job: Job) -> bool:
        return len(self._slow_underway) < MOST_SLOW and self._may_go(job)

    def _may_send(self, sender: bytes) -> bool:
        free = self._free
        return free > 0 and self._shares.allows_sender(sender, free)

    def _serve(self) -> None:
        """Look up what waits for a worker and may have one."""
        if self._is_serving or not self._waiting:
            return
        self._is_serving = True
        try:
            while not self._is_stopped and (job := self._next_job()) is not None:
                self._look_up(job)
        finally:
            self._is_serving = False

    def _next_job(self) -> Job | None:
        """Remove and return the next job that may have a worker."""
        job = self._line.take(self._may_go, self._may_send)
        if job is None and self._slow_line and len(self._slow_underway) < MOST_SLOW:
            job = self._slow_line.take(self._may_go_slow, self._may_send)
        return job

    def _look_up(self, job: Job) -> None:
        """Look up a destination that waited, in the turn of this job's message."""
        destination = self._schedule.destinations[job.next_hop]
        self._end_wait(destination)
        if not destination.entries:  # its mail was given back
            destination.end_locating()
            self._schedule.known.forget_if_unused(destination)
            return
        located = self._locator.locate(destination.next_hop)
        if isinstance(located, Deferred):
            self._begin(located, destination, job)
        else:
            self._tell(located, destination, self._monotonic())

    # ------------------------------------------------------------------ hosts

    def _adopt(self, located: Located, destination: Destination, now: float) -> Outcome | None:
        """Set the hosts of a destination. An outcome: there are none."""
        if not isinstance(located, Outcome):
            find, port, profile = self._schedule.destdb.find, destination.next_hop.port, destination.next_hop.profile
            found = [
                FoundHost(one.name, one.preference, find(address, port, profile), one.is_secure)
                for one in located
                for address in one.addresses
            ]
            if found:
                self._set_hosts(destination, found, now)
                destination.set_located(now + LOCATED_S)
                return None
            located = NO_HOST
        if destination.is_served:  # the hosts found earlier still serve
            destination.set_located(now + LOCATED_S)
            return None
        return located

    def _set_hosts(self, destination: Destination, found: Sequence[FoundHost], now: float) -> None:
        names = [one.name for one in found]
        before, next_hop, limits_of = destination.limits, destination.next_hop, self._schedule.limits_of
        if before is None or before.mx_set.key != key_of(names, next_hop.port):
            domain = next_hop.host.encode("ascii", "replace") if next_hop.finding is HostFinding.MX else b""
            limits = limits_of.hold(domain, names, next_hop.port, next_hop.limited_as, now=now)
            if before is not None:
                limits_of.release(before, now)
        else:
            limits = before
        destination.set_hosts(found, limits)
        if self._forgiven and next_hop in self._forgiven:
            del self._forgiven[next_hop]
            self._schedule.destdb.forget_deaths_of(destination.labels)
