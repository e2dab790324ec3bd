"""Relays that misbehave at each step: nobody else is hurt, nothing is delivered or failed that was not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, relay
from tests.fakes.sink import Act, Action, Script, Sink

FATES: dict[str, tuple[Script, str, bytes]] = {
    "greeting 4xx": ({"greeting": b"450 busy\r\n"}, "deferred", b"host refused the session: 450 busy"),
    "greeting 5xx": ({"greeting": b"554 5.7.1 no\r\n"}, "deferred", b"dsn=4.7.1"),
    "greeting garbage": ({"greeting": b"SSH-2.0-OpenSSH\r\n"}, "deferred", b"no reply"),
    "greeting closes": ({"greeting": Act.CLOSE}, "deferred", b"connection lost"),
    "greeting resets": ({"greeting": Act.ABORT}, "deferred", b"connection lost"),
    "greeting 354": ({"greeting": b"354 go\r\n"}, "deferred", b"host refused the session: 354 go"),
    "greeting 421": ({"greeting": b"421 4.3.2 full\r\n"}, "deferred", b"host refused the session: 421 4.3.2 full"),
    "greeting of NULs": ({"greeting": b"\0" * 100 + b"\r\n"}, "deferred", b"no reply"),
    "greeting and more": ({"greeting": b"220 mx\r\n250 mx\r\n"}, "deferred", b"came before its command"),
    "greeting without end": ({"greeting": b"220-x\r\n" * 200}, "deferred", b"too many lines"),
    "greeting of many lines": ({"greeting": b"220-\0\xff\r\n" * 99 + b"220 mx\r\n"}, "sent", b"250 2.0.0 Ok"),
    "greeting silence": ({"greeting": Act.SILENCE}, "deferred", b"timed out"),
    "EHLO and HELO refused": ({"EHLO": b"550 no\r\n", "HELO": b"550 no\r\n"}, "deferred", b"host refused"),
    "EHLO refused alone": ({"EHLO": b"502 what\r\n"}, "sent", b"250 2.0.0 Ok"),
    "EHLO 421": ({"EHLO": b"421 bye\r\n"}, "deferred", b"host refused the session: 421 bye"),
    "EHLO refused, HELO closes": ({"EHLO": b"550 no\r\n", "HELO": Act.CLOSE}, "deferred", b"connection lost"),
    "EHLO 250 twice": ({"EHLO": b"250 mx\r\n250 mx\r\n"}, "deferred", b"came before its command"),
    "EHLO closes": ({"EHLO": Act.CLOSE}, "deferred", b"connection lost"),
    "EHLO silence": ({"EHLO": Act.SILENCE}, "deferred", b"timed out"),
    "MAIL 4xx": ({"MAIL": b"450 4.1.8 later\r\n"}, "deferred", b"(450 4.1.8 later)"),
    "MAIL 5xx": ({"MAIL": b"550 5.1.8 never\r\n"}, "bounced", b"(550 5.1.8 never)"),
    "MAIL 421": ({"MAIL": b"421 4.7.0 bye\r\n"}, "deferred", b"(421 4.7.0 bye)"),
    "MAIL answered twice": ({"MAIL": b"250 ok\r\n250 ok\r\n"}, "deferred", b"came before its command"),
    "MAIL closes": ({"MAIL": Act.CLOSE}, "deferred", b"before the reply to MAIL"),
    "MAIL silence": ({"MAIL": Act.SILENCE}, "deferred", b"timed out before the reply to MAIL"),
    "RCPT 4xx": ({"RCPT": b"450 4.2.0 later\r\n"}, "deferred", b"(450 4.2.0 later)"),
    "RCPT 5xx": ({"RCPT": b"550 5.1.1 never\r\n"}, "bounced", b"(550 5.1.1 never)"),
    "RCPT 5xx and 354": ({"RCPT": b"550 5.1.1 never\r\n", "DATA": b"354 go\r\n"}, "bounced", b"(550 5.1.1 never)"),
    "RCPT 421": ({"RCPT": b"421 4.7.0 bye\r\n"}, "deferred", b"(421 4.7.0 bye)"),
    "RCPT 354": ({"RCPT": b"354 go\r\n"}, "deferred", b"unexpected reply to RCPT"),
    "RCPT 503, always": ({"RCPT": b"503 5.5.1 no\r\n"}, "bounced", b"(503 5.5.1 no)"),
    "RCPT closes": ({"RCPT": Act.CLOSE}, "deferred", b"before the reply to RCPT"),
    "DATA 4xx": ({"DATA": b"451 4.3.0 later\r\n"}, "deferred", b"(451 4.3.0 later)"),
    "DATA 5xx": ({"DATA": b"554 5.5.0 never\r\n"}, "bounced", b"(554 5.5.0 never)"),
    "DATA 421": ({"DATA": b"421 4.7.0 bye\r\n"}, "deferred", b"(421 4.7.0 bye)"),
    "DATA closes": ({"DATA": Act.CLOSE}, "deferred", b"before the reply to RCPT or DATA"),
    "DATA silence": ({"DATA": Act.SILENCE}, "deferred", b"timed out"),
    "250 to DATA": ({"DATA": b"250 ok\r\n"}, "deferred", b"unexpected reply to DATA"),
    "all replies before DATA": ({"MAIL": b"250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n"}, "deferred", b"before its command"),
    "DATA answered twice": ({"DATA": b"354 go\r\n250 ok\r\n"}, "deferred", b"came before its command"),
    "dot 4xx": ({"dot": b"450 4.7.1 later\r\n"}, "deferred", b"(450 4.7.1 later)"),
    "dot 5xx": ({"dot": b"554 5.7.1 spam\r\n"}, "bounced", b"(554 5.7.1 spam)"),
    "dot 299": ({"dot": b"299 fine\r\n"}, "sent", b"dsn=2.0.0, status=sent (299 fine)"),
    "dot 354": ({"dot": b"354 go on\r\n"}, "deferred", b"unexpected reply to the final dot after the final dot"),
    "dot 421": ({"dot": b"421 4.3.2 bye\r\n"}, "deferred", b"(421 4.3.2 bye)"),
    "dot closes": ({"dot": Act.CLOSE}, "deferred", b"may have been sent"),
    "dot resets": ({"dot": Act.ABORT}, "deferred", b"may have been sent"),
    "dot silence": ({"dot": Act.SILENCE}, "deferred", b"timed out after the final dot: the message may have been sent"),
    "dot garbage": ({"dot": b"\0\0\0\r\n"}, "deferred", b"may have been sent"),
    "endless reply": ({"MAIL": b"250-more\r\n" * 5000}, "deferred", b"too many lines"),
    "a line of a megabyte": ({"RCPT": b"250 " + b"x" * (1 << 20) + b"\r\n"}, "deferred", b"too long"),
    "controls in a reply": ({"dot": b"554 a\0b\x1b[31m\xff\r\n"}, "bounced", b"(554 a?b?[31m?)"),
}


@pytest.mark.parametrize("name", FATES)
def test_what_a_relay_does_wrong_hurts_its_own_mail_alone(name: str) -> None:
    script, status, text = FATES[name]
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.2", 25, b"good.example"))
    bad, good = bench.sink(script), bench.sink(host="192.0.2.2")
    bench.put(b"r@bad.example", b"x@good.example")
    bench.put(b"y@good.example")
    bench.task.start()
    bench.run(0.2)
    assert sorted(good.acknowledged()) == [b"x@good.example", b"y@good.example"]
    bench.run(700 if "silence" in name else 3, 0.5)
    assert len(good.acknowledged()) == 2
    (line,) = bench.lines(b"to=<r@bad.example>")
    assert b"status=%b " % status.encode() in line
    assert text in line
    assert line.isascii()
    assert line.decode().isprintable()
    assert len(line) < 1500
    assert (bad.acknowledged() == [b"r@bad.example"]) is (status == "sent")
    assert len(bad.received) <= 1
    assert len(bad.connections) <= 2  # once more in steps, where sending ahead may have been the trouble
    assert bench.task.held == 0
    assert bench.count(Area.DEFERRED) == (status == "deferred")
    assert bench.count(Area.BOUNCES) == (status == "bounced")


def test_a_hundred_bad_relays_do_not_keep_a_good_one_from_its_mail() -> None:
    hosts = [f"198.51.100.{number}" for number in range(1, 101)]
    bench = Bench(relay("192.0.2.2"), *(relay(host, 25, b"%b.example" % host.encode()) for host in hosts))
    scripts = [script for script, status, _ in FATES.values() if status == "deferred"]
    good = bench.sink(host="192.0.2.2")
    for number, host in enumerate(hosts):
        bench.sink(scripts[number % len(scripts)], host)
        for copy in range(3):
            bench.put(b"r%d@%b.example" % (copy, host.encode()))
    bench.task.start()
    for number in range(50):
        bench.put(b"r%d@good.example" % number)
        bench.run(0.2)
        assert len(good.acknowledged()) == number + 1
    assert b"r49@good.example" in good.acknowledged()


def test_a_drip_of_a_reply_does_not_hold_a_session_beyond_its_time() -> None:
    def drip(sink: Sink) -> Action:
        sink.transport_of().write(b"250-")
        return Act.SILENCE

    bench = Bench()
    sink = bench.sink({"MAIL": drip})
    bench.put(b"r@b.example")
    bench.task.start()
    for second in range(700):
        bench.run(1, 1)
        for connection in sink.connections:
            if not connection.is_closed:
                connection.transport_of().write(b"x" if second % 30 else b"x\r\n250-")
        assert len([connection for connection in sink.connections if not connection.is_closed]) <= 1
    (line,) = bench.lines()
    assert b"timed out before the reply to MAIL" in line
    assert len(sink.connections) == 2  # the second time in steps


def late(bench: Bench, seconds: float, reply: bytes) -> Callable[[Sink], Action]:
    """A reply that takes its time."""

    def answer(sink: Sink) -> Action:
        bench.clock.callLater(seconds, sink.transport_of().write, reply)
        return b""

    return answer


def test_a_drip_of_replies_does_not_hold_a_transaction_beyond_its_time() -> None:
    bench = Bench()
    sink = bench.sink()
    sink.script = {"EHLO": b"250 mx\r\n", "RCPT": late(bench, 290, b"250 ok\r\n")}
    bench.put(*(b"r%d@b.example" % number for number in range(20)))
    bench.task.start()
    bench.run(1600, 1)
    assert len(bench.lines(b"status=deferred (451 4.4.2 timed out before the reply to RCPT or DATA)")) == 20
    assert len(sink.connections) == 1
    assert sink.connections[0].is_closed


@pytest.mark.parametrize(
    ("greeting_s", "ehlo_s", "helo_s", "status"),
    [(290, 0, 0, b"sent"), (290, 290, 0, b"sent"), (290, 290, 290, b"deferred"), (310, 0, 0, b"deferred")],
)
def test_a_late_greeting_is_waited_for_and_the_opening_has_a_time_in_all(
    greeting_s: float, ehlo_s: float, helo_s: float, status: bytes
) -> None:
    bench = Bench()
    sink = bench.sink()
    sink.script = {"greeting": late(bench, greeting_s, b"220 mx\r\n"), "EHLO": late(bench, ehlo_s, b"250 mx\r\n")}
    if helo_s:
        sink.script |= {"EHLO": late(bench, ehlo_s, b"502 what\r\n"), "HELO": late(bench, helo_s, b"250 mx\r\n")}
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(1000, 1)
    (line,) = bench.lines()
    assert b"status=" + status in line
    assert len(sink.connections) == 1


def test_nobody_accepted_and_yet_354_gets_a_lone_dot_and_its_reply_is_awaited() -> None:
    bench = Bench()
    sink = bench.sink()
    sink.script = {"RCPT": b"550 5.1.1 no\r\n", "DATA": b"354 go\r\n", "dot": late(bench, 2, b"554 5.5.1 nobody\r\n")}
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(1)
    assert [(message.recipients, message.content) for message in sink.received] == [([], b"")]
    sink.script = {}
    bench.put(b"s@b.example")
    bench.run(0.5)
    bench.run(3)
    assert sink.acknowledged() == [b"s@b.example"]
    again = [b"MAIL FROM:<s@a.example> SIZE=34", b"RCPT TO:<s@b.example>", b"DATA"]
    assert sink.connections[0].commands[4:] in ([], [b"QUIT"], again, [b"RSET", *again])
    assert bench.statuses() == {"bounced": 1, "sent": 1}


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot"])
def test_421_ends_the_session_anywhere_and_the_mail_is_kept(step: str) -> None:
    bench = Bench()
    sink = bench.sink({step: b"421 4.3.2 going down\r\n"})
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(2)
    assert len(bench.lines(b"status=deferred", b"421 4.3.2 going down")) == 1
    assert b"may have been sent" not in bench.lines()[0]
    assert sink.connections[0].is_closed
    assert bench.count(Area.DEFERRED) == 1
