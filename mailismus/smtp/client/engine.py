"""The client engine: a session and its transactions without I/O, replies in, commands and outcomes out (RFC 5321, 2920,
1870, 6152, 6531).

*Rules*
- Where the server offers PIPELINING, the engine sends MAIL, RCPT and DATA ahead, in groups of at most `max_pipeline`
  commands per write, and the first group of the next transaction behind the final dot of the present one. Otherwise it goes
  step by step.
- A transaction is in doubt from the moment the first byte of its final dot is given to the transport. A connection lost then
  or before means deferred, never delivered and never failed.
- A transaction is untried if it stands behind a final dot and its MAIL has no reply. So is one in its first step on a
  connection that was used before: the server may have closed that while our command was on its way.
- A failure of commands sent ahead, by a host that has not proved itself, means untried: see `smtp.client.pipelining`.
- 2xx to the final dot is delivered, 251 and 252 to RCPT are accepted, 552 to a later RCPT means "too many recipients"
  (RFC 5321 4.5.3.1.10).
- `smtp.client.transaction` says which phase follows.

*Not here*: the opening of a session (`smtp.client.session`), what its end means for transactions (`smtp.client.ends`),
sockets, time (`sent` says which time-out applies), what follows from an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.reply import Reply
from mailismus.smtp.client.ends import TransactionEnds
from mailismus.smtp.client.groups import Group, make_groups
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.reply_parser import RawReply, make_reply
from mailismus.smtp.client.session import SessionEngine
from mailismus.smtp.client.starttls import TlsUse
from mailismus.smtp.client.state import Awaited, ClientEvent, ClientState
from mailismus.smtp.client.transaction import Phase, PhaseEvent, T, TransactionOwner

_DOT = b".\r\n"
_RSET = b"RSET\r\n"

# Read for each reply: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_OPEN, _STOPPING, _OVER = ClientState.OPEN, ClientState.STOPPING, Phase.OVER
_MAIL_SENT, _MAIL_ACCEPTED, _DATA_ACCEPTED = PhaseEvent.MAIL_SENT, PhaseEvent.MAIL_ACCEPTED, PhaseEvent.DATA_ACCEPTED
_DOT_SENT, _DOT_ANSWERED = PhaseEvent.DOT_SENT, PhaseEvent.DOT_ANSWERED
_TO_RESET, _TO_MAIL, _TO_RECIPIENT = Awaited.RESET, Awaited.MAIL, Awaited.RECIPIENT
_TO_DATA, _TO_DOT, _TO_LONE_DOT = Awaited.DATA, Awaited.DOT, Awaited.LONE_DOT
_TO_ENVELOPE = (_TO_MAIL, _TO_RECIPIENT, _TO_DATA)
"""The replies to the envelope of a message with one recipient."""


class ClientEngine(TransactionEnds[T]):
    """One session.

    `max_pipeline`: commands per group, 0: no limit; `pipelining`: what is known of the host; `Trust.known` is what the
    session found out. The others: as those of `SessionEngine`.
    """

    __slots__ = ("_begun", "_groups", "_max_pipeline", "_needs_reset", "_tail", "_trial")

    def __init__(
        self,
        owner: TransactionOwner[T],
        name: bytes,
        max_pipeline: int,
        pipelining: Pipelining = Pipelining.INNOCENT,
        needs_helo: bool = False,
        use: TlsUse = TlsUse.NEVER,
        wants_auth: bool = False,
    ) -> None:
        TransactionEnds.__init__(self, owner, name, pipelining, needs_helo, use, wants_auth)  # as there
        self._max_pipeline = max_pipeline or 1 << 30
        self._groups: list[Group] = []
        """Groups of commands not yet sent; the last group is next."""
        self._trial: T | None = None
        """The transaction behind a final dot that shows whether pipelining works."""
        self._begun = 0
        """Transactions begun."""
        self._tail = b""
        """The last two bytes of content sent in pieces."""
        self._needs_reset = False
        """Whether RSET goes before the next MAIL."""

    @property
    def is_idle(self) -> bool:
        """Whether the session is open and no transaction is in progress."""
        return self.state is _OPEN and not self._due and self._content is None

    # ------------------------------------------------------------------ what the owner calls

    def begin(self, transaction: T) -> None:
        """Begin a transaction: from `on_ready`, or while the session is idle."""
        assert self._envelope is None, "two transactions would mix"
        self._owner.send((self._write_envelope(transaction),))

    def send_content(self, content: bytes) -> None:
        """Send the content that `content_of` was called for, the final dot, and the next transaction behind it. It is one
        write, where `send_piece` and `end_content` need two."""
        transaction, self._content = self._content, None
        if transaction is not None:
            self._send_end(transaction, content if content[-2:] == b"\r\n" else content + b"\r\n")

    def send_piece(self, piece: bytes) -> None:
        """Send the next piece of the content that `content_of` was called for."""
        if self._content is not None and piece:
            self._tail = piece[-2:] if len(piece) > 1 else self._tail[-1:] + piece
            self._owner.send((piece,))

    def end_content(self) -> None:
        """Send the final dot, and the next transaction behind it: the content is complete."""
        transaction, self._content = self._content, None
        if transaction is not None:
            self._send_end(transaction, None if self._tail == b"\r\n" else b"\r\n")

    def spoil_content(self, reply: Reply) -> None:
        """End the transaction with `reply` (4xx), and the session: the content can't be read."""
        transaction, self._content = self._content, None
        if transaction is not None:
            transaction.move(PhaseEvent.UNREADABLE)
            self._owner.on_finished(transaction, reply)
            self._break(b"content unreadable")

    # ------------------------------------------------------------------ replies

    def _take_acceptance(self, replies: Sequence[RawReply]) -> bool:
        """Take all awaited replies in one step, if they accept all commands of a group, and before them the final dot of the
        present transaction: the usual case. False: nothing was taken."""
        due = self._due
        last = due[-1]
        is_whole = last is _TO_DATA
        accepted = replies[:-1] if is_whole else replies
        if max(accepted)[0] >= 300 or (is_whole and not 300 <= replies[-1][0] < 400):
            return False
        is_behind = due[0] is _TO_DOT
        first = due[1] if is_behind else due[0]
        if (first is not _TO_MAIL and first is not _TO_RECIPIENT) or (not is_whole and last is not _TO_RECIPIENT):
            return False
        if is_behind:
            due.popleft()
            self._on_dot(*replies[0])
            if self._is_over:
                return True
        transaction = self._envelope
        assert transaction is not None
        recipients = len(due) - is_whole
        due.clear()
        if first is _TO_MAIL:
            recipients -= 1
            transaction.move(_MAIL_ACCEPTED)
            if transaction is self._trial:
                self.trust.note_proof()
        transaction.answered += recipients
        if is_whole:
            self._on_data(*replies[-1])
        else:
            self._go_on()
        return True

    def _on_reply(self, awaited: Awaited, code: int, raw: bytes) -> None:
        if awaited is _TO_RECIPIENT:
            self._on_recipient(code, raw)
        elif awaited is _TO_DOT:
            self._on_dot(code, raw)
        elif awaited is _TO_MAIL:
            self._on_mail(code, raw)
        elif awaited is _TO_DATA:
            self._on_data(code, raw)
        elif awaited is _TO_RESET:
            self._on_reset(code, raw)
        elif awaited is _TO_LONE_DOT:
            self._on_lone_dot(code, raw)
        else:
            SessionEngine._on_reply(self, awaited, code, raw)

    def _be_open(self) -> None:
        """The session is open for transactions."""
        if self.opening.offers.pipelining and self._max_pipeline > 1:
            self.trust.offer()
        self._owner.on_ready()

    def _on_reset(self, code: int, raw: bytes) -> None:
        if code // 100 != 2:
            self._break(b"RSET was refused")
        elif not self._due:
            self._go_on()

    def _on_mail(self, code: int, raw: bytes) -> None:
        transaction = self._envelope
        assert transaction is not None
        if code < 300:
            self._accept_mail(transaction)
        elif code < 400:
            return self._break(b"unexpected reply to MAIL")
        elif self.trust.blame_for_reply(code, raw):
            return self._lose_step(transaction, code, raw)
        else:
            transaction.refuse()
            self._owner.on_finished(transaction, make_reply(code, raw))
        if not self._due:
            self._go_on()
        return None

    def _accept_mail(self, transaction: T) -> None:
        transaction.move(_MAIL_ACCEPTED)
        if transaction is self._trial:
            self.trust.note_proof()

    def _on_recipient(self, code: int, raw: bytes) -> None:
        transaction = self._envelope
        assert transaction is not None
        position = transaction.answered
        transaction.answered = position + 1
        if code >= 300 and transaction.phase is not _OVER:
            if code < 400:
                return self._break(b"unexpected reply to RCPT")
            if self.trust.blame_for_reply(code, raw):
                return self._lose_step(transaction, code, raw)
            reply = make_reply(code, raw)
            if code == 552 and not reply.enhanced and transaction.left > len(transaction.recipients) - position:
                reply = Reply(452, b"4.5.3", reply.text)  # an earlier one was accepted: too many recipients
            transaction.settle(position)
            if not transaction.left:
                transaction.move(PhaseEvent.REFUSED)
            self._owner.on_refused(transaction, position, reply)
        if not self._due:
            self._go_on()
        return None

    def _on_data(self, code: int, raw: bytes) -> None:
        transaction = self._envelope
        assert transaction is not None
        if code < 300:
            return self._break(b"unexpected reply to DATA")
        if code >= 400:
            if transaction.phase is not _OVER and self.trust.blame_for_reply(code, raw):
                return self._lose_step(transaction, code, raw)
            self._envelope, self._needs_reset = None, True
            if transaction.phase is not _OVER:
                self.trust.note_steps()
                transaction.refuse()
                self._owner.on_finished(transaction, make_reply(code, raw))
            return self._be_ready()
        if self._early:
            return None
        if not self.trust.is_used:
            self.trust.note_steps()
        self._envelope = None
        if transaction.phase is _OVER:
            return self._end_nobodys()
        transaction.move(_DATA_ACCEPTED)
        self._content, self._tail = transaction, b""
        content = self._owner.content_of(transaction)
        if content is not None and self._content is transaction:
            self.send_content(content)
        return None

    def _end_nobodys(self) -> None:
        """Answer 354 without an accepted recipient: by an empty message to nobody (RFC 2920 3.1)."""
        self._due.append(_TO_LONE_DOT)
        self._owner.send((_DOT,))

    def _on_lone_dot(self, code: int, raw: bytes) -> None:
        if 300 <= code < 400:
            return self._break(b"unexpected reply to the final dot")
        return self._be_ready()

    def _on_dot(self, code: int, raw: bytes) -> None:
        transaction = self.sent
        assert transaction is not None
        if 300 <= code < 400:
            return self._break(b"unexpected reply to the final dot")
        self.sent = None
        transaction.move(_DOT_ANSWERED)
        self._owner.on_finished(transaction, make_reply(code, raw))
        if self.state is _STOPPING:
            self._move(ClientEvent.END)
            self._owner.on_end(b"stopping")
        elif self._envelope is None:
            self._be_ready()
        return None

    # ------------------------------------------------------------------ parts

    def _write_envelope(self, transaction: T) -> bytes:
        """Return the first group of MAIL, RCPT and DATA; the replies to it are awaited from now on."""
        self._envelope = transaction
        transaction.move(_MAIL_SENT)
        transaction.is_first = not self._begun
        self._begun += 1
        offers = self.opening.offers
        parameters = b" SIZE=%d" % transaction.size_bytes if offers.size else b""
        if transaction.eightbit and offers.eightbit:
            parameters += b" BODY=8BITMIME"
        if transaction.utf8:
            parameters += b" SMTPUTF8"
        recipients = transaction.recipients
        if len(recipients) == 1 and self.trust.is_used and not self._needs_reset and self._max_pipeline > 2:
            self._due.extend(_TO_ENVELOPE)
            return b"MAIL FROM:<%b>%b\r\nRCPT TO:<%b>\r\nDATA\r\n" % (transaction.sender, parameters, recipients[0])
        mail = b"MAIL FROM:<%b>%b\r\n" % (transaction.sender, parameters)
        begin: list[Group] = [(mail, (_TO_MAIL,))]
        if self._needs_reset:
            begin.insert(0, (_RSET, (_TO_RESET,)))
            self._needs_reset = False
        self._groups = make_groups(begin, recipients, self._max_pipeline if self.trust.is_used else 1)
        self._groups.reverse()
        first, expected = self._groups.pop()
        self._due.extend(expected)
        return first

    def _go_on(self) -> None:
        """Send the next group: one that does not end with DATA has all its replies."""
        if self._early or self._is_over:
            return
        transaction = self._envelope
        assert transaction is not None
        if transaction.phase is _OVER:
            if transaction.answered:
                self.trust.note_steps()
            self._envelope, self._needs_reset = None, True
            self._groups.clear()
            self._be_ready()
        else:
            commands, expected = self._groups.pop()
            self._due.extend(expected)
            self._owner.send((commands,))

    def _send_end(self, transaction: T, before: bytes | None) -> None:
        """Send the final dot, with `before` (the rest of the content) before it and the next envelope behind it."""
        follower = None
        trust = self.trust
        if trust.is_used and self.state is not _STOPPING:
            follower = self._owner.next_transaction()
            if trust.is_waiting:
                self._trial = follower
        self.sent = transaction
        transaction.move(_DOT_SENT)
        self._due.append(_TO_DOT)
        end = _DOT + self._write_envelope(follower) if follower is not None else _DOT
        self._owner.send((before, end) if before else (end,))

    def _be_ready(self) -> None:
        if not self._early and not self._is_over:
            self._owner.on_ready()
