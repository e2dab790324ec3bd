"""Reception: the transactions of one session, from MAIL to the queue.

*Rules*: the queue is asked for room before 354. 250 is sent from the callback that reports "durable", and from nowhere else.
The mail of a client that disconnects after the final dot is stored; before the final dot it is not. Local trouble is 4xx.
Every refusal is logged.

*Not here*: bytes and commands (`smtp.server`), permissions (`submit.policy`), sockets (`submit.protocol`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId, spool_name
from mailismus.mail.utf8 import ADDRESS_WORDS, HEADER_WORDS
from mailismus.net.peer import literal_of
from mailismus.observe.maillog import MailLog
from mailismus.observe.text import plain
from mailismus.queue.content import IDraft
from mailismus.queue.words import BESIDE_ADDRESS, BESIDE_UTF8
from mailismus.smtp import replies
from mailismus.smtp.header import HeaderScan
from mailismus.smtp.trace import date_time, received_opening
from mailismus.submit.policy import Policy, Standing
from mailismus.submit.recipients import Recipients
from mailismus.submit.seam import Acceptance

NOTE_EVERY_S = 10.0
"""Seconds between two log lines with the reason why mail is refused."""


def _answer_nobody(_: bytes) -> None:
    """Take the answer for a connection that is over."""


class Desk:
    """What the sessions of one listener share. `is_closing`: no transaction may begin.

    Counters for metrics: accepted `messages`, their `recipients` (entries) and `content_bytes` (as stored); `refusals`
    (replies); `refused`: refusals by command and code.
    """

    log = Logger()

    def __init__(self, host: bytes, policy: Policy, manager: Acceptance, maillog: MailLog, clock: IReactorTime) -> None:
        self.host, self.policy, self.manager, self.maillog, self.clock = host, policy, manager, maillog, clock
        self.messages = self.recipients = self.content_bytes = self.refusals = 0
        self.refused: dict[tuple[bytes, bytes], int] = {}
        self.is_closing = False
        self._second, self._trace_ending = -1, b""
        self._noted_at = -NOTE_EVERY_S

    def note_trouble(self, trouble: BaseException) -> None:
        """Log the reason why mail is refused, at most once per `NOTE_EVERY_S`: each refusal has its own line."""
        now = self.clock.seconds()
        if not 0 <= now - self._noted_at < NOTE_EVERY_S:
            self._noted_at = now
            self.log.warn("Mail is refused with 4xx: {trouble}", trouble=str(trouble))

    def on_durable(self, marks: Sequence[Reception], gone: Sequence[Sequence[SpoolId]]) -> None:
        """Messages are durable (`queue.interface.CommitListener`): log all of them, then answer 250 to each client."""
        lines: list[bytes] = []
        for reception in marks:
            try:
                reception.log_accepted(lines)
            except Exception:  # a defect: the message is safe, and the others are answered all the same
                self.log.failure("Logging a message broke")
        self.maillog.write_lines(lines)
        for reception in marks:
            try:
                reception.accepted()
            except Exception:  # as above
                self.log.failure("Answering a message broke")

    def on_failed(self, marks: Sequence[Reception], error: StorageError) -> None:
        """Messages are not durable."""
        for reception in marks:
            try:
                reception.not_accepted(error)
            except Exception:  # as above
                self.log.failure("Answering a message broke")

    def trace_ending(self) -> bytes:
        """Return what follows the message's name in its trace field: the present time, and the end of the field."""
        second = int(self.clock.seconds())
        if second != self._second:
            self._second, self._trace_ending = second, b";\r\n\t%b\r\n" % date_time(second)
        return self._trace_ending


