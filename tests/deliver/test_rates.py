"""Rates and windows of receivers, as mail meets them."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable

import pytest

from mailismus.config.values.settings import DestinationSettings
from tests.deliver.harness import Bench
from tests.fakes.sink import Act, Action, FewConnections, Sink

TOO_FAST = b"450 4.7.1 You send too fast, slow down\r\n"


def test_never_more_than_the_rate_in_any_minute_and_evenly() -> None:
    bench = Bench(messages_per_minute=60)
    sink = bench.sink()
    times: list[float] = []
    bench.task.start()
    for number in range(200):
        bench.put(b"r%d@b.example" % number)
    for _ in range(1500):
        before = len(sink.acknowledged())
        bench.run(0.1, 0.1)
        times += [bench.clock.seconds()] * (len(sink.acknowledged()) - before)
    assert 120 <= len(times) <= 150
    assert all(times[at + 60] - times[at] >= 60 for at in range(len(times) - 60))
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 2.5
    assert bench.statuses() == {"sent": len(times)}


def test_a_rate_of_one_destination_holds_no_other() -> None:
    slow = DestinationSettings((b"slow.example",), None, 6, None, 1)
    bench = Bench(has_relay=False, destinations=(slow,))
    bench.names.mx("slow.example", (10, "mx.slow.example", "192.0.2.1"))
    bench.names.mx("b.example", (10, "mx.slow.example", "192.0.2.1"))
    sink = bench.sink()
    bench.task.start()
    for number in range(30):
        bench.put(b"r%d@slow.example" % number)
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert sum(recipient.endswith(b"@b.example") for recipient in sink.acknowledged()) == 30
    assert sum(recipient.endswith(b"@slow.example") for recipient in sink.acknowledged()) == 1
    bench.run(60)
    assert sum(recipient.endswith(b"@slow.example") for recipient in sink.acknowledged()) in (6, 7)


def test_through_a_relay_a_destination_counts_for_its_recipients_domains() -> None:
    named, relay_itself = (DestinationSettings((name,), None, 6, None, 1) for name in (b"*.slow.example", b"192.0.2.1"))
    bench = Bench(destinations=(DestinationSettings((b"tls.example",), None, None, None, 1), named, relay_itself))
    sink = bench.sink()
    bench.task.start()
    for number in range(10):
        for domain in (b"a.slow.example", b"b.slow.example", b"tls.example", b"c.example"):
            bench.put(b"r%d@%b" % (number, domain))
    bench.put(b"one@a.slow.example", b"other@c.example")
    bench.run(5)
    assert sum(recipient.endswith(b".slow.example") for recipient in sink.acknowledged()) == 1
    assert sum(recipient.endswith((b"@tls.example", b"@c.example")) for recipient in sink.acknowledged()) == 21
    bench.run(60)
    assert sum(recipient.endswith(b".slow.example") for recipient in sink.acknowledged()) in (6, 7)


def test_a_start_with_much_mail_connects_to_100_servers_at_once_and_to_the_others_within_seconds() -> None:
    chances = random.Random(7)
    bench = Bench(has_relay=False)
    bench.world.chance = chances.random
    bench.task.sessions.schedule.limits_of._chance = chances.random
    for number in range(400):
        bench.names.mx(f"d{number}.example", (10, f"mx{number}.example", f"192.0.2.{number % 250}"))
        bench.put(b"r@d%d.example" % number, sender=b"s%d@a.example" % number)
    for number in range(250):
        bench.sink(host=f"192.0.2.{number}")
    bench.task.start()
    bench.run(0.1)
    assert len(bench.network.attempts) in range(100, 120)
    held = [waiting for waiting in bench.why().values() if b"many servers" in waiting.sentence]
    assert len(held) > 150
    bench.run(1.5)
    assert len(bench.network.attempts) in range(150, 300)
    bench.run(2)
    assert bench.statuses() == {"sent": 400}


def test_a_receiver_of_three_connections_refuses_few() -> None:
    greeting = FewConnections(3)
    bench = Bench(maxmessages=0)
    bench.network.latency_s = 0.1
    sink = bench.sink({"greeting": greeting})
    bench.task.start()
    for second in range(120):
        for number in range(8):
            bench.put(b"r%d-%d@b.example" % (second, number))
        bench.run(1, 0.05)
    assert greeting.refused <= 10
    bench.run(30)
    assert len(sink.acknowledged()) == 960
    assert bench.statuses() == {"sent": 960}


@pytest.mark.parametrize("over", [Act.CLOSE, Act.SILENCE], ids=str)
def test_a_receiver_that_breaks_off_what_is_too_much_gets_less(over: Act) -> None:
    greeting = FewConnections(3, over)
    bench = Bench(maxmessages=0, client_timeout_s=5.0)
    bench.network.latency_s = 0.1
    sink = bench.sink({"greeting": greeting})
    bench.task.start()
    for second in range(120):
        for number in range(8):
            bench.put(b"r%d-%d@b.example" % (second, number))
        bench.run(1, 0.05)
    assert 1 <= greeting.refused <= 10
    bench.run(60)
    assert len(sink.acknowledged()) == 960
    assert bench.statuses() == {"sent": 960}


def too_fast(bench: Bench, most: int) -> Callable[[Sink], Action]:
    """The answers of a receiver that takes so many messages in 60 s."""
    taken: deque[float] = deque()

    def answer(_: Sink) -> Action:
        now = bench.clock.seconds()
        while taken and now - taken[0] >= 60:
            taken.popleft()
        if len(taken) >= most:
            return TOO_FAST
        taken.append(now)
        return b"250 ok\r\n"

    return answer


def mails(sink: Sink) -> list[bytes]:
    """The MAIL commands that a connection got."""
    return [command for command in sink.commands if command.startswith(b"MAIL")]


def behind_the_refused(sink: Sink) -> list[bytes]:
    """Those behind the first that was refused."""
    return mails(sink)[sink.messages + 1 :]


@pytest.mark.parametrize("maxpipeline", [1, 25])
def test_a_receiver_that_says_too_fast_to_mail_gets_nothing_more_over_that_session(maxpipeline: int) -> None:
    bench = Bench(client_maxpipeline=maxpipeline, maxserverconnections=1)
    bench.network.latency_s = 0.01
    sink = bench.sink()
    sink.script["MAIL"] = too_fast(bench, 20)
    bench.task.start()
    for number in range(100):
        bench.put(b"r%d@b.example" % number)
    bench.run(5, 0.02)
    assert len(sink.acknowledged()) == 20
    assert bench.statuses() == {"sent": 20, "deferred": 2}
    assert [behind_the_refused(one) for one in sink.connections] == [[], []]
    bench.run(600, 0.25)
    found = bench.statuses()
    assert found["sent"] + found["deferred"] == 100  # each was tried once, and nothing is left behind
    assert found["deferred"] <= 15
    assert not any(behind_the_refused(one) for one in sink.connections)


def test_each_connection_is_told_once_that_it_is_too_fast() -> None:
    bench = Bench()
    bench.network.latency_s = 0.01
    sink = bench.sink()
    sink.script["MAIL"] = too_fast(bench, 50)
    bench.task.start()
    for number in range(500):
        bench.put(b"r%d@b.example" % number)
    bench.run(10, 0.1)
    refused = len(sink.connections) - sum(one.messages == len(mails(one)) for one in sink.connections)
    assert bench.statuses() == {"sent": 50, "deferred": refused}
    assert refused <= 2 * sink.most_open + 2


def test_what_is_said_to_a_recipient_holds_up_no_other_message() -> None:
    bench = Bench(maxserverconnections=1)
    sink = bench.sink({"RCPT": lambda sink: TOO_FAST if b"r5@" in sink.commands[-1] else b"250 ok\r\n"})
    bench.task.start()
    for number in range(10):
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert bench.statuses() == {"sent": 9, "deferred": 1}
    assert len(sink.connections) == 1


@pytest.mark.parametrize("step", ["greeting", "MAIL", "dot"])
def test_a_receiver_that_never_answers_gets_one_connection_more_and_no_third(step: str) -> None:
    bench = Bench(has_relay=False)
    bench.names.mx("silent.example", (10, "mx.silent.example", "192.0.2.1"))
    bench.sink({step: Act.SILENCE})
    bench.task.start()
    for number in range(300):
        bench.put(b"r%d@silent.example" % number, sender=b"s%d@a.example" % number)
    bench.run(100, 0.5)
    assert len(bench.network.attempts) == (1 if step == "greeting" else 2)


def test_domains_with_the_same_hosts_share_connections_each_under_its_own_name() -> None:
    bench = Bench(has_relay=False)
    for name in ("one", "two", "three"):
        bench.names.mx(f"{name}.example", (10, f"mx.{name}.example", "192.0.2.1"))
    sink = bench.sink()
    bench.task.start()
    words = (b"one", b"two", b"three")
    for word in words:
        bench.put(b"r@" + word + b".example")
    bench.run(1)
    assert len(sink.connections) == 1
    for word in words:
        assert len(bench.lines(b"relay=mx." + word + b".example[192.0.2.1]:25", b"to=<r@" + word + b".example>")) == 1
