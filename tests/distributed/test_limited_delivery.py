"""Two servers that deliver to the same hosts: limits hold over both, as the hosts see it."""

from __future__ import annotations

import pytest
from twisted.internet.protocol import Factory

from mailismus.deliver.knowledge.host_sharing import SharedHosts
from tests.distributed.limited import Deliverer, LimitedWorld
from tests.fakes.sink import FewConnections, Script, SinkFactory

RELAY = ("192.0.2.1", 25)


class Trial:
    """Two servers, and the host that both deliver to."""

    def __init__(self, script: Script | None = None, *, has_sink: bool = True, **changes: object) -> None:
        self.world = LimitedWorld()
        self.sink = SinkFactory(script)
        self.servers: dict[tuple[str, int], Factory] = {RELAY: self.sink} if has_sink else {}
        self.one, self.two = (Deliverer(self.world, name, self.servers, **changes) for name in ("one", "two"))
        self.times: list[float] = []
        """When each recipient was taken."""
        self._numbers = 0

    def put(self, server: Deliverer, count: int) -> None:
        for _ in range(count):
            self._numbers += 1
            server.put(b"r%d@b.example" % self._numbers)

    def run(self, seconds: float, step_s: float = 0.1) -> None:
        for _ in range(round(seconds / step_s)):
            before = len(self.sink.acknowledged())
            for _ in range(10):
                self.world.clock.advance(0)
            self.world.clock.advance(step_s)
            self.times += [self.world.clock.seconds()] * (len(self.sink.acknowledged()) - before)

    def most_in_60_s(self) -> int:
        """The most recipients that were taken in any 60 seconds."""
        times = self.times
        return max(sum(1 for time in times[at:] if time < times[at] + 60) for at in range(len(times)))

    def taken_between(self, begin: float, end: float) -> int:
        return sum(1 for time in self.times if begin <= time < end)


def test_never_61_messages_in_60_s_over_both() -> None:
    trial = Trial(messages_per_minute=60)
    for server in (trial.one, trial.two):
        trial.put(server, 200)
    trial.run(240)
    assert trial.most_in_60_s() <= 60
    assert len(trial.times) >= 200
    shares = [len(server.lines(b"status=sent")) for server in (trial.one, trial.two)]
    assert min(shares) >= 80


def test_what_one_does_not_send_the_other_may() -> None:
    trial = Trial(messages_per_minute=60)
    trial.put(trial.one, 40)
    trial.put(trial.two, 300)
    trial.run(240)
    assert trial.most_in_60_s() <= 60
    assert len(trial.one.lines(b"status=sent")) == 40
    now = trial.world.clock.seconds()
    assert trial.taken_between(now - 60, now) >= 54


def test_what_a_killed_server_had_of_a_rate_the_other_sends() -> None:
    trial = Trial(messages_per_minute=60)
    for server in (trial.one, trial.two):
        trial.put(server, 400)
    trial.run(130)
    killed_at = trial.world.clock.seconds()
    trial.one.kill()
    trial.run(180)
    assert trial.most_in_60_s() <= 60
    minutes = [trial.taken_between(killed_at + at, killed_at + at + 60) for at in (0, 60, 120)]
    assert minutes[1] >= 51
    assert minutes[2] >= 54  # as many as a server alone sends in steps of this clock


def test_recipients_never_more_than_the_rate_over_both() -> None:
    trial = Trial(recipients_per_minute=60)
    for server in (trial.one, trial.two):
        for number in range(40):
            server.put(*[b"r%d-%d@b.example" % (number, each) for each in range(7)])
    trial.run(240)
    assert trial.most_in_60_s() <= 60
    assert len(trial.times) >= 150


def test_connections_to_a_host_over_both() -> None:
    trial = Trial(maxserverconnections=6, latency_s=0.1, maxmessages=5)
    for server in (trial.one, trial.two):
        trial.put(server, 300)
    trial.run(120)
    assert trial.sink.most_open <= 6
    assert len(trial.sink.acknowledged()) == 600
    assert all(len(server.lines(b"status=sent")) == 300 for server in (trial.one, trial.two))


@pytest.mark.parametrize("limit", [3, 20])
def test_a_host_that_takes_three_connections_refuses_few(limit: int) -> None:
    greeting = FewConnections(3)
    trial = Trial({"greeting": greeting}, maxmessages=0, latency_s=0.1, maxserverconnections=limit)
    for _ in range(120):
        for server in (trial.one, trial.two):
            trial.put(server, 4)
        trial.run(1)
    trial.run(120)
    assert greeting.refused <= 10
    deferred = sum(len(server.lines(b"status=deferred")) for server in (trial.one, trial.two))
    assert len(trial.sink.acknowledged()) + deferred == 960
    assert deferred <= greeting.refused  # to a server without a session the host is dead once


def test_connections_of_a_killed_server_are_the_others_within_60_s() -> None:
    trial = Trial(maxserverconnections=4, latency_s=0.5, maxmessages=0)
    for server in (trial.one, trial.two):
        trial.put(server, 2000)
    trial.run(60)
    trial.one.kill()
    trial.run(60)
    assert trial.sink.open == 4
    assert trial.sink.most_open <= 4


def test_the_sentence_of_mail_that_waits_names_what_others_have() -> None:
    trial = Trial(maxserverconnections=4, latency_s=0.5, maxmessages=0)
    for server in (trial.one, trial.two):
        trial.put(server, 200)
    trial.run(30)
    words = {waiting.sentence for waiting in trial.one.why().values()}
    assert any(b"2 of 4 belong to other servers" in word for word in words), words


def test_a_host_dead_for_one_is_left_alone_by_the_other_within_2_s_and_a_flush_forgets_it_for_both() -> None:
    trial = Trial(has_sink=False)
    for server in (trial.one, trial.two):
        shared = SharedHosts(server.task.hosts, server.server.sharing, server.server.host, server.world.monotonic, 7200.0)
        shared.start()
    trial.run(1)
    trial.put(trial.one, 1)
    began = trial.world.clock.seconds()
    while not trial.one.task.hosts.find(*RELAY).is_dead(trial.one.world.monotonic()):
        trial.run(0.05, 0.05)
        assert trial.world.clock.seconds() < began + 5
    died_at = trial.world.clock.seconds()
    while not trial.two.task.hosts.find(*RELAY).is_dead(trial.two.world.monotonic()):
        trial.run(0.05, 0.05)
        assert trial.world.clock.seconds() <= died_at + 2
    trial.put(trial.two, 1)
    trial.run(5)
    assert trial.two.shared_network.attempts == []
    trial.servers[RELAY] = trial.sink
    trial.two.task.forget_deaths()
    trial.run(2)
    assert not trial.one.task.hosts.find(*RELAY).is_dead(trial.one.world.monotonic())
    trial.put(trial.one, 1)
    trial.put(trial.two, 1)
    trial.run(2)
    assert len(trial.sink.acknowledged()) == 2
