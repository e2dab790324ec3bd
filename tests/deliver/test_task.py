"""The delivering task whole: what happens to mail, whatever the servers do."""

from __future__ import annotations

import random

import pytest

from mailismus.queue.interface import Area
from tests.deliver.harness import CONTENT, Bench, relay
from tests.fakes.sink import Act, Action, Sink


def test_a_message_reaches_the_relay_and_leaves_the_queue() -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run()
    assert [(m.sender, m.recipients, m.content) for m in sink.received] == [(b"s@a.example", [b"r@b.example"], CONTENT)]
    assert bench.count(Area.INCOMING) == 0
    (line,) = bench.lines()
    assert b": to=<r@b.example>, relay=192.0.2.1[192.0.2.1]:25, delay=" in line
    assert line.endswith(b", dsn=2.0.0, status=sent (250 2.0.0 Ok: queued)")
    assert bench.task.held == 0


def test_many_messages_share_few_connections_and_travel_in_pipelines() -> None:
    bench = Bench()
    sink = bench.sink()
    for number in range(300):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(2)
    assert sorted(sink.acknowledged()) == sorted(b"r%d@b.example" % number for number in range(300))
    assert len(sink.connections) < 30
    assert 1 < sink.most_open <= 20
    assert bench.statuses() == {"sent": 300}
    assert bench.task.held == 0


def test_idle_sessions_end_with_quit_after_five_seconds() -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(4)
    assert sink.connections[0].commands[-1] != b"QUIT"
    bench.run(3)
    assert sink.connections[0].commands[-1] == b"QUIT"
    assert bench.task.sessions.open == 0


def test_a_session_ends_after_maxmessages() -> None:
    bench = Bench(maxmessages=3, maxserverconnections=1)
    sink = bench.sink()
    for number in range(7):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(3)
    assert len(sink.acknowledged()) == 7
    assert [connection.messages for connection in sink.connections] == [3, 3, 1]


def test_recipients_that_share_a_next_hop_share_transactions_of_maxrecips() -> None:
    bench = Bench(maxrecips=2)
    sink = bench.sink()
    bench.put(*[b"r%d@b.example" % number for number in range(5)])
    bench.task.start()
    bench.run(2)
    assert sorted(len(message.recipients) for message in sink.received) == [1, 2, 2]


def test_domains_go_to_their_relays_and_the_rest_to_the_default() -> None:
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.2", 26, b"b.example"))
    default, special = bench.sink(), bench.sink(host="192.0.2.2", port=26)
    bench.put(b"r@B.Example", b"r@c.example", b"r@sub.b.example")
    bench.task.start()
    bench.run()
    assert special.acknowledged() == [b"r@B.Example"]
    assert default.acknowledged() == [b"r@c.example", b"r@sub.b.example"]


def test_one_refused_recipient_among_accepted_ones() -> None:
    def answer(sink: Sink) -> Action:
        return b"550 5.1.1 no\r\n" if b"bad" in sink.commands[-1] else b"250 ok\r\n"

    bench = Bench()
    sink = bench.sink({"RCPT": answer})
    bench.put(b"a@b.example", b"bad@b.example", b"c@b.example")
    bench.task.start()
    bench.run()
    assert sink.acknowledged() == [b"a@b.example", b"c@b.example"]
    assert bench.statuses() == {"sent": 2, "bounced": 1}
    assert len(bench.lines(b"to=<bad@b.example>", b"status=bounced (550 5.1.1 no)")) == 1


def test_a_host_that_ends_every_session_after_one_message_gets_all_of_them_without_an_attempt_lost() -> None:
    def answer(sink: Sink) -> Action:
        return b"250 ok\r\n" if sink.messages == 0 else b"421 4.7.0 one is enough\r\n"

    bench = Bench()
    sink = bench.sink({"MAIL": answer})
    for number in range(40):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(5)
    assert sorted(sink.acknowledged()) == sorted(b"r%d@b.example" % number for number in range(40))
    assert bench.statuses() == {"sent": 40}


