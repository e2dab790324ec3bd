"""The choice, and the lists of hosts that it asks, against slow plain code in random runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mailismus.deliver.limits.sets import DestinationLimits, MxSet
from mailismus.deliver.schedule import choice
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.pool import Pool
from tests.deliver.schedule.jobs import HOP, concurrency, job
from tests.deliver.schedule.plain import PlainConnection, PlainHost, PlainRequest, plain_choose
from tests.deliver.schedule.world import REFUSED, window

HOSTS = 5
ANY = st.integers(0, 59)
SENDERS = st.sampled_from([b"a", b"b"])
RECIPIENTS = st.sampled_from([1, 1, 3, 5, 50])


class ChoiceMachine(RuleBasedStateMachine):
    """Everything happens to both: the product's objects, and plain ones."""

    @initialize(
        limits=st.builds(
            ScheduleLimits,
            max_connections=st.integers(1, 12),
            max_concurrency=st.integers(1, 6),
            scale=st.integers(1, 3),
            backlog=st.integers(1, 4),
            looked_at=st.sampled_from([0, 2, 32]),
        ),
        sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)),
        server_limit=st.one_of(st.none(), st.integers(1, 4)),
    )
    def begin(self, limits: ScheduleLimits, sizes: tuple[int, int], server_limit: int | None) -> None:
        self.now = 1000.0
        self.limits = limits
        self.destdb = DestDb(limits, Deaths(20.0, 80.0, 100.0), limit=3)
        self.pool = Pool(limits)
        sets = [MxSet(((str(number),), 25), window(size), None) for number, size in enumerate(sizes)]
        self.of = [DestinationLimits(b"one.example", mx_set) for mx_set in sets]
        for one in self.of:
            one.server_limit = server_limit
        self.hosts = [self.destdb.find(f"192.0.2.{number}", 25) for number in range(HOSTS)]
        self.plain = [PlainHost(host.address, self._window_of(host)) for host in self.hosts]
        self.pairs: list[tuple[Connection, PlainConnection]] = []
        self.idle_number = 0

    def _window_of(self, host: Host) -> Any:
        return lambda count: host.window is None or host.window.allows(count, self.now)

    def _pair(self, number: int, **states: Any) -> tuple[Connection, PlainConnection] | None:
        """One of the connections in this state, by the plain ones."""
        found = [pair for pair in self.pairs if all(getattr(pair[1], name) == value for name, value in states.items())]
        return found[number % len(found)] if found else None

    # ------------------------------------------------------------------ what happens

    @rule(seconds=st.sampled_from([1.0, 7.0, 20.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(number=st.integers(0, HOSTS - 1), of=st.integers(0, 1), sender=SENDERS, recipients=RECIPIENTS)
    def connect(self, number: int, of: int, sender: bytes, recipients: int) -> None:
        host, plain = self.hosts[number], self.plain[number]
        if plain.dead_until > self.now or plain.is_on_trial:
            return
        connection = self.destdb.connect(host, self.of[of].mx_set, self.now)
        self.pool.opened()
        self.pool.charge(connection, job(sender=sender, concurrency=concurrency(0), whole=recipients))
        is_trial = plain.has_died and not any(one.is_standing for one in plain.connections)
        made = PlainConnection(connection.number, plain, is_trial=is_trial, sender=self._sender(sender, recipients))
        plain.connections.append(made)
        self.pairs.append((connection, made))

    def _sender(self, sender: bytes, recipients: int) -> bytes | None:
        """The sender if his message is small."""
        return sender if recipients <= min(self.limits.max_concurrency, max(1, self.limits.max_connections // 2)) else None

    @rule(number=ANY)
    def stand(self, number: int) -> None:
        if pair := self._pair(number, is_standing=False, is_leaving=False):
            connection, plain = pair
            self.destdb.stand(connection, self.now)
            plain.is_standing, plain.is_trial = True, False
            plain.host.has_died, plain.host.dead_until = False, 0.0

    @rule(number=ANY, jobs=st.integers(1, 4), sender=SENDERS, recipients=RECIPIENTS)
    def add(self, number: int, jobs: int, sender: bytes, recipients: int) -> None:
        if pair := self._pair(number, is_leaving=False):
            connection, plain = pair
            if connection.is_idle:
                self.pool.woke(connection)
                self.pool.charge(connection, job(sender=sender, concurrency=concurrency(0), whole=recipients))
                plain.sender = self._sender(sender, recipients)
            plain.idle_since = None
            for _ in range(jobs):
                connection.host.add_job(connection, job())
                plain.jobs += 1

    @rule(number=ANY)
    def take(self, number: int) -> None:
        if (pair := self._pair(number)) and pair[0].queue:
            pair[0].host.take_first(pair[0])

    @rule(number=ANY, is_begun=st.booleans())
    def end(self, number: int, is_begun: bool) -> None:
        if (pair := self._pair(number)) and pair[1].jobs:
            connection, plain = pair
            if len(connection.queue) < connection.jobs and (is_begun or not connection.queue):
                connection.host.end_job(connection)
            else:
                connection.host.take_away(connection, connection.queue[-1])
            plain.jobs -= 1

    @rule(number=ANY)
    def rest(self, number: int) -> None:
        if pair := self._pair(number, is_standing=True, is_active=True, jobs=0):
            connection, plain = pair
            self.idle_number += 1
            connection.host.rest(connection, self.idle_number)
            self.pool.rested(connection)
            plain.idle_since = self.idle_number

    @rule(number=ANY)
    def leave(self, number: int) -> None:
        if pair := self._pair(number, is_leaving=False):
            self._leave(*pair)

    def _leave(self, connection: Connection, plain: PlainConnection) -> None:
        if connection.is_idle:
            self.pool.woke(connection)
        self.pool.left(connection)
        self.destdb.leave(connection)
        self.destdb.leave(connection)
        plain.is_leaving, plain.is_trial = True, False
        while connection.queue:  # jobs that have not begun are placed anew
            connection.host.take_away(connection, connection.queue[0])
            plain.jobs -= 1

    @rule(number=ANY)
    def close(self, number: int) -> None:
        if pair := self._pair(number, is_leaving=True):
            connection, plain = pair
            self.destdb.close(connection, self.now)
            self.pool.closed()
            self.pairs.remove(pair)
            plain.host.connections.remove(plain)
            if plain.is_standing and not plain.host.connections:
                plain.host.made_at = connection.made_at
                self._adopt_forgotten()

    @rule(number=ANY, kind=st.sampled_from(HostFailure))
    def fail(self, number: int, kind: HostFailure) -> None:
        if pair := self._pair(number, is_leaving=False):
            connection, plain = pair
            self._leave(connection, plain)
            others = any(one.is_standing for one in plain.host.connections if one is not plain)
            was_dead = plain.host.dead_until > self.now
            is_dead = self.destdb.note_failure(connection, REFUSED, kind, self.now)
            assert is_dead == (not others and not was_dead)
            if is_dead:
                plain.host.has_died, plain.host.dead_until = True, connection.host.dead_until
                self._adopt_forgotten()

    @rule()
    def collect(self) -> None:
        self.destdb.collect(self.now)
        self._adopt_forgotten()

    def _adopt_forgotten(self) -> None:
        """What is forgotten, and when, has tests of its own."""
        known = {(record.address, bool(record.failures)) for record in self.destdb.records(0.0)}
        for host, plain in zip(self.hosts, self.plain, strict=True):
            if (host.address, True) not in known:
                plain.has_died, plain.dead_until = False, 0.0
            if host.made_at < 0:
                plain.made_at = None

    @rule(backlog=st.integers(1, 4))
    def change_backlog(self, backlog: int) -> None:
        self.limits.backlog = backlog
        self.destdb.relist()

    # ------------------------------------------------------------------ what is compared

    @rule(
        levels=st.lists(st.lists(st.integers(0, HOSTS - 1), min_size=1), min_size=1, max_size=3),
        of=st.integers(0, 1),
        workers=st.integers(0, 9),
        sender=SENDERS,
        recipients=RECIPIENTS,
        put_backs=st.integers(0, 3),
        picked=ANY,
    )
    def choose(
        self, levels: list[list[int]], of: int, workers: int, sender: bytes, recipients: int, put_backs: int, picked: int
    ) -> None:
        self._choose(levels, of, workers, sender, recipients, put_backs, picked)

    @rule(of=st.integers(0, 1), picked=ANY)
    def choose_as_usual(self, of: int, picked: int) -> None:
        """Over all hosts, by messages with each number of workers around the limits, and by small ones of each sender."""
        for workers in range(self.limits.scale * self.limits.max_connections + 2):
            self._choose([list(range(HOSTS))], of, workers, b"", 50, 0, picked)
        for sender in (b"a", b"b"):
            for host in range(HOSTS):
                self._choose([[host]], of, 0, sender, 1, 0, picked)

    def _choose(
        self, levels: list[list[int]], of: int, workers: int, sender: bytes, recipients: int, put_backs: int, picked: int
    ) -> None:
        limits = self.of[of]
        destination = Destination(HOP)
        found = [FoundHost("mx", level, self.hosts[one]) for level, ones in enumerate(levels) for one in ones]
        destination.set_hosts(found, limits)
        seen: set[int] = set()
        plain_levels: list[list[PlainHost]] = []
        for ones in levels:
            new = [one for number, one in enumerate(ones) if one not in seen and one not in ones[:number]]
            seen.update(new)
            if new:
                plain_levels.append([self.plain[one] for one in new])
        in_set = sum(connection.mx_set is limits.mx_set for connection, plain in self.pairs if not plain.is_leaving)
        request = PlainRequest(
            self.now,
            workers,
            sender,
            recipients,
            put_backs,
            self.limits.backlog,
            self.limits.max_concurrency,
            self.limits.scale,
            self.limits.max_connections,
            self.plain,
            limits.window.allows(in_set, self.now),
            limits.server_limit,
            lambda hosts: hosts[picked % len(hosts)],
        )
        expected = plain_choose(plain_levels, request)
        wanted = job(sender=sender, concurrency=concurrency(workers), put_backs=put_backs, whole=recipients)
        ours = choice.choose(wanted, destination, self.pool, self.now, self._pick(picked))
        if isinstance(ours, Connection):
            assert isinstance(expected, PlainConnection)
            assert ours.number == expected.number
        elif isinstance(ours, Host):
            assert isinstance(expected, PlainHost)
            assert ours.address == expected.name
        else:
            assert ours.value == expected

    @staticmethod
    def _pick(picked: int) -> choice.PickOne:
        def pick(hosts: Sequence[Host]) -> Host:
            return hosts[picked % len(hosts)]

        return pick

    @rule()
    def compare_lists(self) -> None:
        """Not after each step: a list may be brought in order when it is asked for."""
        backlog = self.limits.backlog
        for host, plain in zip(self.hosts, self.plain, strict=True):
            active = plain.active
            with_room = [one for one in active if one.jobs < backlog]
            assert number_of(host.newest_with_room()) == newest(with_room)
            assert number_of(host.newest()) == newest(active)
            for jobs in range(backlog, 12):
                below = [one for one in active if backlog <= one.jobs < jobs]
                assert number_of(host.newest_below(jobs)) == newest(below)
            most = max((one.jobs for one in active), default=0)
            crowded = min((one.number for one in active if one.jobs == most > backlog), default=0)
            assert number_of(host.most_crowded()) == crowded
            assert [one.number for one in host.oldest(3)] == sorted(one.number for one in with_room)[:3]
            trial = [one.number for one in plain.connections if one.is_trial]
            assert [one.number for one in host.with_jobs()] == sorted(one.number for one in active) + trial
            made = [one.number for one in active if not one.is_standing]
            assert sorted(one.number for one in host.being_made()) == sorted(made)

    @invariant()
    def counts_are_those_of_plain_code(self) -> None:
        for host, plain in zip(self.hosts, self.plain, strict=True):
            idle = sorted((one for one in plain.connections if one.is_idle), key=lambda one: one.idle_since or 0)
            assert [one.number for one in host.idle] == [one.number for one in idle]
            assert host.connections == len(plain.connections)
            assert host.standing == sum(one.is_standing for one in plain.connections)
            assert host.queued == sum(len(ours.queue) for ours, one in self.pairs if one.host is plain)
            assert host.has_leaving == any(one.is_leaving for one in plain.connections)
        assert self.pool.open == len(self.pairs)
        assert self.pool.leaving == sum(one.is_leaving for _, one in self.pairs)
        assert len(self.pool.idle) == sum(one.is_idle for _, one in self.pairs)
        for ours, one in self.pairs:
            assert (ours.jobs, ours.is_idle, ours.is_standing) == (one.jobs, one.is_idle, one.is_standing)
            assert ours.is_listed == (not one.is_leaving and not one.is_trial)


def newest(connections: Sequence[PlainConnection]) -> int:
    return max((one.number for one in connections), default=0)


def number_of(connection: Connection | None) -> int:
    return 0 if connection is None else connection.number


TestChoice = ChoiceMachine.TestCase
TestChoice.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
