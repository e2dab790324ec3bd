"""A plain file of recipients: what is told of it without an object for each line is what is told with them."""

from __future__ import annotations

import zlib

import attrs
import pytest

from mailismus.mail.attempts import DEFERRED, PastAttempt, with_attempt
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.chunk.format.files import read_lines
from mailismus.queue.providers.chunk.format.line import format_chunk_lines
from mailismus.queue.providers.chunk.index.plain import plain_facts
from mailismus.queue.providers.chunk.index.resting import facts_of
from mailismus.queue.providers.chunk.index.rows import RestingFacts

MESSAGE = Message(SpoolId(0x10000002A), b"a%b@from.example", b"192.0.2.1", True, 1_700_000_000.0, 5000, 9, [])
REPLY = Reply(451, b"4.4.1", b"connect failed: try again")
ENTRY = Entry(1, b"sue@a.example", Area.DEFERRED, 1_700_000_400.25, 2, REPLY, b"mx[192.0.2.9]:25")


def lines(*entries: Entry, message: Message = MESSAGE) -> list[bytes]:
    return format_chunk_lines(message, entries)


def by_lines(data: bytes) -> RestingFacts:
    read = read_lines(data)
    assert not read.bad
    assert not read.torn_bytes
    last = {one.entry.number: one for one in read.lines}
    live = [one for one in last.values() if not one.is_done]
    return facts_of(live[-1].message, 77, [one.entry for one in live], 0, is_new=False)


def done(line: bytes) -> bytes:
    return b"x" + line[1:]


def again(body: bytes) -> bytes:
    return b" %b %08x\n" % (body, zlib.crc32(body))


SECOND = attrs.evolve(ENTRY, number=2, due_at=1_700_000_100.0, attempts=0, reply=None, host=b"-", area=Area.HELD)
TRIED = with_attempt(None, PastAttempt(1, 1_700_000_000, DEFERRED, 400, b"may", b"mx", 451, b"4.4.1", b"later: \xe4, %"))
PLAIN = {
    "one": lines(ENTRY),
    "one that was retried": [*lines(attrs.evolve(ENTRY, due_at=1.0)), *lines(ENTRY)],
    "two of several times and areas": lines(ENTRY, SECOND),
    "two, and one is done": [lines(ENTRY)[0], done(lines(SECOND)[0])],
    "one that was done, and is not": [done(lines(ENTRY)[0]), *lines(ENTRY)],
    "no sender": lines(ENTRY, message=attrs.evolve(MESSAGE, sender=b"", eightbit=False)),
    "one that was tried": lines(attrs.evolve(ENTRY, words=TRIED)),
    "words of the message and of two recipients": lines(
        attrs.evolve(ENTRY, words=TRIED), SECOND, message=attrs.evolve(MESSAGE, words=b"ENVID=x%20y RET=HDRS")
    ),
    "a hundred": lines(*(attrs.evolve(ENTRY, number=number, due_at=1e9 + number / 7) for number in range(1, 101))),
}


@pytest.mark.parametrize("name", PLAIN)
def test_it_tells_what_the_lines_tell(name: str) -> None:
    data = b"".join(PLAIN[name])
    assert plain_facts(data, 77) == by_lines(data)


LINE = lines(ENTRY)[0]
NOT_PLAIN = {
    "nothing": b"",
    "all are done": done(LINE),
    "the last line says that he is done": LINE + done(LINE),
    "a torn line": LINE + b" DA 0000",
    "a byte that was torn": b"?" + LINE[1:],
    "a line that does not check": LINE.replace(b"sue", b"sua") + LINE,
    "a line that ends another entry": LINE + again(b"E 0000000100000001-1"),
    "counted dots": lines(ENTRY, message=attrs.evolve(MESSAGE, stuffed_dots=3))[0],
    "an id that is none": again(LINE[1:-10].replace(b"A 0000", b"A 8000")),
    "a recipient of number 0": again(LINE[1:-10].replace(b" 1/9 ", b" 0/9 ")),
    "a time beyond all times": again(LINE[1:-10].replace(b"1700000400250", b"1700000400250000")),
    "a code that is none": again(LINE[1:-10].replace(b" 451 ", b" 4x1 ")),
    "words that are none": again(LINE[1:-10] + b" KEY=VALUE OTHER"),
    "words of a recipient before those of a message": again(LINE[1:-10] + b" key=value KEY=VALUE"),
    "words that were changed": LINE[:-10] + b" KEY=VALUE" + LINE[-10:],
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_what_is_out_of_the_ordinary_is_looked_at_closely(name: str) -> None:
    assert plain_facts(NOT_PLAIN[name], 77) is None
