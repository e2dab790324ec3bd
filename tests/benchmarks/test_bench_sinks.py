"""The sinks answer and write down what they should, in any mood."""

from __future__ import annotations

import asyncio
import io

from benchmarks.results.records import parse_broken, parse_deliveries
from benchmarks.sinks.encrypting import Counter, Dialogue
from benchmarks.sinks.flaky import Flaky, Mood, Weather
from benchmarks.sinks.recording import Recording
from benchmarks.sinks.refusing import Refusing, parse_refusals

HELLO = b"EHLO x\r\n"
MAIL = b"MAIL FROM:<s0.n7@a.example>\r\n"
RCPTS = b"RCPT TO:<r0.n7@b.example>\r\nRCPT TO:<r1.n7@b.example>\r\n"
WHOLE = b"DATA\r\nReceived: by us\r\n\r\nx\r\n.\r\n"


class Wire(asyncio.Transport):
    """What was written, and whether the stream was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def _codes(wire: Wire) -> list[bytes]:
    return [line[:3] for line in wire.written.splitlines() if line[3:4] == b" "]


def _weather(mood: Mood, lots: bool = True) -> Weather:
    async def make() -> Weather:
        return Weather(1)

    weather = asyncio.run(make())
    weather.mood = mood
    weather.rng.random = lambda: 0.0 if lots else 1.0  # type: ignore[method-assign]  # the lot falls on all, or on none
    return weather


def _talk(sink: Recording, *pieces: bytes) -> Wire:
    wire = Wire()
    sink.connection_made(wire)
    for piece in pieces:
        sink.data_received(piece)
    return wire


def test_a_message_is_taken_answered_and_recorded_without_its_trace_field() -> None:
    record = io.BytesIO()
    wire = _talk(Recording(record), HELLO, MAIL + RCPTS + WHOLE)
    assert _codes(wire) == [b"220", b"250", b"250", b"250", b"250", b"354", b"250"]
    (found,) = parse_deliveries(record.getvalue())
    assert (found.is_answered, found.recipients, found.size_bytes) == (True, (b"r0.n7@b.example", b"r1.n7@b.example"), 5)


def test_a_message_whose_answer_is_withheld_is_recorded_and_what_was_answered_before_goes_out() -> None:
    record, weather = io.BytesIO(), _weather(Mood.WELL)
    sink = Flaky(record, weather)
    wire = _talk(sink, HELLO)
    weather.mood = Mood.CLOSES_AT_DOTS
    sink.data_received(MAIL + RCPTS + WHOLE + MAIL)
    assert wire.ended
    assert _codes(wire) == [b"220", b"250", b"250", b"250", b"250", b"354"]
    sink.data_received(RCPTS + WHOLE)  # travelling behind: neither answered nor taken
    (found,) = parse_deliveries(record.getvalue())
    assert not found.is_answered


def test_a_refused_final_dot_is_answered_451_and_not_recorded() -> None:
    record = io.BytesIO()
    wire = _talk(Flaky(record, _weather(Mood.REFUSES_DOTS)), HELLO, MAIL + RCPTS + WHOLE)
    assert _codes(wire)[-1] == b"451"
    assert record.getvalue() == b""


def test_only_recipients_that_were_accepted_are_recorded() -> None:
    record, weather = io.BytesIO(), _weather(Mood.REFUSES_RECIPIENTS)
    sink = Flaky(record, weather)
    wire = _talk(sink, MAIL + b"RCPT TO:<r0.n7@b.example>\r\n")
    weather.mood = Mood.WELL
    sink.data_received(b"RCPT TO:<r1.n7@b.example>\r\n" + WHOLE)
    assert _codes(wire) == [b"220", b"250", b"451", b"250", b"354", b"250"]
    assert parse_deliveries(record.getvalue())[0].recipients == (b"r1.n7@b.example",)


def test_data_without_a_recipient_is_refused_and_begins_no_message() -> None:
    record = io.BytesIO()
    wire = _talk(Flaky(record, _weather(Mood.REFUSES_RECIPIENTS)), MAIL + RCPTS + b"DATA\r\nNOOP\r\n")
    assert _codes(wire) == [b"220", b"250", b"451", b"451", b"554", b"250"]


def test_a_421_greeting_ends_the_stream() -> None:
    wire = _talk(Flaky(io.BytesIO(), _weather(Mood.GREETS_421)), HELLO)
    assert _codes(wire) == [b"421"]
    assert wire.ended


def test_once_calm_a_flaky_sink_is_well_for_good() -> None:
    weather = _weather(Mood.CLOSED)
    weather.calm.set()
    weather.change()
    assert weather.mood is Mood.WELL
    weather.change()
    assert weather.mood.value == "well"


def test_the_refusing_sink_writes_down_each_recipient_it_refuses() -> None:
    record = io.BytesIO()
    wire = _talk(Refusing(record), MAIL + RCPTS)
    assert _codes(wire) == [b"220", b"250", b"451", b"451"]
    found = parse_refusals(record.getvalue())
    assert {entry: len(times) for entry, times in found.items()} == {(7, 0): 1, (7, 1): 1}


def test_a_transaction_that_its_peer_breaks_off_is_recorded_and_a_finished_one_is_not() -> None:
    for talk, found in (
        (MAIL + RCPTS, [2]),
        (MAIL + RCPTS + b"DATA\r\nbegun", [2]),
        (MAIL + RCPTS + b"RSET\r\n", []),
        (MAIL + RCPTS + WHOLE, []),
        (MAIL + RCPTS + WHOLE + b"QUIT\r\n", []),
        (HELLO, []),
    ):
        record = io.BytesIO()
        sink = Recording(record)
        _talk(sink, talk)
        sink.connection_lost(None)
        assert [broken.recipients for broken in parse_broken(record.getvalue())] == found, talk


def test_a_transaction_that_the_sink_itself_ends_is_not_broken_off() -> None:
    record, weather = io.BytesIO(), _weather(Mood.WELL)
    sink = Flaky(record, weather)
    _talk(sink, MAIL + RCPTS)
    sink.hang_up()
    sink.connection_lost(None)
    assert record.getvalue() == b""


def test_the_sink_with_tls_counts_whole_messages_however_the_bytes_are_cut() -> None:
    wire = MAIL + b"RCPT TO:<r@b.example>\r\nDATA\r\na\r\n..\r\n.b\r\n.\r\n" + MAIL + b"DATA\r\n.\r\nQUIT\r\n"
    for size in (1, 2, 3, 7, len(wire)):
        counter = Counter()
        dialogue = Dialogue(counter)
        replies = b"".join(dialogue.receive(wire[at : at + size]) for at in range(0, len(wire), size))
        assert [line[:3] for line in replies.splitlines()] == [
            b"250",
            b"250",
            b"354",
            b"250",
            b"250",
            b"354",
            b"250",
            b"221",
        ]
        assert (counter.messages, counter.quits, dialogue.is_over) == (2, 1, True)
        assert counter.line() == "sess=0 quit=1 full=0 resumed=0 mesg=2\r"


def test_the_sink_with_tls_forgets_what_came_before_it() -> None:
    dialogue = Dialogue(Counter())
    assert b"250 STARTTLS\r\n" in dialogue.receive(HELLO)
    assert dialogue.receive(b"STARTTLS\r\nMAIL") == b"220 2.0.0 Ready\r\n"
    assert dialogue.wants_tls
    dialogue.begin_tls()
    assert b"STARTTLS" not in dialogue.receive(HELLO)
