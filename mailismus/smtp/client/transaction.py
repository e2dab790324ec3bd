"""The transaction of a client session: one message's way through MAIL, RCPT, DATA and the final dot (RFC 5321 3.3).

    event          from                             to
    MAIL_SENT      NEW                              ASKED
    MAIL_ACCEPTED  ASKED                            ANSWERED
    DATA_ACCEPTED  ANSWERED                         CONTENT
    DOT_SENT       CONTENT                          IN_DOUBT
    DOT_ANSWERED   IN_DOUBT                         OVER
    REFUSED        ASKED ANSWERED                   OVER
    UNREADABLE     CONTENT                          OVER
    UNTRIED        ASKED ANSWERED CONTENT           OVER
    RENEWED        NEW ASKED ANSWERED CONTENT OVER  NEW

*Rules*: `TRANSITIONS` alone says which phase follows; `Transaction.move` applies it, and nothing else sets the phase. A
transaction whose final dot was sent is never untried and never begun again: only its reply, or the loss of the connection,
ends it. A lost connection leaves the phase as it was, for the owner's decision.

The deliverer makes a subclass that also knows the queue entries of the recipients.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mailismus.mail.reply import Reply
from mailismus.smtp.client.session import EngineOwner
from mailismus.smtp.transitions import IllegalTransition


class Phase(enum.Enum):
    """How far a transaction is. Each phase decides what a lost connection means."""

    NEW = "not begun"
    ASKED = "MAIL was sent; its reply has not been received"
    ANSWERED = "MAIL was accepted"
    CONTENT = "354 was received; content is being sent, its final dot is not"
    IN_DOUBT = "the first byte of the final dot was given to the transport: it may have been sent"
    OVER = "the outcome of every recipient is known, or the transaction was not tried"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class PhaseEvent(enum.Enum):
    """What changes the phase of a transaction."""

    MAIL_SENT = "MAIL was sent"
    MAIL_ACCEPTED = "MAIL was accepted"
    DATA_ACCEPTED = "354 was received for at least one recipient"
    DOT_SENT = "the final dot was sent"
    DOT_ANSWERED = "the reply to the final dot was received"
    REFUSED = "MAIL, DATA or the last recipient was refused"
    UNREADABLE = "the content can't be read from the queue"
    UNTRIED = "the transaction is given back without an attempt"
    RENEWED = "the owner begins the transaction anew on another connection"

    __hash__ = object.__hash__  # as above


TRANSITIONS = {
    Phase.NEW: {PhaseEvent.MAIL_SENT: Phase.ASKED, PhaseEvent.RENEWED: Phase.NEW},
    Phase.ASKED: {
        PhaseEvent.MAIL_ACCEPTED: Phase.ANSWERED,
        PhaseEvent.REFUSED: Phase.OVER,
        PhaseEvent.UNTRIED: Phase.OVER,
        PhaseEvent.RENEWED: Phase.NEW,
    },
    Phase.ANSWERED: {
        PhaseEvent.DATA_ACCEPTED: Phase.CONTENT,
        PhaseEvent.REFUSED: Phase.OVER,
        PhaseEvent.UNTRIED: Phase.OVER,
        PhaseEvent.RENEWED: Phase.NEW,
    },
    Phase.CONTENT: {
        PhaseEvent.DOT_SENT: Phase.IN_DOUBT,
        PhaseEvent.UNREADABLE: Phase.OVER,
        PhaseEvent.UNTRIED: Phase.OVER,
        PhaseEvent.RENEWED: Phase.NEW,
    },
    Phase.IN_DOUBT: {PhaseEvent.DOT_ANSWERED: Phase.OVER},
    Phase.OVER: {PhaseEvent.RENEWED: Phase.NEW},
}
"""Phase -> event -> next phase. An event that a phase does not have is a defect of this program (`IllegalTransition`)."""
_NEW = Phase.NEW


class Transaction:
    """A message and its recipients, as the engine needs them.

    Addresses have passed the grammar. `size_bytes`: the value of SIZE= (RFC 1870: without dot-stuffing). `utf8`: addresses
    or header need SMTPUTF8 (RFC 6531); only a host that offers it gets such a transaction.
    """

    __slots__ = (
        *("answered", "eightbit", "is_first", "left", "phase", "recipients", "sender", "settled", "size_bytes", "utf8"),
    )

    def __init__(
        self, sender: bytes, recipients: Sequence[bytes], size_bytes: int, eightbit: bool, utf8: bool = False
    ) -> None:
        self.sender = sender
        self.recipients = recipients
        self.size_bytes = size_bytes
        self.eightbit = eightbit
        self.utf8 = utf8
        self.settled: set[int] | None = None
        """Positions in `recipients` with an outcome of their own: refused at RCPT, or answered for themselves by LMTP; None:
        none."""
        self.phase = _NEW
        self.is_first = False
        """The first transaction of its connection."""
        self.answered = 0
        """Recipients whose RCPT has its reply."""
        self.left = len(recipients)
        """Recipients without an outcome of their own, if MAIL and DATA were not refused; 0 of a transaction that is over
        means that its content was not sent."""

    def move(self, event: PhaseEvent) -> None:
        """Apply an event to the phase. Nothing else sets the phase."""
        try:
            self.phase = TRANSITIONS[self.phase][event]
        except KeyError:
            raise IllegalTransition(self.phase, event) from None

    def settle(self, position: int) -> None:
        """Note that a recipient has an outcome of its own."""
        if self.settled is None:
            self.settled = set()
        self.settled.add(position)
        self.left -= 1

    def refuse(self) -> None:
        """Note that MAIL or DATA was refused, and with it all recipients."""
        self.move(PhaseEvent.REFUSED)
        self.left = 0

    def renew(self) -> None:
        """Begin anew, for another attempt. Settled recipients stay settled: rebuild the transaction without them instead."""
        self.move(PhaseEvent.RENEWED)
        self.is_first = False
        self.answered = 0
        self.left = len(self.recipients)

    def fate_when_lost(self, why: bytes, reply: Reply | None) -> Reply | None:
        """Return the outcome if the connection is lost now; None: untried. `reply`: the server's last word, if it said
        one."""
        if self.phase is Phase.IN_DOUBT:
            return Reply(451, b"4.4.2", why + b" after the final dot: the message may have been sent")
        if self.phase is Phase.ASKED and not self.is_first:
            return None
        if self.phase is Phase.CONTENT:
            return reply or Reply(451, b"4.4.2", why + b" while the message was sent")
        step = b"MAIL" if self.phase is Phase.ASKED else b"RCPT or DATA"
        return reply or Reply(451, b"4.4.2", why + b" before the reply to " + step)

    def is_lost_in_step(self, is_behind: bool) -> bool:
        """Whether, if the connection is lost now, it was alive and the reply to MAIL, RCPT or DATA was awaited.

        Silence on a connection that was used before shows nothing: it may have been closed already. `is_behind`: the
        transaction stands behind a final dot without a reply.
        """
        return self.phase is Phase.ANSWERED or (self.phase is Phase.ASKED and (self.is_first or is_behind))


T = TypeVar("T", bound=Transaction)


class TransactionOwner(EngineOwner, Protocol[T]):
    """What the client engine calls beside.

    For each transaction that was begun: `on_refused` for each recipient refused at RCPT, then, for all that are left,
    `on_finished` or `on_untried` once (neither, if none is left).
    """

    def next_transaction(self) -> T | None:
        """Return a transaction to send behind the final dot of the present one; None: none now."""

    def content_of(self, transaction: T) -> bytes | None:
        """Return the content as on the wire: lines end in CRLF, dot-stuffed, without the final dot. Called once for each.

        None: it comes later, whole by `send_content`, or in pieces by `send_piece` and `end_content`; or `spoil_content` is
        called.
        """

    def on_refused(self, transaction: T, position: int, reply: Reply) -> None:
        """RCPT of this recipient was answered with 4xx or 5xx."""

    def on_finished(self, transaction: T, reply: Reply) -> None:
        """All recipients that are left have this outcome: 2xx delivered, 4xx deferred, 5xx failed."""

    def on_untried(self, transaction: T) -> None:
        """All recipients that are left were not tried: no attempt was made."""
