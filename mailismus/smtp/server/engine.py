"""The server engine: one SMTP session without I/O, bytes in, replies and calls of the receiver out (RFC 5321, RFC 2920).

The engine calls a `MailReceiver` as it parses commands and content. A receiver that knows its answer returns it, as the
bytes of a reply. None leaves the question open until `ServerEngine.answer`, and no byte behind it is parsed before. So
replies leave in the order of the commands, and no reply overtakes a 250 that waits for the disk.

STARTTLS (RFC 3207): the engine replies 220 and is in `ServerState.HANDSHAKE`. It discards the bytes behind the command: they
came in plain text, and anybody may have injected them (CVE-2011-0411). The caller sends the 220, starts TLS and calls
`begin_secure`, which discards what the client said before.

*Rules*: `smtp.server.commands` says which command is legal in which state, `smtp.server.state` which state follows. Errors
are counted per session; valid commands do not reset the count.

*Not here*: bytes, lines, the open question (`smtp.server.framing`), sockets and time-outs (`submit.protocol`),
TLS itself (`net.tls`), the policy (`submit.policy`).
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.smtp import replies
from mailismus.smtp.body import BodyScanner
from mailismus.smtp.extensions import hello_replies
from mailismus.smtp.grammar import has_bad_bytes, is_alone, parse_hello, parse_mail, parse_rcpt
from mailismus.smtp.server.commands import CommandAction, actions_of
from mailismus.smtp.server.framing import ServerFraming
from mailismus.smtp.server.limits import FORGIVEN, MAX_IDLE_COMMANDS, MAX_PUT_OFF, Security, ServerLimits
from mailismus.smtp.server.receiver import MailReceiver
from mailismus.smtp.server.state import ServerEvent, ServerState

# Read for each command: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_FRESH, _RECIPIENTS, _HANDSHAKE = ServerState.FRESH, ServerState.RECIPIENTS, ServerState.HANDSHAKE
_HELLO = ServerEvent.HELLO
_MAIL_ACCEPTED, _RCPT_ACCEPTED = ServerEvent.MAIL_ACCEPTED, ServerEvent.RCPT_ACCEPTED
_DATA_ACCEPTED, _CONTENT_ENDED = ServerEvent.DATA_ACCEPTED, ServerEvent.CONTENT_ENDED
_FIRST, _ACTIVE, _OFFERED, _REQUIRED = Security.FIRST, Security.ACTIVE, Security.OFFERED, Security.REQUIRED


class ServerEngine(ServerFraming):
    """One session. `receive` takes bytes, `answer` takes answers; both return the bytes to send.

    `contents`: how often DATA was answered with 354; `wire_bytes`: size of the last content so far, as received:
    dot-stuffed, refused or not.
    """

    __slots__ = (
        *("_errors", "_idle_commands", "_limits", "_put_off", "_receiver", "_refusal", "_refused", "_scanner", "_security"),
        "_is_utf8",
        *("contents", "wire_bytes"),
    )

    def __init__(self, limits: ServerLimits, receiver: MailReceiver) -> None:
        security = self._security = limits.security
        super().__init__(_HANDSHAKE if security is _FIRST else _FRESH, COMMANDS[security])
        self._limits = limits
        self._receiver = receiver
        self._errors = self._idle_commands = self._refused = self._put_off = self.contents = self.wire_bytes = 0
        self._refusal = b""
        self._is_utf8 = False
        """Whether the transaction has the parameter SMTPUTF8."""
        self._scanner: BodyScanner | None = None

    def begin_secure(self) -> None:
        """Begin the session anew: the TLS handshake is complete (RFC 3207 4.2). The count of errors goes on."""
        self._security, self._table, self._rest = Security.ACTIVE, COMMANDS[Security.ACTIVE], b""
        self._is_line_too_long = self.is_congested = False
        self._move(ServerEvent.TLS_COMPLETED)
        self.is_ready = True

    # -- content

    def _take_content(self, data: bytes, position: int) -> int:
        """Scan content from `position` on. Return the position behind it."""
        scanner = self._scanner
        assert scanner is not None  # made at 354
        piece = scanner.scan(data, position)
        end = scanner.end
        wire_bytes = self.wire_bytes = self.wire_bytes + len(piece)
        if not self._refusal:
            limit = self._limits.max_size_bytes
            if not scanner.is_clean:
                self._refuse_content(replies.BARE_BYTES)
            elif limit and limit < wire_bytes - scanner.stuffed_dots:
                self._refuse_content(replies.TOO_LARGE)
            elif piece and not self._receiver.add_content(piece):
                self._ask(self._go_on if end < 0 else self._end_content)
                return len(data) if end < 0 else end
        if end < 0:
            return len(data)
        reply = self._end_content(b"")
        if reply:
            self._out.append(reply)
        return end

    def _refuse_content(self, reply: bytes) -> None:
        self._refusal = reply
        self._receiver.refuse_content(reply)

    def _go_on(self, _: bytes) -> bytes:
        """The receiver can take content again."""
        return b""

    def _end_content(self, _: bytes) -> bytes:
        scanner = self._scanner
        assert scanner is not None  # made at 354
        self._move(_CONTENT_ENDED)
        if self._refusal:
            reply, self._refusal = self._refusal, b""
            return reply
        given = self._receiver.end_content(scanner.stuffed_dots)
        return self._ask(self._after_content) if given is None else self._after_content(given)

    # -- replies, and what they count

    def _refuse(self, reply: bytes) -> bytes:
        """Pass on a refusal of the receiver. 421 ends the session. Too many refusals are errors: the client guesses
        names."""
        if replies.is_closing(reply):
            self._receiver.reset()
            self.close()
            return reply
        if replies.is_permanent(reply):
            self._refused += 1
            is_too_much = 0 < self._limits.max_refused < self._refused
        else:
            self._put_off += 1
            is_too_much = self._put_off > MAX_PUT_OFF
        return self._count_error(reply) if is_too_much else reply

    def _count_error(self, reply: bytes) -> bytes:
        """Reply to an error of the client. The last one that is allowed ends the session."""
        self._errors += 1
        if 0 < self._limits.max_errors <= self._errors:
            self._receiver.reset()
            self.close()
            return reply + replies.TOO_MANY_ERRORS
        return reply

    def _grant(self, reply: bytes) -> bytes:
        """Reply to a command without mail. Too many of them are errors."""
        self._idle_commands += 1
        return reply if self._idle_commands <= MAX_IDLE_COMMANDS else self._count_error(reply)

    # -- commands: each takes its line, and returns its reply; empty if it asked the receiver

    def _hello(self, line: bytes) -> bytes:
        name = parse_hello(line)
        if name is None:
            return self._reject(line, replies.BAD_ARGUMENT)
        self._receiver.reset()
        self._move(_HELLO)
        is_extended = line.startswith((b"E", b"e"))
        security, limits = self._security, self._limits
        self._receiver.greet(name, (b"ESMTPS" if security is _ACTIVE else b"ESMTP") if is_extended else b"SMTP")
        offers_tls = security is _OFFERED or security is _REQUIRED
        return self._grant(hello_replies(limits.host, limits.max_size_bytes, offers_tls)[is_extended])

    def _starttls(self, line: bytes) -> bytes:
        if line[8:].strip(b" "):
            return self._reject(line, replies.BAD_ARGUMENT)
        self._receiver.reset()
        self._move(ServerEvent.STARTTLS_ACCEPTED)
        self.is_ready = False
        return replies.READY_FOR_TLS

    def _mail(self, line: bytes) -> bytes:
        parsed = parse_mail(line)
        if isinstance(parsed, bytes):
            self._move(ServerEvent.MAIL_REFUSED)
            return self._count_error(parsed)
        sender, size_bytes, eightbit, utf8 = parsed
        self._is_utf8 = utf8
        given = self._receiver.check_sender(sender, size_bytes, eightbit, utf8)
        if given is replies.SENDER_OK:  # the usual answer
            self._move(_MAIL_ACCEPTED)
            return given
        return self._ask(self._after_mail) if given is None else self._after_mail(given)

    def _after_mail(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            self._move(_MAIL_ACCEPTED)
            return reply
        self._move(ServerEvent.MAIL_REFUSED)
        return self._refuse(reply)

    def _rcpt(self, line: bytes) -> bytes:
        recipient, refusal = parse_rcpt(line)
        if refusal and not (recipient and self._is_utf8):
            return self._count_error(refusal)
        given = self._receiver.check_recipient(recipient)
        if given is replies.RECIPIENT_OK:  # the usual answer
            if self.state is not _RECIPIENTS:
                self._move(_RCPT_ACCEPTED)
            return given
        return self._ask(self._after_rcpt) if given is None else self._after_rcpt(given)

    def _after_rcpt(self, reply: bytes) -> bytes:
        if replies.is_positive(reply):
            if self.state is not _RECIPIENTS:
                self._move(_RCPT_ACCEPTED)
            return reply
        return self._refuse(reply)

    def _data(self, line: bytes) -> bytes:
        if len(line) != 4 and not is_alone(line):
            return self._reject(line, replies.BAD_ARGUMENT)
        given = self._receiver.begin_content()
        return self._ask(self._after_data) if given is None else self._after_data(given)

    def _after_data(self, reply: bytes) -> bytes:
        if reply is replies.START_CONTENT or reply.startswith(b"3"):
            self._move(_DATA_ACCEPTED)
            scanner = self._scanner
            if scanner is None:
                self._scanner = BodyScanner()
            else:
                scanner.begin()
            self.wire_bytes = 0
            self.contents += 1
            return reply
        return self._refuse(reply)

    def _after_content(self, reply: bytes) -> bytes:
        if reply[:1] == b"2":
            self._idle_commands = 0
            if self._refused:
                self._refused = max(0, self._refused - FORGIVEN)
            return reply
        return self._refuse(reply)

    def _reset(self, line: bytes) -> bytes:
        if len(line) != 4 and not is_alone(line):
            return self._reject(line, replies.BAD_ARGUMENT)
        self._receiver.reset()
        self._move(ServerEvent.RESET)
        return self._grant(replies.OK)

    def _verify(self, line: bytes) -> bytes:
        if has_bad_bytes(line) or not line[5:].strip(b" "):
            return self._reject(line, replies.BAD_ARGUMENT)
        return self._grant(replies.CANNOT_VERIFY)

    def _quit(self, line: bytes) -> bytes:
        if len(line) != 4 and not is_alone(line):
            return self._reject(line, replies.BAD_ARGUMENT)
        self._receiver.reset()
        self.close()
        return replies.BYE


Command = Callable[[ServerEngine, bytes], bytes]


def _granting(reply: bytes) -> Command:
    def grant(engine: ServerEngine, line: bytes) -> bytes:
        return engine._count_error(replies.BAD_BYTES) if has_bad_bytes(line) else engine._grant(reply)

    return grant


def _rejecting(reply: bytes) -> Command:
    return lambda engine, line: engine._reject(line, reply)


_ACTIONS: dict[CommandAction, Command] = {
    CommandAction.HELLO: ServerEngine._hello,
    CommandAction.MAIL: ServerEngine._mail,
    CommandAction.RCPT: ServerEngine._rcpt,
    CommandAction.DATA: ServerEngine._data,
    CommandAction.RESET: ServerEngine._reset,
    CommandAction.STARTTLS: ServerEngine._starttls,
    CommandAction.VERIFY: ServerEngine._verify,
    CommandAction.QUIT: ServerEngine._quit,
    CommandAction.NOOP: _granting(replies.OK),
    CommandAction.HELP: _granting(replies.HELP),
    CommandAction.TLS_REQUIRED: _granting(replies.TLS_REQUIRED),
    CommandAction.NO_RECIPIENTS: lambda engine, _: engine._grant(replies.NO_RECIPIENTS),
    CommandAction.BEHIND_REFUSED_MAIL: lambda engine, _: engine._grant(replies.BAD_SEQUENCE),
    CommandAction.BAD_SEQUENCE: _rejecting(replies.BAD_SEQUENCE),
    CommandAction.NOT_IMPLEMENTED: _rejecting(replies.NOT_IMPLEMENTED),
}
COMMANDS: dict[Security, dict[ServerState, dict[bytes, Command]]] = {
    security: {
        state: {verb: _ACTIONS[action] for verb, action in actions_of(security, state).items()} for state in ServerState
    }
    for security in Security
}
"""`smtp.server.commands` with the methods in place of the actions: one look-up per command."""
