"""The server's side of an SMTP session, without I/O: bytes in, events and bytes out (RFC 5321, RFC 2920).

Events are calls on a `Receiver`, made as the bytes are looked at. A receiver that knows its answer returns it, as the bytes
of a reply; None leaves the question open until `Server.answer`. While one is open no further byte is looked at, so that
replies leave in the order of the commands, and nothing can overtake a 250 that waits for the disk.

*Rules*: what is legal when is the table `_LEGAL`; a session is in exactly one `State`. CRLF alone ends a line. Memory is
bounded: a line by `MAX_LINE`, content by the packet that brought it, replies by `MAX_REPLIES` a turn; bytes that wait for an
answer by the caller, who stops reading when `is_congested`. Errors are counted in all, a good command forgives none.

*Not here*: sockets and time-outs (`submit.protocol`), who may send what to whom (`submit.policy`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs

from mailismus.smtp import replies
from mailismus.smtp.body import BodyScanner
from mailismus.smtp.extensions import hello_replies
from mailismus.smtp.grammar import has_bad_bytes, parse_hello, parse_mail, parse_rcpt
from mailismus.smtp.receiver import Receiver

MAX_LINE = 2048
"""Bytes of a command line without its CRLF: 510 and room for extensions (RFC 5321 4.5.3.1.4)."""
MAX_REPLIES = 500
"""Replies given in one turn; then the caller sends them before more commands are looked at."""
MAX_WAITING = 65536
"""Bytes that may wait for an answer before the session is congested."""
MAX_IDLE_COMMANDS = 100
"""Commands that move no mail, those refused for good among them, since the last message that was taken; each further one
counts as an error."""


class State(enum.Enum):
    """Where a session stands."""

    FRESH = "no HELO or EHLO yet"
    GREETED = "no transaction"
    REFUSED = "MAIL was refused; RCPT and DATA that a pipelining client sent behind it are still to come"
    SENDER = "a transaction without recipient"
    RECIPIENTS = "a transaction with recipients"
    CONTENT = "content is coming"
    CLOSED = "over"


@attrs.frozen
class ServerLimits:
    """What a session may do; 0: no limit. `host`: the name we go by."""

    host: bytes
    max_size_bytes: int
    max_errors: int


class Server:
    """One session. Give it bytes by `receive`, answers by `answer`; what both return is to be sent.

    `state`: where it stands; `contents`: how many DATA were answered 354; `size_bytes`: the content so far of the last of
    them (dot-stuffed, refused or not).
    """

    __slots__ = (
        "_after",
        "_commands",
        "_errors",
        "_idle_commands",
        "_is_line_too_long",
        "_limits",
        "_out",
        "_receiver",
        "_refusal",
        "_rest",
        "_scanner",
        "contents",
        "size_bytes",
        "state",
    )

    def __init__(self, limits: ServerLimits, receiver: Receiver) -> None:
        self._limits = limits
        self._receiver = receiver
        self._errors = self._idle_commands = self.contents = self.size_bytes = 0
        self._is_line_too_long = False
        self._out: list[bytes] = []
        self._rest = self._refusal = b""
        self._after: Callable[[Server, bytes], bytes | None] | None = None  # the open question: what to do with its answer
        self._scanner: BodyScanner | None = None
        self.state = State.FRESH
        self._commands = COMMANDS[State.FRESH]

    # -- what the caller does

    @property
    def is_asking(self) -> bool:
        """Whether a question is open."""
        return self._after is not None

    @property
    def is_congested(self) -> bool:
        """Whether so much waits that no more should be read."""
        return len(self._rest) > MAX_WAITING

    @property
    def has_more(self) -> bool:
        """Whether replies were held back to be sent first; `receive(b"")` goes on. Only after `receive` or `answer`."""
        return bool(self._rest) and self._after is None and b"\r\n" in self._rest

    def receive(self, data: bytes) -> bytes:
        """Bytes of the client. Gives the replies that are due."""
        if self._rest:
            data = self._rest + data
        if self._after is not None:
            self._rest = data
            return b""
        return self._work(data)

    def answer(self, reply: bytes) -> bytes:
        """The answer to the open question, then what waited behind it. Gives the replies that are due."""
        after, self._after = self._after, None
        if after is None or self.state is State.CLOSED:
            return b""
        given = after(self, reply)
        if given:
            self._out.append(given)
        return self._work(self._rest)

    def close(self) -> None:
        """No more is wanted of this session: nothing is asked, told or answered any more."""
        self._enter(State.CLOSED)
        self._after, self._rest, self._scanner = None, b"", None

    # -- bytes

    def _work(self, data: bytes) -> bytes:
        out, position, size = self._out, 0, len(data)
        while position < size and self._after is None and len(out) < MAX_REPLIES:
            if self.state is State.CONTENT:
                position = self._take_content(data, position)
            elif self.state is State.CLOSED:
                position = size
            else:
                stop = data.find(b"\r\n", position)
                if stop < 0:
                    if size - position > MAX_LINE + 1:  # it is read to its end, and forgotten as it comes
                        self._is_line_too_long = True
                        position = size - data.endswith(b"\r")
                    break
                reply = self._take_line(data[position:stop])
                position = stop + 2
                if reply:
                    out.append(reply)
        self._rest = data[position:] if position else data
        if not out:
            return b""
        sent = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return sent

    def _take_line(self, line: bytes) -> bytes | None:
        if self._is_line_too_long or len(line) > MAX_LINE:
            self._is_line_too_long = False
            return self._blame(replies.LINE_TOO_LONG)
        command = self._commands.get(line.partition(b" ")[0].upper())
        if command is None:
            return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.UNKNOWN_COMMAND)
        return command(self, line)

    def _take_content(self, data: bytes, position: int) -> int:
        scanner = self._scanner
        assert scanner is not None  # CONTENT has one
        piece = scanner.scan(data, position)
        is_over = scanner.end >= 0
        self.size_bytes += len(piece)
        if not self._refusal:
            limit = self._limits.max_size_bytes
            if not scanner.is_clean:
                self._refuse_content(replies.BARE_BYTES)
            elif limit and self.size_bytes > limit:
                self._refuse_content(replies.TOO_LARGE)
            elif piece and not self._receiver.add_content(piece):
                self._after = Server._end_content if is_over else Server._go_on
                return scanner.end if is_over else len(data)
        if not is_over:
            return len(data)
        reply = self._end_content(b"")
        if reply:
            self._out.append(reply)
        return scanner.end

    def _refuse_content(self, reply: bytes) -> None:
        self._refusal = reply
        self._receiver.refuse_content(reply)

    def _go_on(self, _: bytes) -> None:
        """The receiver can take content again."""

    def _end_content(self, _: bytes) -> bytes | None:
        self._scanner = None
        self._enter(State.GREETED)
        if self._refusal:
            reply, self._refusal = self._refusal, b""
            return reply
        return self._give(self._receiver.end_content(), Server._after_content)

    # -- what every command needs

    def _enter(self, state: State) -> None:
        self.state = state
        self._commands = COMMANDS[state]

    def _give(self, reply: bytes | None, after: Callable[[Server, bytes], bytes]) -> bytes | None:
        if reply is None:
            self._after = after
            return None
        return after(self, reply)

    def _refuse(self, reply: bytes) -> bytes:
        """A refusal of the receiver's passes on; 421 ends the session with it. Many that are for good are an error: somebody
        tries out names."""
        if replies.closes(reply):
            self._receiver.reset()
            self.close()
        elif replies.is_permanent(reply):
            return self._grant(reply)
        return reply

    def _blame(self, reply: bytes) -> bytes:
        """The client made an error."""
        self._errors += 1
        if 0 < self._limits.max_errors <= self._errors:
            self._receiver.reset()
            self.close()
            return reply + replies.TOO_MANY_ERRORS
        return reply

    def _grant(self, reply: bytes) -> bytes:
        """A command that moves no mail is well; too many are an error."""
        self._idle_commands += 1
        return reply if self._idle_commands <= MAX_IDLE_COMMANDS else self._blame(reply)

    def _off(self) -> None:
        self._receiver.reset()
        if self.state is not State.FRESH:
            self._enter(State.GREETED)

    # -- commands: each takes its line, and gives its reply or None

    def _hello(self, line: bytes) -> bytes | None:
        name = parse_hello(line)
        if name is None:
            return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_ARGUMENT)
        self._receiver.reset()
        self._enter(State.GREETED)
        is_extended = line[:1] in b"Ee"
        self._receiver.greet(name, b"ESMTP" if is_extended else b"SMTP")
        return self._grant(hello_replies(self._limits.host, self._limits.max_size_bytes)[is_extended])

    def _mail(self, line: bytes) -> bytes | None:
        parsed = parse_mail(line)
        if isinstance(parsed, bytes):
            self._enter(State.REFUSED)
            return self._blame(parsed)
        return self._give(self._receiver.check_sender(*parsed), Server._after_mail)

    def _after_mail(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            self._enter(State.SENDER)
            return reply
        self._enter(State.REFUSED)
        return self._refuse(reply)

    def _rcpt(self, line: bytes) -> bytes | None:
        recipient, refusal = parse_rcpt(line)
        if refusal:
            return self._blame(refusal)
        return self._give(self._receiver.check_recipient(recipient), Server._after_rcpt)

    def _after_rcpt(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            if self.state is not State.RECIPIENTS:
                self._enter(State.RECIPIENTS)
            return reply
        return self._refuse(reply)

    def _data(self, line: bytes) -> bytes | None:
        if len(line) != 4 and not _is_alone(line):
            return self._bad_argument(line)
        return self._give(self._receiver.begin_content(), Server._after_data)

    def _after_data(self, reply: bytes) -> bytes:
        if reply.startswith(b"3"):
            self._enter(State.CONTENT)
            self._scanner, self.size_bytes = BodyScanner(), 0
            self.contents += 1
            return reply
        return self._refuse(reply)

    def _after_content(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            self._idle_commands = 0
            return reply
        return self._refuse(reply)

    def _no_recipients(self, line: bytes) -> bytes:
        return self._grant(replies.NO_RECIPIENTS)  # no error: a pipelining client could not know that all were refused

    def _behind_refused_mail(self, line: bytes) -> bytes:
        return self._grant(replies.BAD_SEQUENCE)  # no error: it could not know that MAIL was refused

    def _rset(self, line: bytes) -> bytes:
        if len(line) != 4 and not _is_alone(line):
            return self._bad_argument(line)
        self._off()
        return self._grant(replies.OK)

    def _noop(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES) if has_bad_bytes(line) else self._grant(replies.OK)

    def _help(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES) if has_bad_bytes(line) else self._grant(replies.HELP)

    def _vrfy(self, line: bytes) -> bytes:
        if has_bad_bytes(line) or not line[5:].strip(b" "):
            return self._bad_argument(line)
        return self._grant(replies.CANNOT_VERIFY)

    def _quit(self, line: bytes) -> bytes:
        if len(line) != 4 and not _is_alone(line):
            return self._bad_argument(line)
        self._receiver.reset()
        self.close()
        return replies.BYE

    def _bad_argument(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_ARGUMENT)

    def _bad_sequence(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_SEQUENCE)

    def _not_implemented(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.NOT_IMPLEMENTED)


def _is_alone(line: bytes) -> bool:
    """Whether nothing but blanks stands behind a verb of four letters (RFC 5321 4.1.1: trailing blanks are tolerated)."""
    return not line[4:].strip(b" ")


Command = Callable[[Server, bytes], bytes | None]

_ALWAYS = (State.FRESH, State.GREETED, State.REFUSED, State.SENDER, State.RECIPIENTS)
_LEGAL: tuple[tuple[bytes, Command, tuple[State, ...]], ...] = (
    (b"HELO", Server._hello, _ALWAYS),
    (b"EHLO", Server._hello, _ALWAYS),
    (b"MAIL", Server._mail, (State.GREETED, State.REFUSED)),
    (b"RCPT", Server._rcpt, (State.SENDER, State.RECIPIENTS)),
    (b"RCPT", Server._behind_refused_mail, (State.REFUSED,)),
    (b"DATA", Server._data, (State.RECIPIENTS,)),
    (b"DATA", Server._no_recipients, (State.SENDER,)),
    (b"DATA", Server._behind_refused_mail, (State.REFUSED,)),
    (b"RSET", Server._rset, _ALWAYS),
    (b"NOOP", Server._noop, _ALWAYS),
    (b"VRFY", Server._vrfy, _ALWAYS),
    (b"HELP", Server._help, _ALWAYS),
    (b"QUIT", Server._quit, _ALWAYS),
    *((verb, Server._not_implemented, _ALWAYS) for verb in (b"EXPN", b"ETRN", b"TURN", b"AUTH", b"STARTTLS", b"BDAT")),
)
COMMANDS: dict[State, dict[bytes, Command]] = {
    state: {verb: Server._bad_sequence for verb, _, _ in _LEGAL}
    | {verb: command for verb, command, states in _LEGAL if state in states}
    for state in State
}
"""What each command does in each state; a verb that is missing is unknown."""
