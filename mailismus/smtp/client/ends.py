"""The ends of a client session: what each means for the transactions that are in progress (RFC 5321 3.8, 4.2.4.2).

*Rules*: every transaction that was begun is reported once. After its final dot, and before the reply to it, a transaction is
deferred, for the message may have been sent. Before that it is deferred, or untried where nothing shows that the server took
notice of it. `_move` alone sets the state, by the table in `smtp.client.state`.

*Not here*: replies that do not end the session (`smtp.client`), the phases of a transaction (`smtp.client.transaction`).
"""

from __future__ import annotations

from typing import Generic

from mailismus.mail.reply import Reply
from mailismus.smtp.client.pipelining import Pipelining, Trust
from mailismus.smtp.client.reply_parser import make_reply
from mailismus.smtp.client.starttls import TlsFailure, TlsFault
from mailismus.smtp.client.state import END_STATES, OPENING_STATES, TLS_STATES, TRANSITIONS, ClientEvent, ClientState
from mailismus.smtp.client.transaction import Phase, PhaseEvent, T, TransactionOwner
from mailismus.smtp.transitions import IllegalTransition

_GREETING, _END, _OVER = ClientState.GREETING, ClientEvent.END, Phase.OVER


class ClientEnds(Generic[T]):
    """What `ClientEngine` is built on: the state, the transactions in progress, and every end of the session.

    `state`: the present state; `trust`: what is known of the host's pipelining.
    """

    __slots__ = ("_content", "_envelope", "_is_over", "_owner", "_sent", "refused", "state", "tls_failure", "trust")

    def __init__(self, owner: TransactionOwner[T], pipelining: Pipelining) -> None:
        self._owner = owner
        self.trust = Trust(pipelining)
        self.refused: tuple[ClientState, Reply] | None = None
        """The state in which the server refused the session, and its own reply; None: it did not."""
        self.tls_failure: TlsFailure | None = None
        """Why the session has no TLS, where that ended it."""
        self.state: ClientState = _GREETING
        self._is_over = False
        """Whether the state is one of `END_STATES`."""
        self._envelope: T | None = None
        """The transaction between MAIL and the reply to DATA."""
        self._content: T | None = None
        """The transaction whose content is sent in pieces."""
        self._sent: T | None = None
        """The transaction whose final dot has no reply yet."""

    @property
    def underway(self) -> list[T]:
        """The transactions in progress, in the order in which they were begun."""
        found = (self._sent, self._content, self._envelope)
        return [transaction for transaction in found if transaction is not None and transaction.phase is not _OVER]

    # ------------------------------------------------------------------ what the owner calls

    def lost(self, why: bytes, reply: Reply | None = None) -> None:
        """End the session: the connection is lost, or was given up. Report the outcome of all transactions. May be repeated.

        `why`: "connection lost", "timed out", ...; `reply`: the server's last word, for transactions that are not in doubt.
        """
        if self._is_over:
            return
        is_opening = self.state in OPENING_STATES
        if self.state in TLS_STATES and self.tls_failure is None:
            self.tls_failure = TlsFailure(TlsFault.HANDSHAKE, why)
        self._move(_END)
        if is_opening:
            self._owner.on_unusable(reply or Reply(451, b"4.4.2", why + b" while the session was set up"))
            return
        envelope, is_untried = self._envelope, False
        if envelope is not None and reply is None and envelope.is_lost_in_step(self._sent is not None):
            is_untried = self.trust.blame_for_loss()
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
        """Stop: give back, untried, every transaction before its final dot.

        True: the reply to a final dot is awaited; the session ends with it (`on_end`). False: the session has ended, close
        the connection.
        """
        for transaction in (self._content, self._envelope):
            if transaction is not None and transaction.phase is not Phase.OVER:
                transaction.move(PhaseEvent.UNTRIED)
                self._owner.on_untried(transaction)
        self._content = self._envelope = None  # the owner begins them elsewhere, from the start
        if self._is_over:
            return False
        self._move(_END if self._sent is None else ClientEvent.STOP)
        return self._sent is not None

    def _move(self, event: ClientEvent) -> None:
        """Apply an event to the state. Nothing else sets the state."""
        try:
            state = self.state = TRANSITIONS[self.state][event]
        except KeyError:
            raise IllegalTransition(self.state, event) from None
        self._is_over = state in END_STATES

    # ------------------------------------------------------------------ ends of the server's making

    def _on_goodbye(self, raw: bytes) -> None:
        """421: the server ends the session. It is the reply to the first command that awaits one."""
        reply = make_reply(421, raw)
        if self.state is ClientState.STARTTLS:
            self._miss_tls(TlsFailure(TlsFault.REFUSED, bytes(reply)))
            return
        if self.state is ClientState.AUTH:
            self._owner.on_auth_reply(421, raw)
            return
        if self.state in OPENING_STATES:
            self._refuse_session(421, raw)
            return
        transaction, self._sent = self._sent, None
        if transaction is not None:
            transaction.move(PhaseEvent.DOT_ANSWERED)
            self._owner.on_finished(transaction, reply)
        self.lost(b"host ended the session", reply)
        self._owner.on_end(bytes(reply))

    def _miss_tls(self, failure: TlsFailure) -> None:
        """End the session: it has no TLS, or none that is good enough."""
        if not self._is_over:
            self.tls_failure = failure
            self.lost(b"no TLS")

    def _refuse_session(self, code: int, raw: bytes) -> None:
        reply = make_reply(code, raw)
        self.refused = (self.state, reply)
        status = b"4" + reply.enhanced[1:] if reply.enhanced[:1] in (b"4", b"5") else b"4.3.2"
        self.lost(b"", Reply(451, status, b"host refused the session: " + bytes(reply)))

    def _lose_step(self, transaction: T, code: int, raw: bytes) -> None:
        """End the session: the host lost its place among the commands sent ahead. The transaction is untried."""
        self._envelope = None
        transaction.move(PhaseEvent.UNTRIED)
        self._owner.on_untried(transaction)
        self._break(b"host is out of step: " + bytes(make_reply(code, raw)))

    def _break(self, why: bytes) -> None:
        """End the session by a fault; `why` goes into the log."""
        if not self._is_over:
            self.lost(why)
            self._owner.on_end(why)