def test_a_host_that_closes_idle_sessions_without_a_word_costs_nothing() -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(1)
    sink.connections[0].transport_of().loseConnection()
    bench.put(b"r2@b.example")
    bench.run(1)
    assert bench.statuses() == {"sent": 2}


def test_a_refused_connection_defers_with_the_reason() -> None:
    bench = Bench()
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run()
    (line,) = bench.lines(b"status=deferred")
    assert b"dsn=4.4.1" in line
    assert b"connect to 192.0.2.1[192.0.2.1]:25 failed" in line


def test_a_dead_relay_with_much_mail_is_not_stormed() -> None:
    bench = Bench(queuecache=500)
    for number in range(3000):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(4)
    assert bench.statuses() == {"deferred": 3000}
    assert len(bench.network.attempts) <= 2
    assert bench.task.held == 0


def test_a_dead_relay_that_comes_back_gets_new_mail() -> None:
    bench = Bench()
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(1)
    sink = bench.sink()
    bench.run(300, 1)
    bench.put(b"r2@b.example")
    bench.run(1)
    assert sink.acknowledged() == [b"r2@b.example"]
    bench.run(1000, 1)
    assert sink.acknowledged() == [b"r2@b.example", b"r1@b.example"]


def test_a_slow_relay_with_more_mail_than_the_cache_does_not_hold_back_others() -> None:
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.2", 25, b"good.example"), queuecache=200)
    bench.sink({"MAIL": Act.SILENCE})
    good = bench.sink(host="192.0.2.2")
    for number in range(2000):
        bench.put(b"r%d@slow.example" % number)
    bench.task.start()
    bench.run(3)
    assert bench.task.held <= 200
    for number in range(20):
        bench.put(b"r%d@good.example" % number)
    bench.run(15)
    assert len(good.acknowledged()) == 20
    assert bench.task.held <= 200


def test_a_relay_that_is_slow_but_alive_never_runs_dry() -> None:
    bench = Bench(queuecache=110, maxserverconnections=2, maxconnections=2)  # a share of 100
    bench.network.latency_s = 0.05
    sink = bench.sink()
    for number in range(1000):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(12)
    early = len(sink.acknowledged())
    bench.run(12)
    assert bench.task.counters.given_back > 0
    assert len(sink.acknowledged()) - early > 0.8 * early
    bench.run(40)
    assert sorted(sink.acknowledged()) == sorted(b"r%d@b.example" % number for number in range(1000))


def test_a_black_hole_is_tried_by_one_connection_and_deferred_at_its_time_out() -> None:
    bench = Bench()
    bench.network.black_holes.add("192.0.2.1")
    for number in range(100):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(20, 0.5)
    assert len(bench.network.attempts) == 1
    bench.run(15, 0.5)
    assert bench.statuses() == {"deferred": 100}


def test_addresses_of_a_relay_share_the_load_and_stand_in_for_each_other() -> None:
    bench = Bench(relay("relay.example"))
    bench.names.hosts["relay.example"] = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
    first, second = bench.sink(), bench.sink(host="192.0.2.2")
    for number in range(400):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(3)
    assert len(first.acknowledged()) + len(second.acknowledged()) == 400
    assert min(len(first.connections), len(second.connections)) > 3
    assert bench.network.attempts.count(("192.0.2.3", 25)) == 1
    assert len(bench.lines(b"relay=relay.example[192.0.2.2]:25")) == len(second.acknowledged())


def test_a_name_without_an_address_defers() -> None:
    bench = Bench(relay("relay.example"))
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run()
    (line,) = bench.lines(b"status=deferred", b"dsn=4.4.3", b"relay=none")
    assert b"(451 4.4.3 no such name here)" in line


def test_maxconnections_is_never_passed_and_an_idle_session_makes_room() -> None:
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.2", 25, b"good.example"), maxconnections=1)
    first, second = bench.sink(), bench.sink(host="192.0.2.2")
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(0.5)
    bench.put(b"r2@good.example")
    bench.run(0.5)
    assert first.acknowledged() == [b"r1@b.example"]
    assert second.acknowledged() == [b"r2@good.example"]


