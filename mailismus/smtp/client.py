"""The client engine: bytes from a server in, bytes to it and fates of transactions out (RFC 5321, 2920, 1870, 6152).

*Rules*
- Where the server offers PIPELINING, MAIL, RCPT and DATA travel in one write, in groups of at most `max_pipeline`
  commands, and the next transaction's first group travels behind the final dot of the present one. Otherwise step by step.
- A transaction is in doubt from the moment the first byte of its final dot is handed over. Whatever ends the connection
  then, or at any earlier point, means deferred, never delivered and never failed. What stands behind it in the
  pipeline, its MAIL unanswered, is untried; so is the first step on a connection that was used before (it may have been
  closed while our command was on its way).
- Replies are matched in order. One that came before its command was sent, a class of reply that the command can't have,
  or what is no reply at all, ends the session: after that nothing it says can be trusted.
- What fails under commands sent ahead, by a host that has not proved itself, is untried: see `smtp.pipelining`.
- 2xx after the final dot is delivered, 251 and 252 to RCPT are accepted, 552 to a later RCPT means "too many" (RFC 5321
  4.5.3.1.10), 421 ends the session wherever it comes, 5xx to the greeting or EHLO and HELO is not the message's fault: 4xx.

*Not here*: sockets, time (`waits_for_final` says which time-out applies), TLS, what an outcome leads to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic

from mailismus.mail.reply import Reply
from mailismus.smtp.client_opening import Opening
from mailismus.smtp.client_transaction import Phase, T, TransactionOwner
from mailismus.smtp.pipelining import Pipelining, Trust
from mailismus.smtp.reply_parser import ReplyParser, make_reply

_DOT = b".\r\n"
_RSET = b"RSET\r\n"


class ClientEngine(Generic[T]):
    """One session. `name`: how we call ourselves at EHLO; `max_pipeline`: commands a group, 0: no limit.

    `pipelining` and `needs_helo`: what is known of the host; what the session learned of it stands in `Trust.known` and
    `Opening.needs_helo`.
    """

    __slots__ = (
        *("_begun", "_content", "_due", "_early", "_envelope", "_groups", "_is_ending", "_is_over", "_is_session"),
        *("_max_pipeline", "_needs_reset", "_owner", "_parser", "_sent", "_tail", "_trial", "opening", "trust"),
    )

    def __init__(
        self,
        owner: TransactionOwner[T],
        name: bytes,
        max_pipeline: int,
        pipelining: Pipelining = Pipelining.INNOCENT,
        needs_helo: bool = False,
    ) -> None:
        self._owner = owner
        self._max_pipeline = max_pipeline or 1 << 30
        self._parser = ReplyParser()
        self._due: deque[Callable[[int, bytes], None]] = deque((self._on_opening,))
        self._groups: list[tuple[bytes, tuple[Callable[[int, bytes], None], ...]]] = []
        self._envelope: T | None = None  # MAIL to DATA
        self._content: T | None = None  # content comes in pieces
        self._sent: T | None = None  # the final dot is out
        self._begun = 0
        self._tail = b""
        self._needs_reset = self._early = self._is_session = self._is_over = self._is_ending = False
        self.opening = Opening(name, needs_helo)
        self.trust = Trust(pipelining)
        self._trial: T | None = None  # behind a final dot, while the host's pipelining is unproven

    @property
    def waits_for_final(self) -> bool:
        """Whether the next reply is the one to a final dot."""
        return self._sent is not None

    @property
    def is_idle(self) -> bool:
        """Whether a session stands and nothing is under way."""
        return self._is_session and not self._due and self._content is None and not self._is_over

    @property
    def is_session(self) -> bool:
        """Whether greeting and EHLO went well."""
        return self._is_session

    # ------------------------------------------------------------------ what the owner calls

    def receive(self, data: bytes) -> int:
        """Bytes from the server. Gives the number of replies that were whole: 0 is no progress."""
        if self._is_over:
            return 0
        parser, due = self._parser, self._due
        replies = parser.feed(data)
        self._early = len(replies) + parser.is_inside > len(due) or bool(parser.broken)
        for code, raw in replies:
            if code == 421:
                self._on_goodbye(raw)
            elif due:
                due.popleft()(code, raw)
            else:
                self._break(b"a reply came before its command: " + bytes(make_reply(code, raw)))
            if self._is_over:
                return len(replies)
        if self._early:
            self._break(parser.broken or b"a reply came before its command")
        return len(replies)

    def begin(self, transaction: T) -> None:
        """Start a transaction, from `on_ready` or while idle."""
        self._owner.send((self._write_envelope(transaction),))

    def send_piece(self, piece: bytes) -> None:
        """Content of the transaction that `content_of` was asked for, in order."""
        if self._content is not None and piece:
            self._tail = piece[-2:] if len(piece) > 1 else self._tail[-1:] + piece
            self._owner.send((piece,))

    def end_content(self) -> None:
        """The content is whole: the final dot goes out, the next transaction behind it."""
        transaction, self._content = self._content, None
        if transaction is not None:
            self._send_end(transaction, None if self._tail == b"\r\n" else b"\r\n")

    def spoil_content(self, reply: Reply) -> None:
        """The content can't be had: the transaction gets `reply` (4xx), the session ends, for it can't go on."""
        transaction, self._content = self._content, None
        if transaction is not None:
            transaction.phase = Phase.OVER
            self._owner.on_finished(transaction, reply)
            self._break(b"content unreadable")

    def quit(self) -> None:
        """Say QUIT, while idle. Nothing is expected any more; close when the server does, or soon."""
        if not self._is_over:
            self._is_over = True
            self._owner.send((b"QUIT\r\n",))

    def lost(self, why: bytes, reply: Reply | None = None) -> None:
        """The connection is gone, or given up: tells the fate of all that is open. Harmless when repeated.

        `why`: "connection lost", "timed out", ...; `reply`: the server's own last word for what is not in doubt.
        """
        if self._is_over:
            return
        self._is_over = True
        if not self._is_session:
            self._owner.on_unusable(reply or Reply(451, b"4.4.2", why + b" while the session was set up"))
            return
        envelope, is_untried = self._envelope, False
        if envelope is not None and reply is None and envelope.is_lost_in_step(self._sent is not None):
            is_untried = self.trust.is_to_blame_for_loss()
        for transaction in (self._sent, self._content, self._envelope):
            if transaction is None or transaction.phase is Phase.OVER:
                continue
            fate = None if is_untried and transaction is envelope else transaction.fate_when_lost(why, reply)
            if fate is None:
                self._owner.on_untried(transaction)
            else:
                self._owner.on_finished(transaction, fate)
        self._sent = self._content = self._envelope = None

    def cut_off(self) -> bool:
        """Stop: what is before its final dot is untried. True: one is behind it, and its reply is waited for; the session
        ends with that (`on_end`). False: the session is over, close the connection."""
        for transaction in (self._content, self._envelope):
            if transaction is not None and transaction.phase is not Phase.OVER:
                transaction.phase = Phase.OVER
                self._owner.on_untried(transaction)
        self._content = self._envelope = None  # what was untried is begun elsewhere, from the start
        self._is_ending = True
        if self._sent is None:
            self._is_over = True
        return self._sent is not None

    # ------------------------------------------------------------------ replies

    def _on_opening(self, code: int, raw: bytes) -> None:
        opening = self.opening
        command = opening.take(code, raw)
        if opening.is_refused:
            self._refuse_session(code, raw)
        elif self._early:
            pass
        elif command:
            self._due.append(self._on_opening)
            self._owner.send((command,))
        else:
            self._is_session = True
            if opening.offers.pipelining and self._max_pipeline > 1:
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
            if transaction.phase is Phase.ASKED:
                transaction.phase = Phase.ANSWERED
                if transaction is self._trial:
                    self.trust.works()
        elif code < 400:
            return self._break(b"unexpected reply to MAIL")
        elif self.trust.is_to_blame_for(code, raw):
            return self._lose_step(transaction, code, raw)
        elif transaction.phase is not Phase.OVER:
            transaction.phase = Phase.OVER
            self._owner.on_finished(transaction, make_reply(code, raw))
        if not self._due:
            self._go_on()
        return None

    def _on_recipient(self, code: int, raw: bytes) -> None:
        transaction = self._envelope
        assert transaction is not None
        position = transaction.answered
        transaction.answered = position + 1
        if code >= 300 and transaction.phase is not Phase.OVER:
            if code < 400:
                return self._break(b"unexpected reply to RCPT")
            if self.trust.is_to_blame_for(code, raw):
                return self._lose_step(transaction, code, raw)
            reply = make_reply(code, raw)
            if code == 552 and not reply.enhanced and transaction.left > len(transaction.recipients) - position:
                reply = Reply(452, b"4.5.3", reply.text)  # one before it was accepted: too many recipients
            if transaction.refused is None:
                transaction.refused = set()
            transaction.refused.add(position)
            transaction.left -= 1
            if not transaction.left:
                transaction.phase = Phase.OVER
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
            if transaction.phase is not Phase.OVER and self.trust.is_to_blame_for(code, raw):
                return self._lose_step(transaction, code, raw)
            self._envelope, self._needs_reset = None, True
            if transaction.phase is not Phase.OVER:
                self.trust.step_worked()
                transaction.phase = Phase.OVER
                self._owner.on_finished(transaction, make_reply(code, raw))
            return self._be_ready()
        if self._early:
            return None
        if not self.trust.is_used:
            self.trust.step_worked()
        self._envelope = None
        if transaction.phase is Phase.OVER:  # 354 though nobody was accepted: an empty message to no one (RFC 2920 3.1)
            self._due.append(self._on_lone_dot)
            self._owner.send((_DOT,))
            return None
        transaction.phase = Phase.CONTENT
        self._content, self._tail = transaction, b""
        content = self._owner.content_of(transaction)
        if content is not None and self._content is transaction:
            self._content = None
            self._send_end(transaction, content if content[-2:] == b"\r\n" else content + b"\r\n")
        return None

    def _on_lone_dot(self, code: int, raw: bytes) -> None:
        if 300 <= code < 400:
            return self._break(b"unexpected reply to the final dot")
        return self._be_ready()

    def _on_dot(self, code: int, raw: bytes) -> None:
        transaction = self._sent
        assert transaction is not None
        if 300 <= code < 400:
            return self._break(b"unexpected reply to the final dot")
        self._sent = None
        transaction.phase = Phase.OVER
        self._owner.on_finished(transaction, make_reply(code, raw))
        if self._is_ending:
            self._is_over = True
            self._owner.on_end(b"stopping")
        elif self._envelope is None:
            self._be_ready()
        return None

    # ------------------------------------------------------------------ parts

    def _write_envelope(self, transaction: T) -> bytes:
        """What of MAIL, RCPT and DATA goes out first; their replies are expected from now on."""
        self._envelope = transaction
        transaction.phase = Phase.ASKED
        transaction.is_first = not self._begun
        self._begun += 1
        offers = self.opening.offers
        parameters = b" SIZE=%d" % transaction.size_bytes if offers.size else b""
        if transaction.eightbit and offers.eightbit:
            parameters += b" BODY=8BITMIME"
        recipients = transaction.recipients
        if len(recipients) == 1 and self.trust.is_used and not self._needs_reset and self._max_pipeline > 2:
            self._due.extend((self._on_mail, self._on_recipient, self._on_data))
            return b"MAIL FROM:<%b>%b\r\nRCPT TO:<%b>\r\nDATA\r\n" % (transaction.sender, parameters, recipients[0])
        commands = [b"MAIL FROM:<%b>%b\r\n" % (transaction.sender, parameters)]
        commands += [b"RCPT TO:<%b>\r\n" % recipient for recipient in recipients]
        commands.append(b"DATA\r\n")
        steps = [self._on_mail, *[self._on_recipient] * len(recipients), self._on_data]
        if self._needs_reset:
            commands.insert(0, _RSET)
            steps.insert(0, self._on_reset)
            self._needs_reset = False
        each = self._max_pipeline if self.trust.is_used else 1
        self._groups = [
            (b"".join(commands[i : i + each]), tuple(steps[i : i + each])) for i in range(0, len(commands), each)
        ]
        self._groups.reverse()
        first, expected = self._groups.pop()
        self._due.extend(expected)
        return first

    def _go_on(self) -> None:
        """A group that does not end with DATA has all its replies."""
        if self._early or self._is_over:
            return
        transaction = self._envelope
        assert transaction is not None
        if transaction.phase is Phase.OVER:
            if transaction.answered:
                self.trust.step_worked()
            self._envelope, self._needs_reset = None, True
            self._groups.clear()
            self._be_ready()
        else:
            commands, expected = self._groups.pop()
            self._due.extend(expected)
            self._owner.send((commands,))

    def _send_end(self, transaction: T, before: bytes | None) -> None:
        """The final dot, `before` (content that is at hand) before it, the next envelope behind it."""
        follower = None
        trust = self.trust
        if trust.is_used and not self._is_ending:
            follower = self._owner.next_transaction()
            if trust.is_waiting:
                self._trial = follower
        self._sent = transaction
        transaction.phase = Phase.IN_DOUBT
        self._due.append(self._on_dot)
        end = _DOT + self._write_envelope(follower) if follower is not None else _DOT
        self._owner.send((before, end) if before else (end,))

    def _lose_step(self, transaction: T, code: int, raw: bytes) -> None:
        """The host lost its place among commands that were sent ahead: no attempt."""
        self._envelope = None
        transaction.phase = Phase.OVER
        self._owner.on_untried(transaction)
        self._break(b"host is out of step: " + bytes(make_reply(code, raw)))

    def _be_ready(self) -> None:
        if not self._early and not self._is_over:
            self._owner.on_ready()

    def _on_goodbye(self, raw: bytes) -> None:
        """421: the server ends the session. It answers what is due first, if anything."""
        reply = make_reply(421, raw)
        if not self._is_session:
            self._refuse_session(421, raw)
            return
        transaction, self._sent = self._sent, None
        if transaction is not None:
            transaction.phase = Phase.OVER
            self._owner.on_finished(transaction, reply)
        self.lost(b"host ended the session", reply)
        self._owner.on_end(bytes(reply))

    def _refuse_session(self, code: int, raw: bytes) -> None:
        reply = make_reply(code, raw)
        status = b"4" + reply.enhanced[1:] if reply.enhanced[:1] in (b"4", b"5") else b"4.3.2"
        self.lost(b"", Reply(451, status, b"host refused the session: " + bytes(reply)))

    def _break(self, why: bytes) -> None:
        """The session can't go on."""
        if not self._is_over:
            self.lost(why)
            self._owner.on_end(why)
