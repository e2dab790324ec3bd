"""Relays that misbehave at each step: nobody else is hurt, nothing is delivered or failed that was not."""

from __future__ import annotations

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
    "greeting silence": ({"greeting": Act.SILENCE}, "deferred", b"timed out"),
    "EHLO and HELO refused": ({"EHLO": b"550 no\r\n", "HELO": b"550 no\r\n"}, "deferred", b"host refused"),
    "EHLO refused alone": ({"EHLO": b"502 what\r\n"}, "sent", b"250 2.0.0 Ok"),
    "EHLO closes": ({"EHLO": Act.CLOSE}, "deferred", b"connection lost"),
    "EHLO silence": ({"EHLO": Act.SILENCE}, "deferred", b"timed out"),
    "MAIL 4xx": ({"MAIL": b"450 4.1.8 later\r\n"}, "deferred", b"(450 4.1.8 later)"),
    "MAIL 5xx": ({"MAIL": b"550 5.1.8 never\r\n"}, "bounced", b"(550 5.1.8 never)"),
    "MAIL closes": ({"MAIL": Act.CLOSE}, "deferred", b"before the reply to MAIL"),
    "MAIL silence": ({"MAIL": Act.SILENCE}, "deferred", b"timed out before the reply to MAIL"),
    "RCPT 4xx": ({"RCPT": b"450 4.2.0 later\r\n"}, "deferred", b"(450 4.2.0 later)"),
    "RCPT 5xx": ({"RCPT": b"550 5.1.1 never\r\n"}, "bounced", b"(550 5.1.1 never)"),
    "RCPT 5xx and 354": ({"RCPT": b"550 5.1.1 never\r\n", "DATA": b"354 go\r\n"}, "bounced", b"(550 5.1.1 never)"),
    "RCPT closes": ({"RCPT": Act.CLOSE}, "deferred", b"before the reply to RCPT"),
    "DATA 4xx": ({"DATA": b"451 4.3.0 later\r\n"}, "deferred", b"(451 4.3.0 later)"),
    "DATA 5xx": ({"DATA": b"554 5.5.0 never\r\n"}, "bounced", b"(554 5.5.0 never)"),
    "DATA closes": ({"DATA": Act.CLOSE}, "deferred", b"before the reply to RCPT or DATA"),
    "DATA silence": ({"DATA": Act.SILENCE}, "deferred", b"timed out"),
    "250 to DATA": ({"DATA": b"250 ok\r\n"}, "deferred", b"unexpected reply to DATA"),
    "DATA answered twice": ({"DATA": b"354 go\r\n250 ok\r\n"}, "deferred", b"came before its command"),
    "dot 4xx": ({"dot": b"450 4.7.1 later\r\n"}, "deferred", b"(450 4.7.1 later)"),
    "dot 5xx": ({"dot": b"554 5.7.1 spam\r\n"}, "bounced", b"(554 5.7.1 spam)"),
    "dot 299": ({"dot": b"299 fine\r\n"}, "sent", b"dsn=2.0.0, status=sent (299 fine)"),
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
    bench.run(700 if "silence" in name else 3, 0.5)
    assert sorted(good.acknowledged()) == [b"x@good.example", b"y@good.example"]
    (line,) = bench.lines(b"to=<r@bad.example>")
    assert b"status=%b " % status.encode() in line
    assert text in line
    assert line.isascii()
    assert line.decode().isprintable()
    assert (bad.acknowledged() == [b"r@bad.example"]) is (status == "sent")
    assert len(bad.received) <= 1
    assert bench.task.held == 0
    assert bench.count(Area.DEFERRED) == (status == "deferred")
    assert bench.count(Area.BOUNCES) == (status == "bounced")


def test_a_drip_of_a_reply_does_not_hold_a_session_beyond_its_time() -> None:
    def drip(sink: Sink) -> Action:
        sink.transport_of().write(b"250-")
        return Act.SILENCE

    bench = Bench()
    sink = bench.sink({"MAIL": drip})
    bench.put(b"r@b.example")
    bench.task.start()
    for _ in range(400):
        bench.run(1, 1)
        for connection in sink.connections:
            if not connection.is_closed:
                connection.transport_of().write(b"x")
    (line,) = bench.lines()
    assert b"timed out before the reply to MAIL" in line
    assert len(sink.connections) == 1
