"""The schedule in random runs: each job is in one place, all counts are right, nothing that could go waits, and in the end
everything is done and forgotten."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.choice import FRESH_AFTER, Wait, choose
from mailismus.deliver.schedule.destdb import HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.schedule import SLOW_AFTER_S
from tests.deliver.schedule.desk import Desk
from tests.deliver.schedule.world import first

HOPS = [NextHop(f"d{number}.example", 25) for number in range(4)]
SLOW_HOP = NextHop("slow.example", 25)
"""Its look-ups take time."""
ADDRESSES = [f"192.0.2.{number}" for number in range(4)]
LEVELS = st.lists(st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3, unique=True), min_size=1, max_size=2)
LIMITS = st.builds(
    ScheduleLimits,
    max_connections=st.integers(1, 12),
    max_messages=st.sampled_from([1, 2, 100]),
    max_concurrency=st.integers(1, 4),
    scale=st.integers(1, 3),
    backlog=st.integers(1, 3),
)
ANY = st.integers(0, 59)


class ScheduleMachine(RuleBasedStateMachine):
    """All that can happen to a schedule, in any order."""

    @initialize(
        limits=LIMITS,
        levels=st.tuples(*[LEVELS] * len(HOPS)),
        server_limit=st.sampled_from([0, 1, 2]),
        window=st.sampled_from([1, 2, 1000]),
    )
    def begin(self, limits: ScheduleLimits, levels: tuple[list[list[str]], ...], server_limit: int, window: int) -> None:
        self.desk = Desk(limits, server_limit=server_limit, window=window)
        self.desk.hosts_of = dict(zip(HOPS, levels, strict=True))
        self.added: dict[Job, None] = {}
        self.given_back: list[Job] = []
        self.number = 100

    def _one(
        self, number: int, *, standing: bool | None = None, leaving: bool = False, begun: bool = False
    ) -> Connection | None:
        found = [
            connection
            for connection, session in self.desk.sessions.items()
            if connection.is_leaving == leaving
            and (standing is None or connection.is_standing == standing)
            and (not begun or session.begun)
        ]
        return found[number % len(found)] if found else None

    # ------------------------------------------------------------------ mail

    @rule(message=st.integers(0, 4), recipients=st.integers(1, 60), hop=st.sampled_from([*HOPS, *HOPS, SLOW_HOP]))
    def add(self, message: int, recipients: int, hop: NextHop) -> None:
        self.added[self.desk.add(message, b"%d" % (message % 3), recipients, hop)] = None

    @rule(hop=st.sampled_from(HOPS), message=st.integers(0, 4), count=st.integers(2, 8))
    def add_some(self, hop: NextHop, message: int, count: int) -> None:
        for _ in range(count):
            self.added[self.desk.add(message, b"%d" % (message % 3), 1, hop)] = None

    @rule(hop=st.sampled_from(HOPS), sender=st.sampled_from([b"0", b"1"]), count=st.integers(1, 4))
    def add_sole(self, hop: NextHop, sender: bytes, count: int) -> None:
        for _ in range(count):
            self.number += 1
            self.added[self.desk.add(self.number, sender, 1, hop, is_sole=True)] = None

    # ------------------------------------------------------------------ sessions

    @rule(number=ANY)
    def stand(self, number: int) -> None:
        if connection := self._one(number, standing=False):
            self.desk.stand(connection)

    @rule(number=ANY)
    def deliver(self, number: int) -> None:
        if connection := self._one(number, begun=True):
            self.desk.deliver(connection)

    @rule(number=ANY)
    def begin_ahead(self, number: int) -> None:
        if connection := self._one(number, begun=True):
            self.desk.begin_ahead(connection)

    @rule(number=ANY)
    def put_back(self, number: int) -> None:
        if connection := self._one(number, begun=True):
            self.desk.put_back(connection)

    @rule(number=ANY, kind=st.sampled_from(HostFailure))
    def fail(self, number: int, kind: HostFailure) -> None:
        if connection := self._one(number):
            self.desk.fail(connection, kind)

    @rule(number=ANY)
    def lose(self, number: int) -> None:
        if connection := self._one(number):
            self.desk.lose(connection)

    @rule(number=ANY)
    def close(self, number: int) -> None:
        if connection := self._one(number, leaving=True):
            self.desk.close(connection)

    @rule(number=ANY)
    def end_idle(self, number: int) -> None:
        idle = list(self.desk.schedule.pool.idle)
        if idle:
            self.desk.sessions[idle[number % len(idle)]].quit()

    @rule(number=ANY)
    def ask_again(self, number: int) -> None:
        """The queue allows transactions again."""
        idle = list(self.desk.schedule.pool.idle)
        if idle:
            self.desk.go_on(idle[number % len(idle)])

    @rule(number=ANY)
    def relieve(self, number: int) -> None:
        if connection := self._one(number):
            self.desk.schedule.relieve(connection, self.desk.now)

    # ------------------------------------------------------------------ others

    @rule(seconds=st.sampled_from([0.2, 1.0, 7.0, 20.0, 100.0]))
    def pass_time(self, seconds: float) -> None:
        self.desk.now += seconds

    @rule()
    def pause(self) -> None:
        self.desk.schedule.pause(self.desk.now + 1.0)

    @rule(levels=st.one_of(st.just([]), LEVELS))
    def found(self, levels: list[list[str]]) -> None:
        destination = self.desk.schedule.destinations.get(SLOW_HOP)
        if destination is not None and destination.is_locating:
            self.desk.found(SLOW_HOP, levels)

    @rule(hop=st.sampled_from(HOPS), levels=LEVELS)
    def change_hosts(self, hop: NextHop, levels: list[list[str]]) -> None:
        self.desk.hosts_of[hop] = levels

    @rule(limits=LIMITS)
    def reload(self, limits: ScheduleLimits) -> None:
        self.desk.limits.become(limits)
        self.desk.destdb.relist()
        self._give_back(self.desk.schedule.drain())

    @rule(room=st.integers(0, 100))
    def excess(self, room: int) -> None:
        expected = self._plain_excess(room)
        found = [job for job, _ in self.desk.schedule.excess(100, room, self.desk.now)]
        assert found == expected
        self._give_back(found)

    def _plain_excess(self, room: int) -> list[Job]:
        """The same, without a thought for what it costs: everything is listed for each destination."""
        now, found = self.desk.now, list[Job]()
        for destination in self.desk.schedule.destinations.values():
            if room >= 100:
                break
            is_slow = destination.slow_s(now) > SLOW_AFTER_S
            parked = list(destination.parked)
            found += parked
            room += sum(len(job.entries) for job in parked)
            waiting = list(reversed(destination.unlocated))
            for host in destination.labels:
                for connection in host.with_jobs():
                    if not connection.is_standing and now - connection.made_at <= SLOW_AFTER_S:
                        continue
                    waiting += [job for job in reversed(connection.queue) if job.next_hop == destination.next_hop]
            held = destination.entries
            for job in waiting if is_slow else ():
                if now - job.queued_at <= SLOW_AFTER_S:
                    continue
                if held <= room and (destination.is_served or room >= 100):
                    break
                room, held = room + len(job.entries), held - len(job.entries)
                found.append(job)
        return found

    def _give_back(self, jobs: list[Job]) -> None:
        self.desk.give_back(jobs)
        self.given_back += jobs

    @rule()
    def collect(self) -> None:
        self.desk.schedule.collect(self.desk.now)

    @rule(hop=st.sampled_from(HOPS), size=st.integers(1, 5))
    def change_window(self, hop: NextHop, size: int) -> None:
        destination = self.desk.schedule.destinations.get(hop)
        if destination is not None and destination.limits is not None:
            destination.limits.window.size = size
            self.desk.schedule.grown()

    @rule()
    def forget_deaths(self) -> None:
        self.desk.destdb.forget_deaths()

    # ------------------------------------------------------------------ what holds

    def _places(self) -> Counter[Job]:
        """Every place, and the jobs there."""
        schedule = self.desk.schedule
        jobs = [job for job, _ in schedule._homeless]  # places that nothing else shows
        for left in schedule._left.values():
            jobs += left.jobs
        jobs += schedule.line
        for destination in schedule.destinations.values():
            jobs += [*destination.parked, *destination.unlocated]
        for connection, session in self.desk.sessions.items():
            jobs += [*connection.queue, *session.begun]
        jobs += [one.job for one in self.desk.deferred]
        jobs += self.desk.delivered
        jobs += self.given_back
        return Counter(jobs)

    @invariant()
    def each_job_is_in_one_place(self) -> None:
        places = self._places()
        assert places.keys() == self.added.keys()
        assert set(places.values()) <= {1}

    @invariant()
    def counts_are_right(self) -> None:
        desk, schedule = self.desk, self.desk.schedule
        done = {*desk.delivered, *self.given_back, *(one.job for one in desk.deferred)}
        held = [job for job in self.added if job not in done]
        for hop, destination in schedule.destinations.items():
            assert destination.entries == sum(len(job.entries) for job in held if job.next_hop == hop)
        for job in held:
            assert job.next_hop in schedule.destinations
        sessions = desk.sessions
        assert schedule.pool.open == len(sessions)
        assert set(schedule.pool.idle) == {one for one in sessions if one.is_idle}
        assert all(one.sender is None for one in sessions if one.is_idle or one.is_leaving)
        assert schedule.pool.by_sender == Counter(one.sender for one in sessions if one.sender is not None)
        hosts, sets = Counter(one.host for one in sessions), Counter(one.mx_set for one in sessions if not one.is_leaving)
        for host in desk.destdb.hosts():
            assert host.connections == hosts[host]
            assert host.standing == sum(one.is_standing for one in sessions if one.host is host)
            assert host.queued == sum(len(one.queue) for one in sessions if one.host is host)
            assert host.trial is None or host.trial in sessions
        for mx_set in {destination.limits.mx_set for destination in schedule.destinations.values() if destination.limits}:
            assert mx_set.connections == sets[mx_set]
        workers: dict[object, Counter[Connection]] = {}
        waiting: Counter[object] = Counter()
        for connection, session in sessions.items():
            assert connection.jobs == len(connection.queue) + len(session.begun)
            assert not (connection.is_idle and connection.jobs)
            assert not (connection.is_leaving and connection.queue)
            for job in [*connection.queue, *session.begun]:
                workers.setdefault(job.concurrency, Counter())[connection] += 1
        for job in schedule.line:
            waiting[job.concurrency] += 1
        for job in held:
            if job.concurrency is not None:
                assert job.concurrency.workers == workers.get(job.concurrency, {})
                assert job.concurrency.waiting == waiting[job.concurrency]

    @rule()
    def serve(self) -> None:
        """What can go does; `serve` ends, and the tick repeats it for what was behind something else."""
        self._serve()
        self._check_that_nothing_waits()

    def _serve(self) -> None:
        desk = self.desk
        for _ in range(4 * len(self.added) + 20):  # ticks: one job of a destination may be in front of others
            before = self._waiting()
            desk.wants_service = True
            desk.serve()
            if self._waiting() == before and not desk.wants_service:
                return

    def _waiting(self) -> tuple[int, ...]:
        schedule = self.desk.schedule
        parked = [len(destination.parked) for destination in schedule.destinations.values()]
        queued = [len(connection.queue) for connection in self.desk.sessions]  # one host's job may now go to another's
        return (len(schedule.line), len(schedule.pool.idle), *parked, *queued)

    def _check_that_nothing_waits(self) -> None:
        desk, schedule = self.desk, self.desk.schedule
        is_paused = desk.now < schedule._paused_until  # the machine's own pause
        assert not schedule._homeless
        for connection, left in schedule._left.items():
            assert connection.is_leaving
            assert desk.now < left.until
            choice = self._choice(left.jobs[0], schedule.destinations[left.jobs[0].next_hop])
            assert choice is Wait.LIMIT or (type(choice) is Connection and choice.jobs >= desk.limits.backlog)
        for job in [] if is_paused else list(schedule.line):
            if schedule.pool.allows_job(job) and schedule.pool.has_worker:
                choice = self._choice(job, schedule.destinations[job.next_hop])
                assert type(choice) is not Connection
                assert type(choice) is not Host or schedule.pool.is_full
        for destination in schedule.destinations.values():
            jobs = list(destination.parked)
            if jobs:
                assert self._choice(jobs[0], destination) in (Wait.LIMIT, Wait.TRIAL)
            if len({job.put_backs >= FRESH_AFTER for job in jobs}) == 1:
                assert all(self._choice(job, destination) in (Wait.LIMIT, Wait.TRIAL) for job in jobs)
        for host in desk.destdb.hosts():
            crowded = host.most_crowded()
            if crowded is not None and crowded.queue and not is_paused and not schedule.pool.is_full:
                job = crowded.queue[-1]
                choice = self._choice(job, schedule.destinations[job.next_hop])
                assert type(choice) is not Host
                assert type(choice) is not Connection or choice.jobs >= crowded.jobs - 1

    def _choice(self, job: Job, destination: Destination) -> object:
        return choose(job, destination, self.desk.schedule.pool, self.desk.now, first)

    # ------------------------------------------------------------------ the end

    def teardown(self) -> None:
        """Every host answers: all mail goes, and nothing is kept of it."""
        if not hasattr(self, "desk"):
            return
        desk = self.desk
        for _ in range(6 * len(self.added) + 100):  # with one worker each job may need a connection of its own
            self._go_on()
            if not desk.sessions and not desk.schedule.has_work:
                break
        self.each_job_is_in_one_place()
        self.counts_are_right()
        assert not desk.sessions
        assert not desk.schedule.has_work
        done = len(desk.delivered) + len(desk.deferred) + len(self.given_back)
        assert done == len(self.added)
        for _ in range(3):
            desk.now += 1000.0
            desk.schedule.collect(desk.now)
        desk.opened.clear()
        gc.collect()
        assert not desk.schedule.destinations
        assert not desk.schedule._concurrencies  # nothing else shows that they are forgotten
        assert len(desk.limits_of) == 0
        assert not desk.destdb.hosts()

    def _go_on(self) -> None:
        """Each session does the next thing, and a second passes."""
        desk = self.desk
        desk.now += 1.0
        if (slow := desk.schedule.destinations.get(SLOW_HOP)) is not None and slow.is_locating:
            desk.found(SLOW_HOP, [ADDRESSES[:1]])
        for connection in list(desk.sessions):
            if connection not in desk.sessions:
                continue
            if connection.is_leaving:
                desk.close(connection)
            elif not connection.is_standing:
                desk.stand(connection)
            elif desk.begun(connection):
                desk.deliver(connection)
            elif connection.is_idle and not desk.schedule.has_work:
                desk.sessions[connection].quit()
        desk.wants_service = True
        desk.serve()


TestSchedule = ScheduleMachine.TestCase
TestSchedule.settings = settings(max_examples=8, stateful_step_count=50, deadline=None)

_at_length = settings(max_examples=300, stateful_step_count=50, deadline=None)
TestScheduleAtLength = pytest.mark.exhaustive(type("TestScheduleAtLength", (TestSchedule,), {"settings": _at_length}))
