"""The schedule: which job goes when, to which host."""

from __future__ import annotations

import math

from mailismus.deliver.hosts import PAUSE_S, Deaths, Host, HostFailure, Hosts
from mailismus.deliver.job import Job
from mailismus.deliver.route import NextHop
from mailismus.deliver.schedule import NO_HOST, Candidate, Hop, Schedule
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message

REFUSED = Reply(451, b"4.4.1", b"refused")
TIMED_OUT = Reply(451, b"4.4.1", b"timed out")


def job(now: float = 0.0, entries: int = 1) -> Job:
    some = [Entry(number, b"r@b.example", Area.INCOMING, 0.0) for number in range(1, entries + 1)]
    return Job(Message(SpoolId(1), b"", b"-", False, 0.0, 10, entries, some), some, now)


class Plan:
    """A schedule and one next hop of it: its hosts at `levels`, a string of addresses for each preference."""

    def __init__(self, *levels: str, jobs: int = 1, total: int = 0, each: int = 0, reserve: int = 0) -> None:
        self.hosts = Hosts(Deaths(300.0, 7200.0))
        self.schedule: Schedule[object] = Schedule(total, each, self.hosts, reserve)
        self.hop: Hop[object] = self.schedule.hop(NextHop("relay.example", 25))
        self.name(*levels)
        self.hop.pending.extend(job() for _ in range(jobs))
        self.hop.entries = jobs

    def name(self, *levels: str) -> None:
        """These are the hosts now."""
        self.hop.set_candidates(
            [
                Candidate(f"mx{number}", number, self[address])
                for number, level in enumerate(levels)
                for address in level.split()
            ]
        )

    def __getitem__(self, address: str) -> Host:
        return self.hosts.find(address, 25)

    def choose(self, now: float = 0.0) -> str | None:
        candidate = self.schedule.choose(self.hop, now)
        return None if candidate is None else candidate.host.address

    def open(self, *addresses: str) -> None:
        for address in addresses:
            self.schedule.connection_opened(self.hop, self[address])

    def stand(self, *addresses: str) -> None:
        """One more connection that is a session."""
        for address in addresses:
            self.open(address)
            self.schedule.session_established(self.hop, self[address])

    def end(self, address: str) -> None:
        """A session is over."""
        self.schedule.connection_left(self.hop)
        self.schedule.connection_closed(self[address])
        self.schedule.session_ended(self.hop, self[address])

    def fail(self, *addresses: str, now: float = 0.0, reply: Reply = REFUSED) -> None:
        for address in addresses:
            self.hosts.note_failure(self[address], reply, HostFailure.NO_CONNECTION, now)

    def open_all(self, now: float = 0.0) -> list[str]:
        opened: list[str] = []
        while self.schedule.wants_session(self.hop, now) and (address := self.choose(now)) is not None:
            self.open(address)
            opened.append(address)
        return opened


def test_one_connection_for_every_four_jobs_once_the_host_has_proved_itself() -> None:
    plan = Plan("a", jobs=20)
    assert plan.open_all() == ["a"]
    plan.schedule.session_established(plan.hop, plan["a"])
    assert len(plan.open_all()) == 5


def test_jobs_that_wait_long_get_more_connections() -> None:
    plan = Plan("a", jobs=3)
    plan.stand("a")
    assert not plan.schedule.wants_session(plan.hop, 0.05)
    assert len(plan.open_all(0.15)) == 1
    assert len(plan.open_all(60.0)) == 2


def test_a_host_gets_no_more_than_its_connections_whoever_uses_it() -> None:
    plan = Plan("a", jobs=1000, each=20)
    plan.stand("a")
    other = plan.schedule.hop(NextHop("other.example", 25))
    for _ in range(5):
        plan.schedule.connection_opened(other, plan["a"])
    assert len(plan.open_all()) == 14
    assert not plan.schedule.starved