def test_a_busy_next_hop_yields_its_connections_to_one_that_waits() -> None:
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.2", 25, b"good.example"), maxconnections=4, maxmessages=0)
    bench.sink()
    good = bench.sink(host="192.0.2.2")
    bench.task.start()
    for _ in range(30):
        for number in range(50):
            bench.put(b"r%d@b.example" % number)
        bench.run(0.05)
    bench.put(b"r@good.example")
    for _ in range(10):
        for number in range(50):
            bench.put(b"r%d@b.example" % number)
        bench.run(0.05)
    assert good.acknowledged() == [b"r@good.example"]
    assert bench.task.sessions.open <= 5  # one may be saying QUIT


def test_nothing_is_begun_while_outcomes_are_not_durable() -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.run(1)
    for number in range(1000):
        bench.put(b"r%d@b.example" % number)
    bench.network.latency_s = 0.05
    bench.clock.advance(0)
    bench.provider.break_down()
    bench.run(5)
    stalled = len(sink.acknowledged())
    assert 200 <= stalled <= 200 + 2 * 20
    assert not bench.queue.when_may_begin().called
    bench.provider.mend()
    bench.run(5)
    assert len(sink.acknowledged()) == 1000
    assert len(set(sink.acknowledged())) == 1000


@pytest.mark.parametrize("number", [200, 205, 260])
def test_idle_connections_that_waited_for_durable_outcomes_work_again(number: int) -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.run(1)
    for count in range(number):
        bench.put(b"r%d@b.example" % count)
    bench.network.latency_s = 0.05
    bench.clock.advance(0)
    bench.provider.break_down()
    bench.run(3)
    bench.provider.mend()
    bench.run(3)
    for count in range(50):
        bench.put(b"s%d@b.example" % count)
    bench.run(3)
    assert len(sink.acknowledged()) == len(set(sink.acknowledged())) == number + 50


@pytest.mark.parametrize("seed", range(3))
def test_messages_do_not_mix_when_the_queue_stalls_again_and_again(seed: int) -> None:
    chance, stalls = random.Random(seed), 0
    bench = Bench(relay("192.0.2.1"), maxserverconnections=3, queuecache=2500)
    sink = bench.sink()
    bench.task.start()
    bench.run(1)
    bench.network.latency_s = 0.01
    sent: dict[bytes, list[bytes]] = {}
    for step in range(60):
        for number in range(12):
            content = b"Subject: %d-%d\r\n\r\nx\r\n" % (step, number)
            sent[content] = [b"r%d@b.example" % recipient for recipient in range(30)]
            bench.put(*sent[content], content=content)
        bench.provider.break_down()
        bench.run(chance.uniform(0.1, 0.6), 0.01)
        stalls += bench.queue.in_doubt >= 200
        bench.provider.mend()
        for _ in range(10):
            bench.clock.advance(chance.uniform(0.0, 0.01))
            bench.task.sessions.wake()
    bench.run(30)
    assert sorted((message.content, message.recipients) for message in sink.received) == sorted(sent.items())
    assert bench.count(Area.INCOMING) == 0
    assert stalls > 20


def test_large_messages_come_in_pieces_and_whole() -> None:
    content = b"Received: x\r\n" + b"".join(b"line %d\r\n" % number for number in range(40_000))
    bench = Bench(large_bytes=1000)
    sink = bench.sink()
    bench.task.start()
    for number in range(3):
        bench.put(b"r%d@b.example" % number, content=content)
    bench.run(3)
    assert [message.content == content for message in sink.received] == [True] * 3
    assert bench.statuses() == {"sent": 3}


def test_each_outcome_is_settled_at_once_and_none_waits_for_the_slowest() -> None:
    def answer(sink: Sink) -> Action:
        return Act.SILENCE if b"slow" in b" ".join(sink.commands[-2:]) else b"250 ok\r\n"

    bench = Bench(maxrecips=1)
    bench.sink({"dot": answer})
    bench.task.start()
    bench.put(b"slow@b.example")
    bench.run(1)
    for number in range(30):
        bench.put(b"r%d@b.example" % number)
    bench.run(2)
    assert bench.statuses() == {"sent": 30}
    assert bench.count(Area.INCOMING) == 1
    assert bench.task.held == 1
