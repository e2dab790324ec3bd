"""The transactions in progress of a client session, and what the end of the session means for each (RFC 5321 3.8, 4.2.4.2).

*Rules*: every transaction that was begun is reported once. After its final dot, and before the reply to it, a transaction is
deferred, for the message may have been sent. Before that it is deferred, or untried where nothing shows that the server took
notice of it.

*Not here*: how a session ends (`smtp.client.session`), replies that do not end it (`smtp.client.engine`), the phases of a
transaction (`smtp.client.transaction`).
"""

from __future__ import annotations

from typing import Generic

from mailismus.mail.reply import Reply
from mailismus.smtp.client.pipelining import Pipelining, Trust
from mailismus.smtp.client.reply_parser import make_reply
from mailismus.smtp.client.session import SessionEngine
from mailismus.smtp.client.starttls import TlsUse
from mailismus.smtp.client.state import ClientEvent
from mailismus.smtp.client.transaction import Phase, PhaseEvent, T, TransactionOwner

_OVER = Phase.OVER


class TransactionEnds(SessionEngine, Generic[T]):
    """What `ClientEngine` is built on: a session, its transactions in progress, and what its end means for them.

    `sent`: the transaction whose final dot has no reply yet; `trust`: what is known of the host's pipelining.
    """

    __slots__ = ("_content", "_envelope", "sent", "trust")

    _owner: TransactionOwner[T]

    def __init__(
        self,
        owner: TransactionOwner[T],
        name: bytes,
        pipelining: Pipelining,
        needs_helo: bool,
        use: TlsUse,
        wants_auth: bool,
    ) -> None:
        SessionEngine.__init__(self, owner, name, needs_helo, use, wants_auth)  # a hot path: half the cost of `super`
        self.trust = Trust(pipelining)
        self._envelope: T | None = None
        """The transaction between MAIL and the reply to DATA."""
        self._content: T | None = None
        """The transaction whose content is sent in pieces."""
        self.sent: T | None = None

    @property
    def underway(self) -> list[T]:
        """The transactions in progress, in the order in which they were begun."""
        found = (self.sent, self._content, self._envelope)
        return [transaction for transaction in found if transaction is not None and transaction.phase is not _OVER]

    def cut_off(self) -> bool:
        """Stop: give back, untried, every transaction before its final dot.

        True: the reply to a final dot is awaited; the session ends with it (`on_end`). False: the session has ended, close
        the connection.
        """
        for transaction in (self._content, self._envelope):
            if transaction is not None and transaction.phase is not _OVER:
                transaction.move(PhaseEvent.UNTRIED)
                self._owner.on_untried(transaction)
        self._content = self._envelope = None  # the owner begins them elsewhere, from the start
        if self._is_over:
            return False
        self._move(ClientEvent.END if self.sent is None else ClientEvent.STOP)
        return self.sent is not None

    # ------------------------------------------------------------------ parts

    def _end_transactions(self, why: bytes, reply: Reply | None) -> None:
        """Report the outcome of all transactions, as `lost` has it."""
        envelope, is_untried = self._envelope, False
        if envelope is not None and reply is None and envelope.is_lost_in_step(self.sent is not None):
            is_untried = self.trust.blame_for_loss()
        for transaction in (self.sent, self._content, self._envelope):
            if transaction is None or transaction.phase is _OVER:
                continue
            fate = None if is_untried and transaction is envelope else transaction.fate_when_lost(why, reply)
            if fate is None:
                self._owner.on_untried(transaction)
            else:
                self._owner.on_finished(transaction, fate)
        self.sent = self._content = self._envelope = None

    def _end_open(self, reply: Reply) -> None:
        """Take 421 as the reply to the final dot, if that awaits one."""
        transaction, self.sent = self.sent, None
        if transaction is not None:
            transaction.move(PhaseEvent.DOT_ANSWERED)
            self._owner.on_finished(transaction, reply)
        super()._end_open(reply)

    def _lose_step(self, transaction: T, code: int, raw: bytes) -> None:
        """End the session: the host lost its place among the commands sent ahead. The transaction is untried."""
        self._envelope = None
        transaction.move(PhaseEvent.UNTRIED)
        self._owner.on_untried(transaction)
        self._break(b"host is out of step: " + bytes(make_reply(code, raw)))
