"""The server's side of an SMTP session, without I/O: bytes in, events and bytes out (RFC 5321, RFC 2920).

Events are calls on a `MailReceiver`, made as the bytes are parsed. A receiver that knows its answer returns it, as the
bytes of a reply; None leaves the question open until `ServerEngine.answer`. While a question is open no further byte is
parsed. So replies leave in the order of the commands, and nothing overtakes a 250 that waits for the disk.

STARTTLS (RFC 3207): the engine answers 220 and is in `ServerState.HANDSHAKE`. Bytes behind the command are discarded unread:
they were sent in plain text, by anybody (CVE-2011-0411). The caller sends the 220, makes the connection TLS and calls
`begin_secure`, which forgets all that the client said before.

*Rules*: the table `_LEGAL` says which command is legal in which `ServerState`. Only CRLF ends a line. Memory is bounded:
a line by `MAX_LINE`, content by the packet that brought it, replies by `MAX_REPLIES` a turn; bytes that wait for an
answer by the caller, who stops reading when `is_congested`. Errors are counted in all, a good command forgives none.

*Not here*: sockets and time-outs (`submit.protocol`), TLS itself (`net.tls`), who may send what to whom (`submit.policy`).
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.smtp import replies
from mailismus.smtp.body import BodyScanner
from mailismus.smtp.extensions import hello_replies
from mailismus.smtp.grammar import has_bad_bytes, is_alone, parse_hello, parse_mail, parse_rcpt
from mailismus.smtp.receiver import MailReceiver
from mailismus.smtp.server_state import (
    FORGIVEN,
    MAX_IDLE_COMMANDS,
    MAX_LINE,
    MAX_PUT_OFF,
    MAX_REPLIES,
    MAX_WAITING,
    Security,
    ServerLimits,
    ServerState,
)


class ServerEngine:
    """One session. Give it bytes by `receive`, answers by `answer`; what both return is to be sent.

    `state`: where it stands; `last_state`: where it stood before it was over; `contents`: how many DATA were answered 354;
    `wire_bytes`: the content so far of the last of them, as it came: dot-stuffed, refused or not.
    """

    __slots__ = (
        "_after",
        "_commands",
        "_errors",
        "_idle_commands",
        "_is_line_too_long",
        "_limits",
        "_out",
        "_put_off",
        "_receiver",
        "_refusal",
        "_refused",
        "_rest",
        "_scanner",
        "_security",
        "_table",
        "contents",
        "last_state",
        "state",
        "wire_bytes",
    )

    def __init__(self, limits: ServerLimits, receiver: MailReceiver) -> None:
        self._limits = limits
        self._receiver = receiver
        self._errors = self._idle_commands = self._refused = self._put_off = self.contents = self.wire_bytes = 0
        self._is_line_too_long = False
        self._out: list[bytes] = []
        self._rest = self._refusal = b""
        self._after: Callable[[ServerEngine, bytes], bytes | None] | None = (
            None  # the open question: what to do with its answer
        )
        self._scanner: BodyScanner | None = None
        self._security = limits.security
        self._table = COMMANDS_BEFORE_TLS if limits.security is Security.REQUIRED else COMMANDS
        self.state = ServerState.HANDSHAKE if limits.security is Security.FIRST else ServerState.FRESH
        self._commands = self._table[self.state]

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
        if after is None or self.state is ServerState.CLOSED:
            return b""
        given = after(self, reply)
        if given:
            self._out.append(given)
        return self._work(self._rest)

    def begin_secure(self) -> None:
        """TLS is on: the session begins anew (RFC 3207 4.2), but for its errors, which are counted on."""
        self._security, self._table, self._rest = Security.ACTIVE, COMMANDS, b""
        self._is_line_too_long = False
        self._enter(ServerState.FRESH)

    def close(self) -> None:
        """No more is wanted of this session: nothing is asked, told or answered any more."""
        if self.state is not ServerState.CLOSED:
            self.last_state = self.state
        self._enter(ServerState.CLOSED)
        self._after, self._rest, self._scanner = None, b"", None

    # -- bytes

    def _work(self, data: bytes) -> bytes:
        out, position, size = self._out, 0, len(data)
        while position < size and self._after is None and len(out) < MAX_REPLIES:
            if self.state is ServerState.CONTENT:
                position = self._take_content(data, position)
            elif self.state is ServerState.CLOSED or self.state is ServerState.HANDSHAKE:
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
        self.wire_bytes += len(piece)
        if not self._refusal:
            limit = self._limits.max_size_bytes
            if not scanner.is_clean:
                self._refuse_content(replies.BARE_BYTES)
            elif 0 < limit < self.wire_bytes - scanner.stuffed_dots:
                self._refuse_content(replies.TOO_LARGE)
            elif piece and not self._receiver.add_content(piece):
                self._after = ServerEngine._end_content if is_over else ServerEngine._go_on
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
        scanner, self._scanner = self._scanner, None
        assert scanner is not None  # CONTENT has one
        self._enter(ServerState.GREETED)
        if self._refusal:
            reply, self._refusal = self._refusal, b""
            return reply
        return self._give(self._receiver.end_content(scanner.stuffed_dots), ServerEngine._after_content)

    # -- what every command needs

    def _enter(self, state: ServerState) -> None:
        self.state = state
        self._commands = self._table[state]

    def _give(self, reply: bytes | None, after: Callable[[ServerEngine, bytes], bytes]) -> bytes | None:
        if reply is None:
            self._after = after
            return None
        return after(self, reply)

    def _refuse(self, reply: bytes) -> bytes:
        """A refusal of the receiver's passes on; 421 ends the session. Too many are errors: somebody guesses names."""
        if replies.closes(reply):
            self._receiver.reset()
            self.close()
            return reply
        if replies.is_permanent(reply):
            self._refused += 1
            is_too_much = 0 < self._limits.max_refused < self._refused
        else:
            self._put_off += 1
            is_too_much = self._put_off > MAX_PUT_OFF
        return self._blame(reply) if is_too_much else reply

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
        if self.state is not ServerState.FRESH:
            self._enter(ServerState.GREETED)

    # -- commands: each takes its line, and gives its reply or None

    def _hello(self, line: bytes) -> bytes | None:
        name = parse_hello(line)
        if name is None:
            return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_ARGUMENT)
        self._receiver.reset()
        self._enter(ServerState.GREETED)
        is_extended = line[:1] in b"Ee"
        security, limits = self._security, self._limits
        self._receiver.greet(name, (b"ESMTPS" if security is Security.ACTIVE else b"ESMTP") if is_extended else b"SMTP")
        more = (b"STARTTLS",) if security is Security.OFFERED or security is Security.REQUIRED else ()
        return self._grant(hello_replies(limits.host, limits.max_size_bytes, *more)[is_extended])

    def _starttls(self, line: bytes) -> bytes:
        if self._security is Security.NONE or self._security is Security.ACTIVE:
            return self._starttls_out_of_turn(line)
        if line[8:].strip(b" "):
            return self._bad_argument(line)
        self._receiver.reset()
        self._enter(ServerState.HANDSHAKE)
        return replies.READY_FOR_TLS

    def _starttls_out_of_turn(self, line: bytes) -> bytes:
        return self._not_implemented(line) if self._security is Security.NONE else self._bad_sequence(line)

    def _mail(self, line: bytes) -> bytes | None:
        parsed = parse_mail(line)
        if isinstance(parsed, bytes):
            self._enter(ServerState.REFUSED)
            return self._blame(parsed)
        return self._give(self._receiver.check_sender(*parsed), ServerEngine._after_mail)

    def _after_mail(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            self._enter(ServerState.SENDER)
            return reply
        self._enter(ServerState.REFUSED)
        return self._refuse(reply)

    def _rcpt(self, line: bytes) -> bytes | None:
        recipient, refusal = parse_rcpt(line)
        if refusal:
            return self._blame(refusal)
        return self._give(self._receiver.check_recipient(recipient), ServerEngine._after_rcpt)

    def _after_rcpt(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            if self.state is not ServerState.RECIPIENTS:
                self._enter(ServerState.RECIPIENTS)
            return reply
        return self._refuse(reply)

    def _data(self, line: bytes) -> bytes | None:
        if len(line) != 4 and not is_alone(line):
            return self._bad_argument(line)
        return self._give(self._receiver.begin_content(), ServerEngine._after_data)

    def _after_data(self, reply: bytes) -> bytes:
        if reply.startswith(b"3"):
            self._enter(ServerState.CONTENT)
            self._scanner, self.wire_bytes = BodyScanner(), 0
            self.contents += 1
            return reply
        return self._refuse(reply)

    def _after_content(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            self._idle_commands = 0
            self._refused = max(0, self._refused - FORGIVEN)
            return reply
        return self._refuse(reply)

    def _no_recipients(self, line: bytes) -> bytes:
        return self._grant(replies.NO_RECIPIENTS)  # no error: a pipelining client could not know that all were refused

    def _behind_refused_mail(self, line: bytes) -> bytes:
        return self._grant(replies.BAD_SEQUENCE)  # no error: it could not know that MAIL was refused

    def _rset(self, line: bytes) -> bytes:
        if len(line) != 4 and not is_alone(line):
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
        if len(line) != 4 and not is_alone(line):
            return self._bad_argument(line)
        self._receiver.reset()
        self.close()
        return replies.BYE

    def _bad_argument(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_ARGUMENT)

    def _bad_sequence(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.BAD_SEQUENCE)

    def _tls_required(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES) if has_bad_bytes(line) else self._grant(replies.TLS_REQUIRED)

    def _not_implemented(self, line: bytes) -> bytes:
        return self._blame(replies.BAD_BYTES if has_bad_bytes(line) else replies.NOT_IMPLEMENTED)


Command = Callable[[ServerEngine, bytes], bytes | None]

_ALWAYS = (ServerState.FRESH, ServerState.GREETED, ServerState.REFUSED, ServerState.SENDER, ServerState.RECIPIENTS)
_LEGAL: tuple[tuple[bytes, Command, tuple[ServerState, ...]], ...] = (
    (b"HELO", ServerEngine._hello, _ALWAYS),
    (b"EHLO", ServerEngine._hello, _ALWAYS),
    (b"MAIL", ServerEngine._mail, (ServerState.GREETED, ServerState.REFUSED)),
    (b"RCPT", ServerEngine._rcpt, (ServerState.SENDER, ServerState.RECIPIENTS)),
    (b"RCPT", ServerEngine._behind_refused_mail, (ServerState.REFUSED,)),
    (b"DATA", ServerEngine._data, (ServerState.RECIPIENTS,)),
    (b"DATA", ServerEngine._no_recipients, (ServerState.SENDER,)),
    (b"DATA", ServerEngine._behind_refused_mail, (ServerState.REFUSED,)),
    (b"RSET", ServerEngine._rset, _ALWAYS),
    (b"NOOP", ServerEngine._noop, _ALWAYS),
    (b"VRFY", ServerEngine._vrfy, _ALWAYS),
    (b"HELP", ServerEngine._help, _ALWAYS),
    (b"QUIT", ServerEngine._quit, _ALWAYS),
    (b"STARTTLS", ServerEngine._starttls, (ServerState.GREETED, ServerState.REFUSED)),
    (b"STARTTLS", ServerEngine._starttls_out_of_turn, (ServerState.FRESH, ServerState.SENDER, ServerState.RECIPIENTS)),
    *((verb, ServerEngine._not_implemented, _ALWAYS) for verb in (b"EXPN", b"ETRN", b"TURN", b"AUTH", b"BDAT")),
)
COMMANDS: dict[ServerState, dict[bytes, Command]] = {
    state: {verb: ServerEngine._bad_sequence for verb, _, _ in _LEGAL}
    | {verb: command for verb, command, states in _LEGAL if state in states}
    for state in ServerState
}
"""What each command does in each state; a verb that is missing is unknown."""
COMMANDS_BEFORE_TLS: dict[ServerState, dict[bytes, Command]] = {
    state: {
        verb: command if verb in (b"EHLO", b"NOOP", b"STARTTLS", b"QUIT") else ServerEngine._tls_required
        for verb, command in commands.items()
    }
    for state, commands in COMMANDS.items()
}
"""The same where mail is taken under TLS alone (RFC 3207 4)."""
