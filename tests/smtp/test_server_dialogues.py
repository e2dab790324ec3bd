"""The server's engine: dialogues as tables, fed whole, byte by byte and cut at random."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import (
    FORGIVEN,
    MAX_IDLE_COMMANDS,
    MAX_LINE,
    MAX_PUT_OFF,
    MAX_REFUSED,
    MAX_REPLIES,
    ServerLimits,
)
from mailismus.smtp.server.state import ServerState

HELLO = b"250 mx.example\r\n"
ACCEPTED = b"250 2.0.0 Ok: queued as 0000000000000001\r\n"


@attrs.define
class Recorder:
    """A receiver that takes everything but what `refuses` names, at once or (`is_slow`) only when asked for its answers."""

    is_slow: bool = False
    refuses: dict[bytes, bytes] = attrs.Factory(dict)
    events: list[tuple[object, ...]] = attrs.Factory(list)
    pending: list[bytes] = attrs.Factory(list)
    content: bytes = b""
    stuffed_dots: int = 0
    is_blocking: bool = False

    def say(self, event: tuple[object, ...], key: bytes, reply: bytes) -> bytes | None:
        self.events.append(event)
        reply = self.refuses.get(key, reply)
        if self.is_slow:
            assert not self.pending, "a second question while one is open"
            self.pending.append(reply)
            return None
        return reply

    def greet(self, name: bytes, protocol: bytes) -> None:
        self.events.append(("greet", name, protocol))

    def check_sender(self, sender: bytes, size_bytes: int, eightbit: bool, utf8: bool) -> bytes | None:
        declared = (eightbit, utf8) if utf8 else (eightbit,)
        return self.say(("sender", sender, size_bytes, *declared), sender, replies.SENDER_OK)

    def check_recipient(self, recipient: bytes) -> bytes | None:
        return self.say(("recipient", recipient), recipient, replies.RECIPIENT_OK)

    def begin_content(self) -> bytes | None:
        self.content = b""
        return self.say(("begin",), b"DATA", replies.START_CONTENT)

    def add_content(self, piece: bytes) -> bool:
        assert piece
        self.content += piece
        if self.is_blocking:
            assert not self.pending
            self.pending.append(b"")
        return not self.is_blocking

    def end_content(self, stuffed_dots: int) -> bytes | None:
        self.stuffed_dots = stuffed_dots
        return self.say(("end", self.content), b"END", ACCEPTED)

    def refuse_content(self, reply: bytes) -> None:
        self.events.append(("refuse", reply))

    def reset(self) -> None:
        if self.events[-1:] != [("reset",)]:
            self.events.append(("reset",))


def run(
    pieces: list[bytes], receiver: Recorder | None = None, max_size: int = 1000, max_errors: int = 10
) -> tuple[bytes, Recorder, ServerEngine]:
    receiver = receiver or Recorder()
    server = ServerEngine(ServerLimits(b"mx.example", max_size, max_errors), receiver)
    out = b""
    for piece in pieces:
        out += server.receive(piece)
        while receiver.pending or server.has_more:
            out += server.answer(receiver.pending.pop()) if receiver.pending else server.receive(b"")
    return out, receiver, server


MAIL = b"HELO c\r\nMAIL FROM:<a@x>\r\n"
RCPT = MAIL + b"RCPT TO:<b@y>\r\n"
DATA = RCPT + b"DATA\r\n"
R_MAIL = HELLO + replies.SENDER_OK
R_RCPT = R_MAIL + replies.RECIPIENT_OK
R_DATA = R_RCPT + replies.START_CONTENT

DIALOGUES: dict[str, tuple[bytes, bytes]] = {
    "a message is taken": (DATA + b"x\r\n.\r\nQUIT\r\n", R_DATA + ACCEPTED + replies.BYE),
    "two messages are taken": (
        DATA + b"x\r\n.\r\n" + RCPT[8:] + b"DATA\r\n.\r\n",
        R_DATA + ACCEPTED + R_DATA[len(HELLO) :] + ACCEPTED,
    ),
    "verbs have no case": (b"ehLo c\r\nnoop\r\nrSeT\r\nquit\r\n", b"<EHLO>" + replies.OK * 2 + replies.BYE),
    "trailing blanks are tolerated": (b"HELO c \r\nRSET \r\nNOOP \r\nQUIT  \r\n", HELLO + replies.OK * 2 + replies.BYE),
    "NOOP takes an argument": (b"NOOP anything at all\r\n", replies.OK),
    "VRFY verifies nobody": (b"VRFY joe\r\nVRFY\r\n", replies.CANNOT_VERIFY + replies.BAD_ARGUMENT),
    "HELP helps": (b"HELP\r\nHELP MAIL\r\n", replies.HELP * 2),
    "MAIL needs HELO": (b"MAIL FROM:<a@x>\r\n", replies.BAD_SEQUENCE),
    "RCPT needs HELO": (b"RCPT TO:<a@x>\r\n", replies.BAD_SEQUENCE),
    "RCPT needs MAIL": (b"HELO c\r\nRCPT TO:<a@x>\r\n", HELLO + replies.BAD_SEQUENCE),
    "DATA needs MAIL": (b"HELO c\r\nDATA\r\n", HELLO + replies.BAD_SEQUENCE),
    "DATA needs RCPT": (MAIL + b"DATA\r\n", R_MAIL + replies.NO_RECIPIENTS),
    "DATA has no argument": (RCPT + b"DATA x\r\n", R_RCPT + replies.BAD_ARGUMENT),
    "MAIL is not nested": (MAIL + b"MAIL FROM:<c@z>\r\n", R_MAIL + replies.BAD_SEQUENCE),
    "RSET ends a transaction": (RCPT + b"RSET\r\nDATA\r\n", R_RCPT + replies.OK + replies.BAD_SEQUENCE),
    "HELO ends a transaction": (RCPT + b"HELO c\r\nDATA\r\n", R_RCPT + HELLO + replies.BAD_SEQUENCE),
    "a bad HELO ends nothing": (RCPT + b"HELO\r\nDATA\r\n", R_RCPT + replies.BAD_ARGUMENT + replies.START_CONTENT),
    "the envelope is gone behind the dot": (
        DATA + b".\r\nRCPT TO:<b@y>\r\nDATA\r\n",
        R_DATA + ACCEPTED + replies.BAD_SEQUENCE * 2,
    ),
    "what is not offered is not implemented": (
        b"EXPN list\r\nETRN x\r\nTURN\r\nAUTH PLAIN xx\r\nSTARTTLS\r\nBDAT 5 LAST\r\n",
        replies.NOT_IMPLEMENTED * 6,
    ),
    "an unknown verb is told": (b"XYZZY\r\n\r\n MAIL\r\nMAIL\tFROM:<a@x>\r\n", replies.UNKNOWN_COMMAND * 4),
    "a verb must be whole": (b"QUITX\r\nDATAX\r\nNOOPX\r\nHELOX c\r\n", replies.UNKNOWN_COMMAND * 4),
    "a bare LF in a command": (b"NOOP\nNOOP\r\n", replies.BAD_BYTES),
    "a bare LF ends no line": (b"QUIT\nNOOP\n\r\n", replies.BAD_BYTES),
    "a bare CR in a command": (b"NOOP \r \r\nNOOP\r\r\n", replies.BAD_BYTES * 2),
    "a NUL in a command": (b"NOOP\0\r\nNOOP \0\r\nRSET\0\r\n\0\r\n", replies.BAD_BYTES * 4),
    "bad bytes in each command": (
        b"HELO c\nd\r\nVRFY \n\r\nHELP \r \r\nQUIT \n\r\nRSET \n\r\nBDAT \n\r\nDATA \n\r\n",
        replies.BAD_BYTES * 7,
    ),
    "commands behind a refused DATA are commands": (
        MAIL + b"DATA\r\nRCPT TO:<b@y>\r\n.\r\nQUIT\r\n",
        R_MAIL + replies.NO_RECIPIENTS + replies.RECIPIENT_OK + replies.UNKNOWN_COMMAND + replies.BYE,
    ),
    "a bare LF makes the message refused at its true end": (
        DATA + b"x\n.\nMAIL FROM:<e@v>\r\n.\r\nNOOP\r\n",
        R_DATA + replies.BARE_BYTES + replies.OK,
    ),
    "a bare CR too": (DATA + b"x\r.\r\n.\r\nNOOP\r\n", R_DATA + replies.BARE_BYTES + replies.OK),
    "a NUL too": (DATA + b"x\0y\r\n.\r\nNOOP\r\n", R_DATA + replies.BARE_BYTES + replies.OK),
    "CR CR LF before the dot is no end": (
        DATA + b"x\r\r\n.\r\r\nQUIT\r\n.\r\nNOOP\r\n",
        R_DATA + replies.BARE_BYTES + replies.OK,
    ),
    "too much is refused at its true end": (
        DATA + b"0123456789\r\n" * 200 + b".\r\nNOOP\r\n",
        R_DATA + replies.TOO_LARGE + replies.OK,
    ),
    "behind QUIT nothing is looked at": (b"QUIT\r\nNOOP\r\n", replies.BYE),
    "a bad address is told": (
        b"HELO c\r\nMAIL FROM:<a@@x>\r\nMAIL FROM:<a@x>\r\nRCPT TO:<b\r\n",
        HELLO + replies.BAD_SENDER + replies.SENDER_OK + replies.BAD_RECIPIENT,
    ),
    "an unknown parameter is told": (
        b"HELO c\r\nMAIL FROM:<a@x> X=1\r\n",
        HELLO + replies.UNKNOWN_PARAMETER,
    ),
    "an endless line is refused at its end": (
        b"NOOP " + b"x" * 3 * MAX_LINE + b"\r\nNOOP\r\n",
        replies.LINE_TOO_LONG + replies.OK,
    ),
    "the longest line is well": (b"NOOP " + b"x" * (MAX_LINE - 5) + b"\r\n", replies.OK),
}
EHLO = b"250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES\r\n"


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("name", DIALOGUES)
def test_a_dialogue_fed_whole_and_byte_by_byte(name: str, is_slow: bool) -> None:
    wire, expected = DIALOGUES[name]
    expected = expected.replace(b"<EHLO>", EHLO)
    whole, receiver, _ = run([wire], Recorder(is_slow))
    assert whole == expected
    bytewise, other, _ = run([bytes([byte]) for byte in wire], Recorder(is_slow))
    assert bytewise == expected
    assert other.events == receiver.events


@given(st.sampled_from(sorted(DIALOGUES)), st.lists(st.integers(0, 10000), max_size=6), st.booleans(), st.booleans())
def test_a_dialogue_cut_at_random(name: str, places: list[int], is_slow: bool, is_blocking: bool) -> None:
    wire, expected = DIALOGUES[name]
    edges = [0, *sorted({place % (len(wire) + 1) for place in places}), len(wire)]
    pieces = [wire[a:b] for a, b in itertools.pairwise(edges) if a < b]
    out, receiver, _ = run(pieces, Recorder(is_slow, is_blocking=is_blocking))
    assert out == expected.replace(b"<EHLO>", EHLO)
    assert receiver.events == run([wire])[1].events


@given(st.lists(st.sampled_from([b"\r\n", b".\r\n", b"x", b"\n", b"\r", b"\0", *RCPT.splitlines(True), b"DATA\r\n"])))
def test_no_bytes_break_the_engine_and_each_line_has_one_reply(parts: list[bytes]) -> None:
    whole = run([b"".join(parts)], max_errors=0)
    bytewise = run([bytes([byte]) for byte in b"".join(parts)], max_errors=0)
    assert (whole[0], whole[1].events) == (bytewise[0], bytewise[1].events)


def test_the_receiver_is_told_of_a_transaction_in_order() -> None:
    wire = (
        b"EHLO c\r\nMAIL FROM:<a@x> SIZE=9 BODY=8BITMIME\r\nRCPT TO:<b@y>\r\nRCPT TO:<c@y>\r\nDATA\r\n..x\r\n.\r\nQUIT\r\n"
    )
    _, receiver, server = run([wire])
    assert receiver.events == [
        ("reset",),
        ("greet", b"c", b"ESMTP"),
        ("sender", b"a@x", 9, True),
        ("recipient", b"b@y"),
        ("recipient", b"c@y"),
        ("begin",),
        ("end", b"..x\r\n"),
        ("reset",),
    ]
    assert server.state is ServerState.CLOSED


@pytest.mark.parametrize(
    ("content", "reply"),
    [(b"x\ny\r\n", replies.BARE_BYTES), (b"x" * 999 + b"\r\n", replies.TOO_LARGE)],
)
def test_refused_content_is_told_once_and_never_ends_a_message(content: bytes, reply: bytes) -> None:
    _, receiver, _ = run([DATA, content, b"more\r\n" * 500, b".\r\n"])
    assert receiver.events[-2:] == [("begin",), ("refuse", reply)]
    assert len(receiver.content) <= 1000


def test_content_of_just_the_greatest_size_is_taken() -> None:
    assert run([DATA + b"x" * 998 + b"\r\n.\r\n"])[0] == R_DATA + ACCEPTED
    assert run([DATA + b"x" * 5000 + b"\r\n.\r\n"], max_size=0)[0] == R_DATA + ACCEPTED


@pytest.mark.parametrize("piece_size", [1, 7, 10_000])
def test_the_size_of_a_message_does_not_count_doubled_dots(piece_size: int) -> None:
    for more, reply in ((b"x\r\n", ACCEPTED), (b"xy\r\n", replies.TOO_LARGE)):
        wire = DATA + b"..\r\n" * 332 + b".." + more + b".\r\n"
        assert len(wire) - len(DATA) - 3 > 1000
        out, receiver, server = run([wire[at : at + piece_size] for at in range(0, len(wire), piece_size)])
        assert out == R_DATA + reply
        assert server.wire_bytes == len(wire) - len(DATA) - 3
        assert (receiver.stuffed_dots == 333) == (reply == ACCEPTED)


def test_while_a_question_is_open_nothing_behind_it_is_looked_at() -> None:
    receiver = Recorder(is_slow=True)
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 10), receiver)
    assert server.receive(b"HELO c\r\nMAIL FROM:<a@x>\r\nXYZZY\r\n") == HELLO
    assert server.is_asking
    assert server.receive(b"NOOP\r\n") == b""
    assert server.answer(replies.SENDER_OK) == replies.SENDER_OK + replies.UNKNOWN_COMMAND + replies.OK
    assert not server.is_asking


def test_it_is_ready_while_nothing_but_bytes_of_the_client_is_waited_for() -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 0), Recorder())
    for part in (b"HELO c\r\n", b"MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\n", b"DATA\r\n", b"body\r\n", b".\r\n"):
        assert server.is_ready
        server.receive(part)
    assert server.is_ready
    server.receive(b"NO")
    assert not server.is_ready  # bytes are kept
    server.receive(b"OP\r\n")
    assert server.is_ready
    server.receive(b"x" * 4096)
    assert not server.is_ready  # a line is discarded
    server.receive(b"\r\n")
    assert server.is_ready
    server.receive(b"NOOP\r\n" * 300)
    assert (server.is_ready, server.has_more) == (False, True)
    server.receive(b"")
    assert server.is_ready
    server.receive(b"QUIT\r\n")
    assert not server.is_ready
    slow = ServerEngine(ServerLimits(b"mx.example", 1000, 10), Recorder(is_slow=True))
    slow.receive(b"HELO c\r\nMAIL FROM:<a@x>\r\n")
    assert not slow.is_ready  # a question is open
    slow.answer(replies.SENDER_OK)
    assert slow.is_ready


def test_what_waits_for_an_answer_shows_when_it_is_too_much() -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 10), Recorder(is_slow=True))
    server.receive(MAIL)
    assert not server.is_congested
    for _ in range(5):
        server.receive(b"NOOP\r\n" * 4000)
    assert server.is_congested


def test_an_endless_line_takes_no_memory() -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 10), Recorder())
    for _ in range(100):
        assert server.receive(b"x" * 65536) == b""
        assert len(server._rest) <= MAX_LINE + 1
    assert server.receive(b"\r") == b""
    assert server.receive(b"\n") == replies.LINE_TOO_LONG


def test_errors_are_counted_in_all_and_the_last_one_closes() -> None:
    out, _, server = run([b"XYZZY\r\nNOOP\r\n" * 9], max_errors=10)
    assert out == (replies.UNKNOWN_COMMAND + replies.OK) * 9
    out += server.receive(b"DATA\r\nNOOP\r\n")
    assert out.endswith(replies.BAD_SEQUENCE + replies.TOO_MANY_ERRORS)
    assert server.state is ServerState.CLOSED
    assert server.receive(b"NOOP\r\n") == b""


def test_an_error_in_a_transaction_that_closes_tells_the_receiver() -> None:
    _, receiver, _ = run([RCPT + b"XYZZY\r\n"], max_errors=1)
    assert receiver.events[-1] == ("reset",)


def test_commands_that_move_no_mail_become_errors() -> None:
    out, _, server = run([b"NOOP\r\n" * (MAX_IDLE_COMMANDS + 20)], max_errors=10)
    assert out == replies.OK * (MAX_IDLE_COMMANDS + 10) + replies.TOO_MANY_ERRORS
    assert server.state is ServerState.CLOSED


@pytest.mark.parametrize("is_slow", [False, True])
def test_who_tries_out_recipients_is_sent_away(is_slow: bool) -> None:
    refusing = Recorder(is_slow=is_slow, refuses={b"b@y": replies.UNKNOWN_USER})
    out, _, server = run([MAIL + b"RCPT TO:<b@y>\r\n" * (MAX_REFUSED + 20)], refusing, max_errors=10)
    assert server.state is ServerState.CLOSED
    assert out == R_MAIL + replies.UNKNOWN_USER * (MAX_REFUSED + 10) + replies.TOO_MANY_ERRORS


def test_who_tries_out_recipients_gains_little_by_messages_between_them() -> None:
    refusing = Recorder(refuses={b"b@y": replies.UNKNOWN_USER})
    guesses = MAX_REFUSED + FORGIVEN
    round_ = MAIL[len(b"HELO c\r\n") :] + b"RCPT TO:<b@y>\r\n" * guesses + b"RCPT TO:<c@y>\r\nDATA\r\n.\r\n"
    out, _, server = run([b"HELO c\r\n", *[round_] * 3], refusing, max_errors=30)
    assert server.state is ServerState.CLOSED
    assert out.count(replies.UNKNOWN_USER) == guesses + 20  # ten errors, a message, twenty errors


def test_some_unknown_recipients_in_every_message_are_no_error() -> None:
    refusing = Recorder(refuses={b"b@y": replies.UNKNOWN_USER})
    round_ = MAIL[len(b"HELO c\r\n") :] + b"RCPT TO:<b@y>\r\n" * FORGIVEN + b"RCPT TO:<c@y>\r\nDATA\r\n.\r\n"
    _, _, server = run([b"HELO c\r\n", *[round_] * 50], refusing, max_errors=1)
    assert server.state is ServerState.GREETED


def test_relay_clients_may_ask_for_any_number_of_users_that_there_are_not() -> None:
    refusing = Recorder(refuses={b"b@y": replies.UNKNOWN_USER})
    server = ServerEngine(ServerLimits(b"mx.example", 0, 1, max_refused=0), refusing)
    server.receive(MAIL)
    for _ in range(10 * MAX_REFUSED):
        assert server.receive(b"RCPT TO:<b@y>\r\n") == replies.UNKNOWN_USER


def test_refusals_for_now_without_end_are_errors() -> None:
    refusing = Recorder(refuses={b"c@z": replies.TOO_MANY_RECIPIENTS})
    server = ServerEngine(ServerLimits(b"mx.example", 0, 1), refusing)
    server.receive(RCPT)
    for _ in range(MAX_PUT_OFF):
        assert server.receive(b"RCPT TO:<c@z>\r\n") == replies.TOO_MANY_RECIPIENTS
    assert server.receive(b"RCPT TO:<c@z>\r\n").endswith(replies.TOO_MANY_ERRORS)


def test_recipients_refused_for_now_are_no_error() -> None:
    refusing = Recorder(refuses={b"c@z": replies.TOO_MANY_RECIPIENTS})
    _, _, server = run([RCPT + b"RCPT TO:<c@z>\r\n" * (MAX_IDLE_COMMANDS + 20)], refusing, max_errors=10)
    assert server.state is ServerState.RECIPIENTS


def test_a_message_taken_makes_room_for_more_of_them() -> None:
    transaction = b"RSET\r\n" + RCPT[8:] + b"DATA\r\n.\r\n"
    out, _, server = run([b"HELO c\r\n"] + [transaction] * (MAX_IDLE_COMMANDS + 20))
    assert replies.TOO_MANY_ERRORS not in out
    assert server.state is ServerState.GREETED


def test_what_a_pipelining_client_sent_behind_a_refusal_is_no_error() -> None:
    refused = Recorder(refuses={b"a@x": replies.TOO_LARGE, b"b@y": replies.UNKNOWN_USER})
    out, _, _ = run([MAIL + b"RCPT TO:<b@y>\r\n" * 50 + b"DATA\r\nMAIL FROM:<c@x>\r\n"], refused)
    assert out == HELLO + replies.TOO_LARGE + replies.BAD_SEQUENCE * 51 + replies.SENDER_OK
    out, _, _ = run([b"HELO c\r\nMAIL FROM:<c@x>\r\n" + b"RCPT TO:<b@y>\r\n" * 20 + b"DATA\r\nNOOP\r\n"], refused)
    assert out == R_MAIL + replies.UNKNOWN_USER * 20 + replies.NO_RECIPIENTS + replies.OK


@pytest.mark.parametrize("key", [b"a@x", b"b@y", b"DATA", b"END"])
def test_421_of_the_receiver_closes(key: bytes) -> None:
    out, receiver, server = run([DATA + b".\r\nNOOP\r\n"], Recorder(refuses={key: replies.SHUTTING_DOWN}))
    assert out.endswith(replies.SHUTTING_DOWN)
    assert server.state is ServerState.CLOSED
    assert receiver.events[-1] == ("reset",)


def test_a_refused_data_leaves_the_transaction() -> None:
    receiver = Recorder(refuses={b"DATA": replies.STORAGE_FULL})
    out, _, server = run([DATA], receiver)
    assert out == R_RCPT + replies.STORAGE_FULL
    receiver.refuses.clear()
    assert server.receive(b"DATA\r\n") == replies.START_CONTENT


def test_replies_are_held_back_when_there_are_many() -> None:
    receiver = Recorder()
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 0), receiver)
    first = server.receive(b"NOOP\r\n" * (MAX_REPLIES + 5))
    assert first == replies.OK * MAX_REPLIES
    assert server.has_more
    assert server.receive(b"") == replies.OK * 5
    assert not server.has_more


def test_closed_from_outside_it_gives_nothing_more() -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 1000, 10), Recorder(is_slow=True))
    server.receive(MAIL)
    server.close()
    assert server.answer(replies.SENDER_OK) == b""
    assert server.receive(b"NOOP\r\n") == b""
