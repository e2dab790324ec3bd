"""The commands `show` and `flush`, over files and over a running server with a real socket."""

from __future__ import annotations

import io
import sys

import pytest

from mailismus.queue.interface import Area
from mailismus.smtp.trace import received_opening
from tests.admin.samples import ListedQueue, bounced, deferred, incoming, message
from tests.admin.worlds import Running, World

ID = "0000000100000001"
NO_ID = "0000000100000009"
CONTENT = b"Received: from x\r\n\tby y\r\nSubject: hello\r\n\r\n..a dot\r\nend\r\n"
DELIVERED = b"Received: from x\r\n\tby y\r\nSubject: hello\r\n\r\n.a dot\r\nend\r\n"
NASTY = b"\x1b]0;x\x07\xc2\x9b2J\xe2\x80\xae@d.example"


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def filled(world: World) -> World:
    world.offline = ListedQueue(
        [message(1, deferred(1), bounced(3), count=3), message(2, incoming())],
        pieces={message(1).spool_id: [CONTENT[:40], CONTENT[40:]]},
    )
    return world


# Show, over files


def test_a_message_is_shown_with_envelope_recipients_and_header(filled: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert filled.run("queue", "show", ID) == 0
    lines = capsys.readouterr().out.splitlines()
    times = [line for line in lines if line.startswith(("arrival:", "next attempt:", "report due:"))]
    assert len(times) == 3
    assert [line for line in lines if line not in times] == [
        f"message:      {ID}",
        "sender:       <a@b.example>",
        "client:       192.0.2.7",
        "protocol:     -",
        "size:         2000 bytes",
        "content:      7BIT",
        "recipients:   3 in the envelope; still in the queue:",
        "",
        "recipient:    <c@d.example>",
        f"queue id:     {ID}-1",
        "area:         deferred",
        "attempts:     1",
        "last reply:   451 4.3.0 come back later",
        "host:         mx.example[192.0.2.1]:25",
        "",
        "recipient:    <c@d.example>",
        f"queue id:     {ID}-3",
        "area:         bounces",
        "attempts:     1",
        "last reply:   550 5.1.1 no such user",
        "host:         mx.example[192.0.2.1]:25",
        "",
        "Received: from x",
        "        by y",
        "Subject: hello",
    ]
    assert filled.offline.is_closed


@pytest.mark.parametrize(
    ("protocol", "tls", "shown"),
    [
        (b"SMTP", b"", "SMTP"),
        (b"ESMTP", b"", "ESMTP"),
        (b"ESMTPS", b"TLSv1.3 with cipher X (256 bits)", "ESMTPS, TLSv1.3 with cipher X (256 bits)"),
    ],
)
def test_it_is_told_how_a_message_came_in(
    world: World, capsys: pytest.CaptureFixture[str], protocol: bytes, tls: bytes, shown: str
) -> None:
    pieces = {message(number).spool_id: [traced(protocol, tls)] for number in (1, 2)}
    world.offline = ListedQueue([message(1, incoming()), message(2, incoming())], pieces=pieces)
    assert world.run("queue", "show", ID) == 0
    assert f"\nprotocol:     {shown}\n" in capsys.readouterr().out
    assert world.run("queue", "show", "0000000100000002") == 0
    assert "\nprotocol:     -\n" in capsys.readouterr().out, "the field was written for another message"


def traced(protocol: bytes, tls: bytes) -> bytes:
    """A message with the trace field of the first one."""
    opening = received_opening(b"c.example", b"[192.0.2.7]", b"mx.example", protocol, tls)
    return opening + ID.encode() + b";\r\n\tMon, 21 Sep 2026 14:13:20 +0000\r\nSubject: x\r\n\r\nx\r\n"


def test_one_recipient_is_shown_by_its_queue_id(filled: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert filled.run("queue", "show", f"{ID}-3") == 0
    out = capsys.readouterr().out
    assert out.count("queue id:") == 1
    assert "recipients:   3 in the envelope; the one asked for:\n" in out
    assert f"{ID}-3" in out
    assert "Subject: hello" in out


def test_the_body_goes_into_a_pipe_byte_for_byte(filled: World, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert filled.run("queue", "show", ID, "--body") == 0
    assert capfdbinary.readouterr().out == DELIVERED


def test_the_body_is_harmless_on_a_terminal(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.offline = ListedQueue(
        [message(1, deferred())], pieces={message(1).spool_id: [b"A: \x1b[2J\r\n", b"\r\n..\x07\r\n"]}
    )
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert filled.run("queue", "show", ID, "--body") == 0
    assert terminal.getvalue() == "A: \\x1b[2J\n\n.\\x07\n"


def test_a_very_long_header_is_cut_off_and_says_so(filled: World, capsys: pytest.CaptureFixture[str]) -> None:
    filled.offline = ListedQueue([message(1, deferred())], pieces={message(1).spool_id: [b"A: b\r\n"] * 20_000})
    assert filled.run("queue", "show", ID) == 0
    out = capsys.readouterr().out
    assert len(out) < 100_000
    assert out.endswith("(the header goes on: --body shows it all)\n")


@pytest.mark.parametrize(
    "words", [("0000000100000009",), (f"{ID}-2",), ("0000000100000009", "--body"), (f"{ID}-2", "--body")]
)
def test_what_is_not_in_the_queue_is_65(filled: World, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    status, text = filled.refusal("queue", "show", *words)
    assert status == 65
    assert text.startswith(f"{words[0]}: no such ")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("word", ["x", "sender=x", ID.lower() + "a", f"{ID}-0", "\x1b[2J"])
def test_what_is_no_id_is_refused_before_anything_is_opened(filled: World, word: str) -> None:
    with pytest.raises(SystemExit):
        filled.run("queue", "show", word)
    assert filled.opened == []


# Show, over a running server


def test_the_running_server_shows_a_message(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.put(b"c@d.example", NASTY, content=CONTENT, sender=NASTY)
    running.defer()
    assert world.run("queue", "show", ID) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert "sender:       <\\x1b]0;x\\x07\\x9b2J\\u202e@d.example>" in out
    assert "content:      8BITMIME" in out
    assert "protocol:     -\n" in out
    assert "attempts:     1" in out
    assert out.endswith("Subject: hello\n")
    assert world.opened == []
    running.put(b"c@d.example", content=traced(b"ESMTPS", b"TLSv1.3").replace(ID.encode(), b"0000000100000002"))
    assert world.run("queue", "show", "0000000100000002") == 0
    assert "\nprotocol:     ESMTPS, TLSv1.3\n" in capsys.readouterr().out


@pytest.mark.parametrize("size", [0, 1000, 100_000, 1_000_000])
def test_the_running_server_gives_the_body(
    world: World, running: Running, size: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    body = (bytes(range(256)) + b"\r\n..\r\n") * (size // 262)
    running.put(b"c@d.example", content=b"A: b\r\n\r\n" + body)
    assert world.run("queue", "show", ID, "--body") == 0
    assert capfdbinary.readouterr().out == b"A: b\r\n\r\n" + body.replace(b"\r\n..", b"\r\n.")


def test_a_message_with_many_recipients_is_shown_whole(
    world: World, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(*(b"%d@d.example" % number for number in range(1000)), content=b"A: b\r\n\r\n" + b"x" * 10**6)
    assert world.run("queue", "show", ID) == 0
    out = capsys.readouterr().out
    assert out.count("queue id:") == 1000
    assert out.count("message: ") == 1
    assert out.endswith("\nA: b\n")


def test_a_message_that_is_gone_is_65_with_a_server_too(world: World, running: Running) -> None:
    for words in ([ID], [ID, "--body"], [f"{ID}-1"]):
        assert world.refusal("queue", "show", *words)[0] == 65


# Flush


def test_flush_makes_deferred_entries_due(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.put(b"c@d.example", b"e@f.example")
    running.put(b"c@d.example")
    assert world.run("queue", "flush") == 0
    assert capsys.readouterr().out == "0 deferred entries are due now\n"
    running.defer()
    assert world.run("queue", "flush", "recipient=e@*") == 0
    assert capsys.readouterr().out == "1 deferred entry is due now\n"
    taken = running.do(lambda: running.queue.take(Area.DEFERRED, 10))
    assert [entry.recipient for one in taken for entry in one.entries] == [b"e@f.example"]
    assert world.run("queue", "flush", "0000000100000002") == 0
    assert capsys.readouterr().out == "1 deferred entry is due now\n"
    assert world.run("queue", "flush", "area=incoming") == 0
    assert capsys.readouterr().out == "0 deferred entries are due now: no deferred entry matches\n"


def test_flush_needs_the_running_server(world: World) -> None:
    status, text = world.refusal("queue", "flush")
    assert status == 69
    assert world.socket_path in text
    assert world.opened == []


def test_a_wrong_filter_flushes_nothing(world: World, running: Running) -> None:
    assert world.refusal("queue", "flush", "colour=red")[0] == 64
