"""What the log says of clients that are turned away or cut off, and how much of it there is."""

from __future__ import annotations

import attrs

from mailismus.observe.maillog import MemoryMailLog
from mailismus.smtp import replies
from mailismus.submit.ending import Ending, Endings
from tests.submit.fakes import SETTINGS, House

REJECT = b"NOQUEUE: reject: CONNECT from unknown[192.0.2.1]: 421 4.3.2 Too many connections, try again later; proto=SMTP"


def test_the_first_is_told_at_once_the_others_once_a_second_with_their_number() -> None:
    log = MemoryMailLog()
    endings = Endings(log, 2)
    for _ in range(1000):
        endings.note(Ending.FULL, "192.0.2.1", b"")
    assert log.lines == [REJECT]
    endings.tick()
    assert len(log.lines) == 1
    endings.tick()
    assert log.lines[1:] == [REJECT + b" (999 times)"]
    endings.note(Ending.FULL, "192.0.2.1", b"")
    endings.tick()
    assert len(log.lines) == 2
    endings.tick()
    assert log.lines[2:] == [REJECT]
    assert endings.count[Ending.FULL] == 1001


def test_a_minute_of_flood_is_at_most_a_line_a_second_of_each_kind() -> None:
    log = MemoryMailLog()
    endings = Endings(log, 4)
    for tick in range(240):
        for ending in Ending:
            for _ in range(tick % 7):
                endings.note(ending, "2001:db8::1", b"DATA")
        endings.tick()
    assert 60 <= len(log.lines) / len(Ending) <= 61
    assert sum(endings.count.values()) == len(Ending) * sum(tick % 7 for tick in range(240))


def test_after_a_rest_the_first_is_told_at_once_again() -> None:
    log = MemoryMailLog()
    endings = Endings(log, 1)
    for _ in range(3):
        endings.note(Ending.TIMED_OUT, "192.0.2.1", b"RCPT")
        endings.tick()
        endings.tick()
    assert log.lines == [b"timeout after RCPT from unknown[192.0.2.1]"] * 3


def test_the_line_says_where_it_was() -> None:
    house = House(attrs.evolve(SETTINGS, timeout_s=10.0))
    client = house.connect()
    client.say(b"EHLO c\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\n")
    house.tick(11)
    assert not client.is_open
    house.connect("2001:db8::5").say(b"XYZZY\r\n" * 8 + b"EHLO c\r\nMAIL FROM:<a@x.example>\r\n" + b"XYZZY\r\n" * 2)
    assert house.maillog.lines == [
        b"timeout after RCPT from unknown[127.0.0.1]",
        b"too many errors after MAIL from unknown[2001:db8::5]",
    ]


def test_every_last_word_is_a_reply_that_ends_a_session() -> None:
    for ending in Ending:
        assert not ending.reply or ending.reply.startswith((b"421 ", b"554 "))
        assert not ending.reply or ending.reply.endswith(b"\r\n")
    assert replies.is_closing(Ending.PEER_FULL.reply)
