"""Addresses and headers in UTF-8, for hosts with SMTPUTF8 and without."""

from __future__ import annotations

from typing import Any

import pytest

from mailismus.config.values.settings import EightBit
from mailismus.deliver.jobs.smtputf8 import needs_utf8, to_ascii_envelope
from mailismus.mail.envelope import Envelope
from mailismus.mail.utf8 import ADDRESS_WORDS, HEADER_WORDS
from mailismus.queue.interface import Area
from tests.deliver.harness import CONTENT, Bench
from tests.fakes.managing import accept

UTF8 = {"EHLO": b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n"}
EIGHTBIT = {"EHLO": b"250-sink\r\n250 8BITMIME\r\n"}
PLAIN = {"EHLO": b"250 sink\r\n"}
JOERG, UMLAUT = "jörg@bücher.example".encode(), "joe@bücher.example".encode()
ASCII = b"joe@xn--bcher-kva.example"
HEADER = "Received: by test\r\nSubject: Grüße\r\n\r\nx\r\n".encode()


def put(
    bench: Bench,
    *recipients: bytes,
    sender: bytes = b"s@a.example",
    content: bytes = CONTENT,
    words: bytes | None = ADDRESS_WORDS,
) -> None:
    draft = bench.queue.draft()
    draft.write(content)
    accept(bench.queue, draft, Envelope(sender, recipients, eightbit=not content.isascii(), words=words))


def commands_of(script: dict[str, bytes], *puts: tuple[tuple[bytes, ...], dict[str, Any]]) -> tuple[Bench, list[bytes]]:
    """A session with such a host: the bench, and its commands MAIL and RCPT."""
    bench = Bench(maxserverconnections=1)
    sink = bench.sink({**script})
    for recipients, options in puts:
        put(bench, *recipients, **options)
    bench.task.start()
    bench.run(3)
    assert bench.task.held == 0
    return bench, [line for line in sink.connections[0].commands if line[:4] in (b"MAIL", b"RCPT")]


def test_a_host_with_smtputf8_is_asked_for_it_where_it_is_needed_and_gets_what_was_written() -> None:
    bench, commands = commands_of(
        UTF8,
        ((JOERG,), {}),
        ((UMLAUT,), {}),
        ((b"r@b.example",), {"sender": JOERG}),
        ((b"h@b.example",), {"content": HEADER, "words": HEADER_WORDS}),
        ((b"n@b.example",), {"words": ADDRESS_WORDS}),
    )
    assert bench.statuses() == {"sent": 5}
    assert commands == [
        *(b"MAIL FROM:<s@a.example> SMTPUTF8", b"RCPT TO:<%b>" % JOERG),
        *(b"MAIL FROM:<s@a.example> SMTPUTF8", b"RCPT TO:<%b>" % UMLAUT),
        *(b"MAIL FROM:<%b> SMTPUTF8" % JOERG, b"RCPT TO:<r@b.example>"),
        *(b"MAIL FROM:<s@a.example> BODY=8BITMIME SMTPUTF8", b"RCPT TO:<h@b.example>"),
        *(b"MAIL FROM:<s@a.example>", b"RCPT TO:<n@b.example>"),
    ]


@pytest.mark.parametrize("script", [EIGHTBIT, PLAIN])
def test_a_host_without_it_gets_a_labels(script: dict[str, bytes]) -> None:
    bench, commands = commands_of(script, ((UMLAUT, b"r@b.example"), {"sender": UMLAUT}))
    assert bench.statuses() == {"sent": 2}
    assert commands == [b"MAIL FROM:<%b>" % ASCII, b"RCPT TO:<%b>" % ASCII, b"RCPT TO:<r@b.example>"]


@pytest.mark.parametrize("script", [EIGHTBIT, PLAIN])
def test_local_parts_in_utf_8_fail_there_and_other_recipients_go_on(script: dict[str, bytes]) -> None:
    bench, commands = commands_of(script, ((JOERG, b"r@b.example", JOERG.upper(), UMLAUT), {}), ((JOERG,), {}))
    assert commands == [b"MAIL FROM:<s@a.example>", b"RCPT TO:<r@b.example>", b"RCPT TO:<%b>" % ASCII]
    assert bench.statuses() == {"sent": 2, "bounced": 3}
    said = b"dsn=5.6.7, status=bounced (553 5.6.7 this address is in UTF-8, and this host does not offer SMTPUTF8)"
    assert len(bench.lines(said, b"relay=192.0.2.1[192.0.2.1]:25, ", b"to=<j\\xc3\\xb6rg@b\\xc3\\xbccher.example>")) == 2
    assert bench.count(Area.BOUNCES) == 3


@pytest.mark.parametrize("script", [EIGHTBIT, PLAIN])
def test_a_sender_or_a_header_in_utf_8_fails_there_for_all(script: dict[str, bytes]) -> None:
    bench, commands = commands_of(
        script,
        ((b"r@b.example", b"s@b.example"), {"sender": JOERG}),
        ((b"t@b.example", UMLAUT), {"content": HEADER, "words": HEADER_WORDS}),
    )
    assert commands == []
    assert bench.statuses() == {"bounced": 4}
    assert len(bench.lines(b"553 5.6.7 the sender's address is in UTF-8, and this host does not offer SMTPUTF8")) == 2
    assert len(bench.lines(b"550 5.6.9 the message has a header in UTF-8, and this host does not offer SMTPUTF8")) == 2


def test_a_header_that_was_not_declared_goes_as_it_is() -> None:
    bench, commands = commands_of(EIGHTBIT, ((b"r@b.example",), {"content": HEADER, "words": None}))
    assert bench.statuses() == {"sent": 1}
    assert commands[0] == b"MAIL FROM:<s@a.example> BODY=8BITMIME"


def test_a_host_with_smtputf8_takes_8_bit_content_even_if_it_does_not_say_so() -> None:
    bench = Bench(client_eightbit=EightBit.CONVERT)
    sink = bench.sink({"EHLO": b"250-sink\r\n250 SMTPUTF8\r\n"})
    bench.put(b"r@b.example", content=HEADER)
    bench.task.start()
    bench.run(1)
    assert [received.content for received in sink.received] == [HEADER]


def test_the_next_host_gets_the_addresses_as_they_were_written() -> None:
    bench = Bench(has_relay=False)
    bench.names.mx("xn--bcher-kva.example", (10, "one.example", "192.0.2.1"), (20, "two.example", "192.0.2.2"))
    first = bench.sink({**PLAIN, "DATA": b"421 4.3.2 no\r\n"}, "192.0.2.1")
    second = bench.sink({**UTF8}, "192.0.2.2")
    put(bench, UMLAUT, sender=UMLAUT)
    bench.task.start()
    bench.run(5)
    assert first.connections[0].commands[1:3] == [b"MAIL FROM:<%b>" % ASCII, b"RCPT TO:<%b>" % ASCII]
    assert second.connections[0].commands[1:3] == [b"MAIL FROM:<%b> SMTPUTF8" % UMLAUT, b"RCPT TO:<%b>" % UMLAUT]
    assert bench.statuses() == {"sent": 1}


def test_a_domain_that_can_be_none_fails() -> None:
    bench = Bench(has_relay=False)
    put(bench, b"joe@b\xff.example")
    bench.task.start()
    bench.run(1)
    assert bench.lines(b"status=bounced (550 5.1.2 the domain of the address can't be one)")


def test_what_needs_it() -> None:
    assert not needs_utf8(None, b"", [b"a@b.example"])
    assert needs_utf8(None, b"", [b"a@b.example", JOERG])  # mail that came without it, and that an act redirected
    assert not needs_utf8(b"X=Y", b"", [b"a@b.example"])
    assert to_ascii_envelope(ADDRESS_WORDS, b"", [UMLAUT, JOERG, b"x@b.example"]) == (b"", [ASCII, None, b"x@b.example"])