def test_all_together_get_no_more_than_the_total() -> None:
    plan = Plan("a b", jobs=1000, each=20, total=7)
    plan.stand("a", "b")
    plan.open_all()
    assert plan.schedule.open == 7
    assert list(plan.schedule.starved) == [plan.hop]


def test_hosts_of_equal_preference_share_the_load() -> None:
    plan = Plan("a b c", jobs=1000, each=20)
    assert plan.open_all() == ["a", "b", "c"]
    for address in "abc":
        plan.schedule.session_established(plan.hop, plan[address])
    plan.open_all()
    assert [plan[address].connections for address in "abc"] == [20, 20, 20]


def test_the_lowest_preference_comes_first_and_the_next_when_it_is_dead() -> None:
    plan = Plan("a b", "c", "d")
    chosen = []
    for _ in range(4):
        address = plan.choose()
        assert address is not None
        chosen.append(address)
        plan.fail(address)
    assert chosen == ["a", "b", "c", "d"]
    assert plan.choose() is None


def test_a_limit_of_a_better_host_is_waited_for() -> None:
    plan = Plan("a", "b", jobs=1000, each=3)
    plan.stand("a", "a", "a")
    assert plan.choose() is None
    plan.end("a")
    assert plan.choose() == "a"


def test_a_better_host_that_is_being_connected_to_for_the_first_time_is_waited_for() -> None:
    plan = Plan("a", "b", jobs=8)
    plan.open("a")
    assert plan.choose() is None


def test_while_a_host_that_was_dead_is_on_trial_the_next_one_serves() -> None:
    plan = Plan("a", "b", jobs=8)
    plan.fail("a")
    assert plan.choose(299.0) == "b"
    assert plan.choose(300.0) == "a"
    plan.open("a")
    assert plan.choose(300.0) == "b"
    plan.schedule.session_established(plan.hop, plan["a"])
    assert plan.choose(300.0) == "a"


def test_a_host_that_takes_no_more_connections_is_used_through_those_it_has() -> None:
    plan = Plan("a", "b", jobs=100)
    plan.stand("a")
    plan.fail("a")
    assert plan.hop.tried_until(0.0) == -math.inf
    assert plan.choose(PAUSE_S - 1) is None
    assert plan.choose(PAUSE_S) == "a"
    plan.end("a")
    assert plan.choose(1.0) == "a"  # no session is left: whether it is dead must be tried


def test_jobs_are_tried_when_every_host_is_dead() -> None:
    plan = Plan("a", "b")
    plan.fail("a")
    assert plan.hop.tried_until(0.0) == -math.inf
    plan.fail("b", reply=TIMED_OUT, now=1.0)
    assert plan.hop.tried_until(1.0) == math.inf
    assert plan.hop.last_reply() == TIMED_OUT
    assert plan.hop.tried_until(299.0) == math.inf


def test_jobs_are_tried_when_every_host_died_since_they_came_though_the_first_is_up_again_for_a_trial() -> None:
    plan = Plan("a b c")
    plan.fail("a", now=10.0)
    plan.fail("b", now=200.0)
    assert plan.hop.tried_until(320.0) == -math.inf
    plan.fail("c", now=320.0)
    assert plan.hop.tried_until(320.0) == 10.0
    plan.hop.pending.append(job(11.0))
    assert [one.queued_at for one in plan.hop.drain(10.0)] == [0.0]
    assert [one.queued_at for one in plan.hop.pending] == [11.0]


def test_nothing_is_tried_while_a_session_stands() -> None:
    plan = Plan("a", "b")
    plan.stand("a")
    plan.name("b")
    plan.fail("b")
    assert plan.hop.tried_until(0.0) == -math.inf
    assert plan.choose() is None


def test_a_next_hop_without_hosts_has_a_reply() -> None:
    plan = Plan()
    assert (plan.choose(), plan.hop.tried_until(0.0), plan.hop.last_reply()) == (None, math.inf, NO_HOST)


