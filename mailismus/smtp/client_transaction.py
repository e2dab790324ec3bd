"""The client's transaction: one message's way through MAIL, RCPT, DATA and the final dot, as the client engine sees it.

Whoever delivers makes a subclass of it that knows more (which queue entries the recipients are). The engine alone
changes its state.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mailismus.mail.reply import Reply


class Phase(enum.Enum):
    """How far a transaction is; each says what a connection that is lost now means."""

    NEW = "new"
    ASKED = "asked"
    """MAIL was sent, its reply has not come."""
    ANSWERED = "answered"
    """MAIL was accepted."""
    CONTENT = "content"
    """354 has come; content is being sent, its final dot is not."""
    IN_DOUBT = "in doubt"
    """The first byte of the final dot has been handed to the transport: it may have been sent."""
    OVER = "over"
    """Every recipient's fate is known."""


class Transaction:
    """What the engine needs of a message and its recipients. Addresses have passed the grammar; `size_bytes`: what SIZE=
    tells of the message (RFC 1870: without dot-stuffing)."""

    __slots__ = ("answered", "eightbit", "is_first", "left", "phase", "recipients", "refused", "sender", "size_bytes")

    def __init__(self, sender: bytes, recipients: Sequence[bytes], size_bytes: int, eightbit: bool) -> None:
        self.sender = sender
        self.recipients = recipients
        self.size_bytes = size_bytes
        self.eightbit = eightbit
        self.refused: set[int] | None = None
        """Positions in `recipients` of those that were refused at RCPT; None: none was."""
        self.renew()

    def renew(self) -> None:
        """Back to the start, for another try. Those that were refused stay refused: rebuild it without them instead."""
        self.phase = Phase.NEW
        self.is_first = False
        """The first transaction of its connection."""
        self.answered = 0
        """Recipients whose RCPT has its reply."""
        self.left = len(self.recipients)
        """Recipients that were not refused."""

    def fate_when_lost(self, why: bytes, reply: Reply | None) -> Reply | None:
        """What a connection that is lost now means for it; None: it is untried. `reply`: the server's own last word."""
        if self.phase is Phase.IN_DOUBT:
            return Reply(451, b"4.4.2", why + b" after the final dot: the message may have been sent")
        if self.phase is Phase.ASKED and not self.is_first:
            return None
        if self.phase is Phase.CONTENT:
            return reply or Reply(451, b"4.4.2", why + b" while the message was sent")
        step = b"MAIL" if self.phase is Phase.ASKED else b"RCPT or DATA"
        return reply or Reply(451, b"4.4.2", why + b" before the reply to " + step)

    def is_lost_in_step(self, is_behind: bool) -> bool:
        """Whether, when the connection is lost now, replies to MAIL, RCPT or DATA were waited for on a connection that was
        alive: nothing was heard of it at all on one that was used before says nothing. `is_behind`: a final dot that is
        unanswered stands before it."""
        return self.phase is Phase.ANSWERED or (self.phase is Phase.ASKED and (self.is_first or is_behind))


T = TypeVar("T", bound=Transaction)


class TransactionOwner(Protocol[T]):
    """What the client engine calls, always synchronously, often from within `receive`.

    For each transaction that was begun: `on_refused` for each recipient refused at RCPT, then, for all that are left,
    `on_finished` or `on_untried` once (neither, if none is left).
    """

    def send(self, parts: Sequence[bytes]) -> None:
        """Write these now, in one act where possible."""

    def on_ready(self) -> None:
        """Nothing is under way: `begin`, `quit`, or leave it idle."""

    def next_transaction(self) -> T | None:
        """One more that may travel behind the final dot of the present one; None: none now."""

    def content_of(self, transaction: T) -> bytes | None:
        """The content as on the wire (lines end in CRLF, dot-stuffed, no final dot); None: it comes by `send_piece`
        and `end_content`, or `spoil_content`. May be called only once for each."""

    def on_refused(self, transaction: T, position: int, reply: Reply) -> None:
        """This recipient's RCPT was answered 4xx or 5xx."""

    def on_finished(self, transaction: T, reply: Reply) -> None:
        """All that are left: 2xx delivered, 4xx deferred, 5xx failed."""

    def on_untried(self, transaction: T) -> None:
        """All that are left: this was no attempt."""

    def on_unusable(self, reply: Reply) -> None:
        """There is no session with this host (4xx always): greeting or EHLO refused, or the connection went before.
        No transaction was begun. Close the connection."""

    def on_end(self, why: bytes) -> None:
        """The session is over by something amiss; every fate has been told. Abort the connection."""
