"""Random courses of servers that share limits: with calls of every fate, kills, standstills and lost connections no limit is
exceeded while leases hold: neither of connections that are open, nor of what is sent in any minute."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailismus.queue.providers.distributed.format.tables import SERVERS
from mailismus.queue.providers.distributed.limits import keeping
from mailismus.queue.providers.distributed.limits.cutting import Need, cut
from mailismus.queue.providers.distributed.limits.part import LimitPart
from mailismus.queue.providers.distributed.limits.row import SPAN_S, Division
from tests.distributed.limited import LimitedWorld
from tests.distributed.models.fates import Fate

NAMES = ("a", "b", "c")
HOST, RATE = "connections 192.0.2.1 25", "messages mx.b.example 25"
ACTS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from(NAMES), st.sampled_from([1, 3, 8, 20, 35, 65])),
    st.tuples(st.just("busy"), st.sampled_from(NAMES), st.sampled_from([0.0, 0.2, 1.0])),
    st.tuples(st.sampled_from(["kill", "stop", "lose", "late", "close all"]), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("freeze"), st.sampled_from(NAMES), st.sampled_from([5, 15, 25, 40, 70])),
    st.tuples(st.just("away"), st.sampled_from(NAMES), st.sampled_from([3, 12, 25, 40])),
    st.tuples(st.just("quiet"), st.sampled_from(NAMES), st.sampled_from([5, 20])),
    st.tuples(
        st.just("trouble"),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=4),
    ),
)
Course = Sequence[tuple[object, ...]]


class Trial:
    """Three servers, two limits, and what the receiver sees of them."""

    def __init__(self, limit: int, seed: int = 1) -> None:
        self.world = LimitedWorld()
        self.limit, self.random = limit, random.Random(seed)
        self.busy = dict.fromkeys(NAMES, 1.0)
        """How likely each is to begin something when it may."""
        self.sent: list[float] = []
        self.used = 0
        """Connections that were begun."""
        for name in NAMES:
            self.world.start(name)

    def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            for name, server in self.world.servers.items():
                if server.host.is_frozen or server.host.is_dead:
                    continue
                use, part = server.use_of(HOST)
                if use.open > part.allowed() or self.random.random() < 0.1:
                    server.end(HOST)
                if self.random.random() < self.busy[name] and server.begin(HOST, self.limit):
                    self.used += 1
                if self.random.random() < self.busy[name] and server.begin(RATE, self.limit, SPAN_S):
                    self.sent.append(self.world.clock.seconds())
            self.check()
            self.world.pass_s(0.25, 0.05)
            self.check()

    def check(self) -> None:
        rows = self.world.rows
        leased = [one for one in self.world.servers.values() if rows.seen(SERVERS, (one.epoch,)) is not None]
        opened = sum(one.use_of(HOST)[0].open for one in leased)
        assert opened <= self.limit, "connections"
        now = self.world.clock.seconds()
        assert sum(1 for time in self.sent if time > now - 60) <= self.limit, "rate"

    def act(self, kind: str, name: str, more: object) -> None:
        server = self.world.servers[name]
        if kind == "wait":
            assert isinstance(more, int)
            self.pass_s(more)
        elif kind == "busy":
            assert isinstance(more, float)
            self.busy[name] = more
        elif kind == "kill":
            server.kill()
            self.pass_s(self.random.choice([1, 40]))
            self.world.start(name)
        elif kind == "stop":
            server.end(HOST, self.limit)
            self.world.wait(server.close())
            server.kill()
            self.world.start(name)
        elif kind == "lose":
            server.clients.broker.lose()
        elif kind == "late":
            server.clients.rows.fates.do_late()
        elif kind == "close all":
            server.end(HOST, self.limit)
        elif kind == "freeze":
            assert isinstance(more, int)
            server.host.freeze()
            self.pass_s(more)
            server.host.thaw()
        elif kind == "away":
            assert isinstance(more, int)
            server.clients.rows.fates.is_away = True
            self.pass_s(more)
            server.clients.rows.fates.is_away = False
        elif kind == "quiet":
            assert isinstance(more, int)
            server.clients.broker.fates.is_away = True
            server.clients.broker.lose()
            self.pass_s(more)
            server.clients.broker.fates.is_away = False
        elif kind == "trouble":
            assert isinstance(more, list)
            server.clients.rows.fates.plan(*more)
            self.pass_s(3)

    def end(self) -> None:
        """All is well again: all of it is used."""
        for server in self.world.servers.values():
            server.clients.rows.fates.forget()
            server.clients.rows.fates.do_late()
        self.busy = dict.fromkeys(NAMES, 1.0)
        self.pass_s(100)
        assert sum(one.use_of(HOST)[0].open for one in self.world.servers.values()) >= self.limit - 2
        now = self.world.clock.seconds()
        self.pass_s(140)
        assert sum(1 for time in self.sent if time > now) >= self.limit


def run(acts: Course, limit: int = 6) -> None:
    trial = Trial(limit)
    for kind, name, more in acts:
        trial.act(str(kind), str(name), more)
    trial.end()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, min_size=3, max_size=10), st.sampled_from([1, 2, 3, 6, 20]))
def test_no_limit_is_exceeded(acts: list[tuple[object, ...]], limit: int) -> None:
    run([("wait", "a", 3), *acts], limit)


@pytest.mark.exhaustive
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, min_size=3, max_size=25), st.sampled_from([1, 2, 3, 6, 20]))
def test_no_limit_is_exceeded_in_long_courses(acts: list[tuple[object, ...]], limit: int) -> None:
    run([("wait", "a", 3), *acts], limit)


KILLED = [("wait", "a", 35), ("kill", "a", 0), ("wait", "b", 65)]
UNHEARD = [
    *(("busy", "b", 0.0), ("busy", "c", 0.0), ("wait", "a", 8), ("busy", "a", 0.0), ("busy", "b", 1.0)),
    *(("trouble", "a", [Fate.DONE, Fate.UNANSWERED, Fate.UNANSWERED]), ("busy", "a", 1.0), ("wait", "a", 20)),
]
STOOD_STILL = [("wait", "a", 35), ("freeze", "a", 40), ("wait", "b", 20)]


@pytest.mark.parametrize("course", [KILLED, UNHEARD, STOOD_STILL])
def test_the_courses_of_the_next_tests_exceed_nothing(course: Course) -> None:
    run(course)


def test_where_a_dead_server_has_spent_nothing_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent_now(division: Division, now: float) -> int:
        return 0

    monkeypatch.setattr(Division, "spent_now", spent_now)
    with pytest.raises(AssertionError, match="rate"):
        run([("wait", "a", 35), ("stop", "a", 0), ("wait", "b", 20)])


def test_where_what_is_in_use_is_given_back_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(division: Division, need: Need, now: float) -> Division:
        return cut(division, attrs.evolve(need, used=0), now)

    monkeypatch.setattr(keeping, "cut", careless)
    with pytest.raises(AssertionError, match=r"connections|rate"):
        run([("busy", "b", 0.0), ("busy", "c", 0.0), ("wait", "a", 35), ("busy", "b", 1.0), ("wait", "b", 20)])


def test_where_parts_hold_without_a_lease_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitPart, "allowed", lambda part: part.size)
    with pytest.raises(AssertionError, match=r"connections|rate"):
        run([("wait", "a", 35), ("away", "a", 40), ("wait", "b", 65)])
