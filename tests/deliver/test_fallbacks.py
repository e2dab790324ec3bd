"""Hosts that can't do what they offer, or do not offer what a message needs: what is tried instead, what is remembered."""

from __future__ import annotations

import pytest

from mailismus.config.values.settings import EightBit
from mailismus.deliver.knowledge.quirks import REMEMBERED_S
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench
from tests.fakes.sink import Ahead, SinkFactory

EIGHTBIT = b"Subject: caf\xe9\r\n\r\nx\r\n"
PLAIN_HELLO = b"250-sink\r\n250 PIPELINING\r\n"


def verbs(sink: SinkFactory, number: int) -> list[bytes]:
    return [command[:4] for command in sink.connections[number].commands]


BROKEN = {Ahead.DROP: 310, Ahead.REFUSE: 2, Ahead.CLOSE: 2, Ahead.HANG: 310}


@pytest.mark.parametrize("ahead", BROKEN)
def test_a_host_whose_pipelining_is_broken_is_spoken_to_in_steps(ahead: Ahead) -> None:
    bench = Bench()
    sink = bench.sink()
    sink.ahead = ahead
    bench.put(b"a@b.example", b"b@b.example")
    bench.task.start()
    bench.run(BROKEN[ahead], 0.5)
    assert sorted(sink.acknowledged()) == [b"a@b.example", b"b@b.example"]
    assert bench.statuses() == {"sent": 2}
    assert len(sink.connections) == 2
    bench.run(60, 0.5)  # an idle session is gone; the memory is not
    for number in range(5):
        bench.put(b"r%d@b.example" % number)
    bench.run(3)
    assert bench.statuses() == {"sent": 7}
    assert len(sink.acknowledged()) == 7
    assert all(connection.commands.count(b"DATA") == connection.messages for connection in sink.connections[1:])


def test_a_host_that_drops_what_stands_behind_a_dot_has_one_message_in_doubt_and_no_more() -> None:
    bench = Bench()
    sink = bench.sink()
    sink.ahead = Ahead.DOTS
    for number in range(3):
        bench.put(b"r%d@b.example" % number)
    bench.task.start()
    bench.run(620, 1)
    assert len(bench.lines(b"may have been sent")) == 1
    assert bench.statuses() == {"sent": 2, "deferred": 1}
    for number in range(3):
        bench.put(b"s%d@b.example" % number)
    bench.run(5)
    assert bench.statuses() == {"sent": 5, "deferred": 1}
    bench.run(1000, 1)
    assert bench.statuses() == {"sent": 6, "deferred": 1}
    assert len(set(sink.acknowledged())) == len(sink.acknowledged()) == 6


def test_a_host_that_was_mended_gets_commands_ahead_again_after_a_while() -> None:
    bench = Bench()
    sink = bench.sink()
    sink.ahead = Ahead.REFUSE
    bench.put(b"a@b.example")
    bench.task.start()
    bench.run(1)
    sink.ahead = Ahead.TAKE
    network = bench.network
    network.latency_s = 0.1
    took: list[float] = []
    for wait_s in (10.0, REMEMBERED_S):
        bench.run(wait_s, 5.0)
        began = bench.clock.seconds()
        before = len(sink.received)
        bench.put(b"r@b.example")
        while len(sink.received) == before:
            bench.run(0.01, 0.01)
        took.append(bench.clock.seconds() - began)
    assert took[1] < took[0] - 0.35  # two round trips less


def test_who_says_503_in_steps_too_means_it() -> None:
    bench = Bench()
    sink = bench.sink({"RCPT": b"503 no\r\n"})
    bench.put(b"a@b.example")
    bench.task.start()
    bench.run(2)
    assert len(bench.lines(b"status=bounced (503 no)")) == 1
    assert len(sink.connections) == 2
    bench.run(20)
    bench.put(b"b@b.example")
    bench.run(2)
    assert len(bench.lines(b"status=bounced (503 no)")) == 2
    assert len(sink.connections) == 3  # not tried twice any more


def test_a_host_that_refuses_ehlo_is_greeted_with_helo_from_then_on() -> None:
    bench = Bench()
    sink = bench.sink({"EHLO": b"500 what?\r\n"})
    bench.put(b"a@b.example")
    bench.task.start()
    bench.run(30)
    bench.put(b"b@b.example")
    bench.run(2)
    assert [verbs(sink, number)[:2] for number in (0, 1)] == [[b"EHLO", b"HELO"], [b"HELO", b"MAIL"]]
    assert bench.statuses() == {"sent": 2}
    bench.run(REMEMBERED_S, 5.0)
    bench.put(b"c@b.example")
    bench.run(2)
    assert verbs(sink, 2)[:2] == [b"EHLO", b"HELO"]