class Reception:
    """The `MailReceiver` of one session. It calls `answer` when an open question has its answer."""

    __slots__ = (
        "_accepting",
        "_answer",
        "_client",
        "_client_line",
        "_desk",
        "_draft",
        "_eightbit",
        "_header",
        "_host",
        "_is_asked",
        "_is_blocked",
        "_is_utf8",
        "_known",
        "_messages",
        "_name",
        "_opening",
        "_policy",
        "_protocol",
        "_recipients",
        "_sender",
        "_standing",
        "_tls",
        "_trace",
    )

    log = Logger()

    def __init__(self, desk: Desk, host: str, standing: Standing, answer: Callable[[bytes], None]) -> None:
        """`standing`: of the host, by the present policy of the desk."""
        self._desk, self._host, self._standing, self._answer = desk, host, standing, answer
        self._policy = desk.policy
        self._client = host.encode("ascii", "replace")
        self._messages = 0
        self._name = self._protocol = self._opening = self._sender = self._trace = self._known = self._tls = b""
        self._client_line = b""
        """What follows the name of a message in the log line about its client; made with `_opening`."""
        self._recipients = Recipients()
        self._eightbit = self._is_asked = self._is_blocked = self._is_utf8 = False
        self._draft: IDraft | None = None
        self._header: HeaderScan | None = None
        """Of the present content, or of the last one: it is used again."""
        self._accepting: tuple[IDraft, Envelope, bytes] | None = None
        """The message that is to be durable before the next command, its envelope and Message-ID."""

    # -- the transaction's envelope

    def greet(self, name: bytes, protocol: bytes) -> None:
        self._name, self._protocol, self._opening = name, protocol, b""

    def secure(self, tls: bytes) -> None:
        """TLS is active; `tls`: version and cipher. Discard what the client said of itself before."""
        self._tls, self._name, self._protocol, self._opening = tls, b"", b"", b""

    def check_sender(self, sender: bytes, size_bytes: int, eightbit: bool, utf8: bool) -> bytes:
        desk = self._desk
        policy = desk.policy
        if policy is not self._policy:  # the configuration was reloaded; a transaction keeps the rules that it began with
            self._policy, self._standing = policy, policy.standing_of(self._host)
        reply = replies.SHUTTING_DOWN if desk.is_closing else policy.check_sender(size_bytes, self._messages)
        if reply is not replies.SENDER_OK:
            return self._reject(b"MAIL", reply, sender)
        # `eightbit` is what the client declared; the content itself decides
        self._sender, self._eightbit, self._is_utf8 = sender, False, utf8
        recipients = self._recipients
        if recipients.commands:
            recipients.clear()
        return reply

    def check_recipient(self, recipient: bytes) -> bytes:
        policy, recipients = self._policy, self._recipients
        reply = policy.check_recipient(recipient, self._standing, recipients.commands)
        if reply is replies.RECIPIENT_OK:
            most_bytes = policy.max_envelope_bytes
            if self._is_utf8:
                most_bytes = most_bytes * BESIDE_ADDRESS // (BESIDE_ADDRESS + BESIDE_UTF8)
            if recipients.add(recipient, policy.directory, most_bytes):
                return reply
            reply = replies.TOO_MANY_RECIPIENTS
        return self._reject(b"RCPT", reply, self._sender, recipient)

    def reset(self) -> None:
        self._sender = b""
        recipients = self._recipients
        if recipients.commands:
            recipients.clear()
        draft = self._draft
        if draft is not None:
            self._draft = None
            draft.abandon()

    def end(self) -> None:
        """Discard the open transaction: the connection is over, and is told nothing more."""
        self.reset()
        self._answer = _answer_nobody  # the session refers to us: a cycle, for the garbage collector alone, else remained

    # -- its content

    def begin_content(self) -> bytes:
        desk = self._desk
        try:
            draft = desk.manager.draft()
        except StorageError as trouble:
            desk.note_trouble(trouble)
            return self._reject(b"DATA", _reply_to(trouble), self._sender)
        opening = self._opening
        if not opening:
            opening, self._client_line = self._texts(self._protocol)
            self._opening = opening
        if self._is_utf8:  # RFC 6531 4.3: the trace field names it
            protocol = b"UTF8SMTPS" if self._protocol.endswith(b"S") else b"UTF8SMTP"
            opening = self._texts(protocol)[0]
        self._draft = draft
        header = self._header
        if header is None:
            self._header = HeaderScan()
        else:
            header.begin()
        self._trace = opening + spool_name(draft.spool_id) + desk.trace_ending()
        return replies.START_CONTENT

    def _texts(self, protocol: bytes) -> tuple[bytes, bytes]:
        """The opening of the trace field, and what follows the name of a message in its log line."""
        return _texts_of(self._host, self._name, self._desk.host, protocol, self._tls)

    def add_content(self, piece: bytes) -> bool:
        draft, header = self._draft, self._header
        assert draft is not None  # begin_content made both
        assert header is not None
        if not header.is_whole:
            header.add(piece)
        if not (self._eightbit or piece.isascii()):
            self._eightbit = True
        trace = self._trace
        if trace:
            piece, self._trace = trace + piece, b""
        wait = draft.write(piece)
        if wait is None:
            return True
        self._is_blocked, self._is_asked = True, False
        wait.addBoth(self._unblock)
        self._is_asked = self._is_blocked
        return not self._is_blocked

    def _unblock(self, _: object) -> None:
        self._is_blocked = False
        if self._is_asked:
            self._is_asked = False
            self._answer(b"")

    def end_content(self, stuffed_dots: int) -> bytes | None:
        draft, header = self._draft, self._header
        assert draft is not None  # begin_content made both
        assert header is not None
        if header.is_looping():
            self.refuse_content(replies.LOOP)
            return replies.LOOP
        if self._trace:
            draft.write(self._trace)
        recipients = self._recipients
        entries = tuple(recipients.entries(self._policy.directory))
        recipients.clear()
        words = self._find_words(entries) if self._is_utf8 else None
        envelope = Envelope(self._sender, entries, self._client, self._eightbit, stuffed_dots, words)
        self._draft = None
        self._messages += 1
        self._sender = self._known = b""
        self._is_asked = False
        self._accepting = (draft, envelope, header.message_id())
        desk = self._desk
        desk.manager.accept(draft, envelope, desk, self)
        if self._known:
            return self._known
        self._is_asked = True
        return None

    def _find_words(self, recipients: Sequence[bytes]) -> bytes | None:
        """The words of a message that was declared with SMTPUTF8, if it needs that."""
        assert self._header is not None  # begin_content made it
        if self._eightbit and self._header.has_eightbit():
            return HEADER_WORDS
        if self._sender.isascii() and all(recipient.isascii() for recipient in recipients):
            return None
        return ADDRESS_WORDS

    def refuse_content(self, reply: bytes) -> None:
        draft = self._draft
        assert draft is not None  # begin_content made it
        self._reject(b"END-OF-MESSAGE", reply, self._sender, spool_id=draft.spool_id)
        self.reset()

    # -- its outcome

    def log_accepted(self, lines: list[bytes]) -> None:
        """The message is durable: count it, and add its log lines. `accepted` follows."""
        assert self._accepting is not None  # end_content set it
        desk, (draft, envelope, message_id) = self._desk, self._accepting
        name, stored_bytes, recipients = spool_name(draft.spool_id), draft.stored_bytes, len(envelope.recipients)
        desk.messages += 1
        desk.recipients += recipients
        desk.content_bytes += stored_bytes
        lines += (
            name + self._client_line,
            b"%b: from=<%b>, size=%d, nrcpt=%d, message-id=%b"
            % (
                name,
                envelope.sender if envelope.words is None else plain(envelope.sender),
                stored_bytes - envelope.stuffed_dots,
                recipients,
                plain(message_id) if message_id else b"<>",
            ),
        )

    def accepted(self) -> None:
        """The message is durable and logged: answer 250."""
        assert self._accepting is not None  # as above
        reply = replies.queued(self._accepting[0].spool_id)
        self._accepting = None
        if self._is_asked:
            self._is_asked = False
            self._answer(reply)
        else:  # it became durable within `end_content`
            self._known = reply

    def not_accepted(self, error: StorageError) -> None:
        """The message is not durable: answer 4xx."""
        assert self._accepting is not None  # as above
        desk, (draft, envelope, _) = self._desk, self._accepting
        self._accepting = None
        draft.abandon()
        desk.note_trouble(error)
        reply = self._reject(b"END-OF-MESSAGE", _reply_to(error), envelope.sender, spool_id=draft.spool_id)
        if self._is_asked:
            self._is_asked = False
            self._answer(reply)
        else:  # it failed within `end_content`
            self._known = reply

    def _reject(
        self, command: bytes, reply: bytes, sender: bytes, recipient: bytes | None = None, spool_id: SpoolId | None = None
    ) -> bytes:
        """Log a refusal in the words of Postfix. Return the reply."""
        desk, key = self._desk, (command, reply[:3])
        desk.refusals += 1
        desk.refused[key] = desk.refused.get(key, 0) + 1
        desk.maillog.write(
            b"%b: reject: %b from unknown[%b]: %b; from=<%b>%b proto=%b helo=<%b>"
            % (
                b"NOQUEUE" if spool_id is None else spool_name(spool_id),
                command,
                self._client,
                reply[:-2],
                plain(sender),
                b"" if recipient is None else b" to=<%b>" % plain(recipient),
                self._protocol,
                self._name,
            )
        )
        return reply


@lru_cache(500)  # a client gives the same name each time
def _texts_of(host: str, name: bytes, ours: bytes, protocol: bytes, tls: bytes) -> tuple[bytes, bytes]:
    """Return what is constant in a session of a client: the opening of its trace field, and what follows the name of a
    message in its log line."""
    client = host.encode("ascii", "replace")
    opening = received_opening(name, literal_of(host), ours, protocol, tls)
    return opening, b": client=unknown[%b], proto=%b" % (client, protocol)


def _reply_to(trouble: BaseException | None) -> bytes:
    return replies.STORAGE_FULL if isinstance(trouble, Unavailable) and trouble.full else replies.STORAGE_TROUBLE
