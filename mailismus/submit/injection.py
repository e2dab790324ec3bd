"""Injection: one message of a program of this machine, through the same engine and reception as mail over SMTP.

    begin: EHLO, MAIL, RCPT.., DATA -> write.. -> finish -> accepted or refused

*Rules*: the grammar, checks, limits and trace field are those of SMTP, for a relay client at the loopback address. Either
all recipients are accepted, or nothing of the message is. A reply is given as its code decides: nothing else of it is read.

*Not here*: who may inject (`inject`, `admin.server`), where the message comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from mailismus.config.values.settings import ListenerSettings
from mailismus.mail.directory import Directory
from mailismus.mail.injected import Injected
from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import ServerLimits
from mailismus.submit.lines import WireLines
from mailismus.submit.policy import Policy, Standing
from mailismus.submit.reception import Desk, Reception

HOST = "127.0.0.1"
NAME = b"localhost"
PROTOCOL = b"LOCAL"
"""In the trace field and the mail log."""
_QUEUED = re.compile(rb"250 2\.0\.0 Ok: queued as ([0-9A-F]{16})\r\n").fullmatch
_BAD = re.compile(rb"[\0\r\n<>]").search


class _LocalReception(Reception):
    """The reception of a message that came over no network. `uid`: the user who hands it over."""

    __slots__ = ("_uid",)

    def __init__(self, desk: Desk, uid: int, answer: Callable[[bytes], None]) -> None:
        super().__init__(desk, HOST, Standing.RELAY_CLIENT, answer)
        self._uid = uid

    def greet(self, name: bytes, protocol: bytes) -> None:
        super().greet(name, PROTOCOL)

    def _texts(self, protocol: bytes) -> tuple[bytes, bytes]:
        opening = b"Received: from %b (uid %d)\r\n\tby %b with %b id " % (NAME, self._uid, self._desk.host, protocol)
        return opening, b": client=%b[%b], uid=%d, proto=%b" % (NAME, HOST.encode("ascii"), self._uid, protocol)


@attrs.frozen
class LaterPolicy(Policy):
    """The rules for messages whose programs have ended: a user who is unknown is reported to the sender, as one who was
    removed meanwhile."""

    def check_recipient(self, recipient: bytes, standing: Standing, commands: int) -> bytes:
        reply = Policy.check_recipient(self, recipient, standing, commands)
        return replies.RECIPIENT_OK if reply is replies.UNKNOWN_USER else reply


def injection_policy(listeners: Sequence[ListenerSettings], directory: Directory, max_envelope_bytes: int) -> Policy:
    """The rules for local programs: the limits of the first listener. There is one at least."""
    return Policy(directory, listeners[0].server, max_envelope_bytes)


def later_policy(policy: Policy) -> LaterPolicy:
    """The same rules for messages that waited for the server."""
    return LaterPolicy(policy.directory, policy.limits, policy.max_envelope_bytes)


class Injection:
    """One message. `on_end` is called once, within a call or later; then nothing more may be called but `abandon`.

    `on_room` is called when more may be written after `write` returned False.
    """

    def __init__(self, desk: Desk, uid: int, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> None:
        """`uid`: the user who hands the message over, as the kernel tells."""
        self._desk, self._uid, self._on_end, self._on_room = desk, uid, on_end, on_room
        self._reception: Reception | None = None
        self._session: ServerEngine | None = None
        self._lines = WireLines()
        self._has_ended = self._is_finished = False

    def begin(self, sender: bytes, recipients: Sequence[bytes]) -> bool:
        """Begin with these addresses, without angle brackets. Return whether content may come; else it has ended."""
        desk = self._desk
        reception = self._reception = _LocalReception(desk, self._uid, self._answer)
        limits = ServerLimits(desk.host, desk.policy.limits.maxmsgsize, 0, max_refused=0)
        self._session = ServerEngine(limits, reception)
        is_utf8 = not all(address.isascii() for address in (sender, *recipients))
        if not self._say(b"EHLO " + NAME, b"") or not self._say_path(
            b"MAIL FROM:", sender, b" SMTPUTF8" if is_utf8 else b""
        ):
            return False
        return all(self._say_path(b"RCPT TO:", recipient, b"") for recipient in recipients) and self._say(b"DATA", b"")

    def write(self, data: bytes) -> bool:
        """Take the next bytes, with line ends of either kind. Return whether more may follow at once."""
        if not self._has_ended and (lines := self._lines.add(data)):
            self._take(self._engine.receive(lines))
        return self._has_ended or not self._engine.is_asking

    def finish(self) -> None:
        """The message is complete."""
        if self._has_ended or self._is_finished:
            return
        self._is_finished = True
        self._take(self._engine.receive(self._lines.end()))

    def abandon(self) -> None:
        """End it: what is not complete is forgotten; a complete message may be accepted. Harmless when repeated."""
        self._has_ended = True
        if self._session is not None and self._reception is not None:
            self._session.close()
            self._reception.end()

    @property
    def _engine(self) -> ServerEngine:
        assert self._session is not None  # `begin` made it
        return self._session

    def _say_path(self, command: bytes, address: bytes, parameters: bytes) -> bool:
        if _BAD(address):
            self._end(
                Injected(reply=replies.BAD_RECIPIENT if command.startswith(b"R") else replies.BAD_SENDER, what=address)
            )
            return False
        return self._say(b"%b<%b>%b" % (command, address, parameters), address)

    def _say(self, line: bytes, what: bytes) -> bool:
        reply = self._engine.receive(line + b"\r\n")
        if reply[:1] in b"23" and reply:
            return True
        self._end(Injected(reply=reply, what=what))
        return False

    def _answer(self, reply: bytes) -> None:
        """The reception has its answer to an open question."""
        if not self._has_ended:
            self._take(self._engine.answer(reply))
            if not self._has_ended and not self._engine.is_asking:
                self._on_room()

    def _take(self, reply: bytes) -> None:
        if not reply:
            return
        found = _QUEUED(reply)
        self._end(Injected(name=found[1].decode("ascii")) if found else Injected(reply=reply))

    def _end(self, injected: Injected) -> None:
        if injected.name:
            self._has_ended = True
            self._engine.close()
        else:
            self.abandon()
        self._on_end(injected)