@pytest.mark.parametrize("hello", [{"EHLO": PLAIN_HELLO}, {"EHLO": b"500 what?\r\n"}])
@pytest.mark.parametrize("eightbit", [EightBit.SEND, EightBit.BOUNCE])
def test_8_bit_mail_to_a_host_without_8bitmime_is_sent_or_bounced_as_set(
    eightbit: EightBit, hello: dict[str, bytes]
) -> None:
    bench = Bench(client_eightbit=eightbit)
    sink = bench.sink({**hello})
    for content in (EIGHTBIT, b"x\r\n", EIGHTBIT * 10, b"y\r\n"):
        bench.put(b"r@b.example", content=content)
    bench.task.start()
    bench.run(2)
    assert all(b"BODY" not in command for command in sink.connections[0].commands)
    if eightbit is EightBit.SEND:
        assert sorted(len(message.content) for message in sink.received) == sorted([3, 3, len(EIGHTBIT), 10 * len(EIGHTBIT)])
        assert EIGHTBIT in [message.content for message in sink.received]
        return
    assert [message.content for message in sink.received] == [b"x\r\n", b"y\r\n"]
    lines = bench.lines(b"dsn=5.6.3, status=bounced (554 5.6.3 the message has 8-bit content, and this host does not offer")
    assert len(lines) == 2
    assert all(b"relay=192.0.2.1[192.0.2.1]:25" in line for line in lines)
    assert bench.statuses() == {"sent": 2, "bounced": 2}
    assert bench.count(Area.BOUNCES) == 2
    assert bench.task.held == 0


def test_8_bit_mail_is_declared_where_8bitmime_is_offered() -> None:
    bench = Bench(client_eightbit=EightBit.BOUNCE)
    sink = bench.sink()
    bench.put(b"r@b.example", content=EIGHTBIT)
    bench.task.start()
    bench.run(1)
    assert sink.received[0].content == EIGHTBIT
    assert sink.connections[0].commands[1].endswith(b" BODY=8BITMIME")


def test_a_host_is_told_the_size_without_doubled_dots_and_its_limit_compared_with_that() -> None:
    bench = Bench()
    sink = bench.sink({"EHLO": b"250-sink\r\n250 SIZE 1000\r\n"})
    bench.put(b"fits@b.example", content=b"..\r\n" * 333)
    bench.put(b"one@b.example", content=b"..\r\n" * 333 + b"\r\n")
    bench.task.start()
    bench.run(5)
    assert [command for connection in sink.connections for command in connection.commands if command[:4] == b"MAIL"] == [
        b"MAIL FROM:<s@a.example> SIZE=999"
    ]
    assert sink.acknowledged() == [b"fits@b.example"]
    assert b"the message of 1001 bytes is larger" in bench.lines(b"one@")[0]


def test_a_message_larger_than_the_host_takes_bounces_without_being_sent() -> None:
    bench = Bench(maxserverconnections=1)
    sink = bench.sink({"EHLO": b"250-sink\r\n250-PIPELINING\r\n250 SIZE 1000\r\n"})
    for size in (1000, 1200, 10, 500_000, 20):
        bench.put(b"r%d@b.example" % size, content=b"x" * (size - 2) + b"\r\n")
    bench.task.start()
    bench.run(1)
    assert sorted(sink.acknowledged()) == [b"r1000@b.example", b"r10@b.example", b"r20@b.example"]
    assert sink.bytes_received < 3000
    (line,) = bench.lines(b"r1200@")
    assert (
        b"dsn=5.3.4, status=bounced (552 5.3.4 the message of 1200 bytes is larger than this host takes, which is 1000)"
        in line
    )
    assert bench.statuses() == {"sent": 3, "bounced": 2}
    bench.run(1)
    bench.put(b"s@b.example", content=b"x" * 5000)  # to a session that is idle
    bench.put(b"t@b.example")
    bench.run(1)
    assert bench.statuses() == {"sent": 4, "bounced": 3}
    assert len(sink.connections) == 1
    bench.put(b"u@b.example", content=b"x" * 5000)
    bench.run(20)
    assert bench.statuses() == {"sent": 4, "bounced": 4}
    assert sink.open == 0
    assert bench.task.held == 0