def test_a_slow_next_hop_shares_the_room_with_others() -> None:
    plan = Plan("a", jobs=100)
    assert plan.schedule.excess(plan.hop, 0, 4.0)[0] == []
    jobs, delay_s = plan.schedule.excess(plan.hop, 0, 20.0)
    assert len(jobs) == 50
    assert delay_s == 10.0
    assert plan.hop.entries == len(plan.hop.pending) == 50
    assert plan.schedule.excess(plan.hop, 50, 20.0)[0] == []


def test_a_slow_next_hop_without_a_session_leaves_a_reserve() -> None:
    plan = Plan("a", jobs=1, reserve=25)
    assert plan.schedule.excess(plan.hop, 25, 20.0)[0] == []
    assert len(plan.schedule.excess(plan.hop, 24, 20.0)[0]) == 1
    alive = Plan("a", jobs=1, reserve=25)
    alive.stand("a")
    assert alive.schedule.excess(alive.hop, 0, 20.0)[0] == []


def test_what_is_known_of_hosts_survives_a_new_answer() -> None:
    plan = Plan("a b", jobs=100)
    plan.stand("a")
    plan.fail("b")
    plan.name("b a a c", "a")
    assert [(one.name, one.host.address, one.host.connections) for one in plan.hop.candidates] == [
        ("mx0", "b", 0),
        ("mx0", "a", 1),
        ("mx0", "c", 0),
    ]
    assert plan["b"].is_dead(0.0)


def test_an_idle_next_hop_is_forgotten_and_a_busy_one_is_not() -> None:
    plan = Plan("a", jobs=1)
    schedule, hop = plan.schedule, plan.hop

    def is_known() -> bool:
        schedule.forget_if_idle(hop)
        return schedule.hops.get(hop.next_hop) is hop

    assert is_known()
    plan.open("a")
    hop.entries = 0
    assert is_known()
    schedule.connection_left(hop)
    hop.is_locating = True
    assert is_known()
    hop.is_locating = False
    assert not is_known()
    again = schedule.hop(hop.next_hop)
    schedule.forget_if_idle(hop)
    assert schedule.hops == {hop.next_hop: again}


def test_next_hops_that_wait_for_a_host_get_its_connections_in_order() -> None:
    plan = Plan("a", jobs=1, each=2)
    plan.stand("a", "a")
    others: list[Hop[object]] = []
    for number in range(3):
        other = plan.schedule.hop(NextHop(f"d{number}.example", 25))
        other.set_candidates(plan.hop.candidates)
        other.entries = 1
        other.pending.append(job())
        assert plan.schedule.choose(other, 0.0) is None
        others.append(other)
    assert plan.schedule.is_wanted_by_others(plan.hop, plan["a"])
    assert plan.schedule.must_yield(plan.hop, plan["a"])
    assert plan.schedule.next_waiting(plan["a"], 0.0) is None
    others[1].entries = 0
    plan.schedule.forget_if_idle(others[1])
    plan.end("a")
    assert plan.schedule.next_waiting(plan["a"], 0.0) is others[0]
    assert plan.schedule.next_waiting(plan["a"], 0.0) is others[2]
    assert plan.schedule.next_waiting(plan["a"], 0.0) is None
    assert not plan.schedule.is_wanted(plan["a"])


def test_a_next_hop_that_waits_for_the_total_gets_a_connection_when_one_is_closed() -> None:
    plan = Plan("a", "b", jobs=1, total=1)
    plan.stand("a")
    other = plan.schedule.hop(NextHop("other.example", 25))
    other.set_candidates([Candidate("b", 0, plan["b"])])
    assert plan.schedule.choose(other, 0.0) is None
    assert plan.schedule.is_wanted(plan["a"])
    assert plan.schedule.next_waiting(plan["a"], 0.0) is None
    plan.end("a")
    assert plan.schedule.next_waiting(plan["a"], 0.0) is other
    assert plan.schedule.starved == {}
