"""Pipelining that may not work: what is known of a host that offers it, and what a failure says about it (RFC 2920).

Some hosts offer PIPELINING and drop or mistake commands that were sent ahead. A failure alone does not show whether
pipelining was the cause; the same transaction sent step by step does.

*Rules*: a host is UNPROVEN until a transaction that was sent behind a final dot was answered. Under commands sent ahead, a
lost connection, a time-out or nonsense from an UNPROVEN host, or a reply such as 503 even from a PROVEN host, makes the host
DOUBTED: the transaction was no attempt, and is tried again step by step. If that works, the host is BROKEN and gets no
command ahead. If that fails too, pipelining was INNOCENT, and failures count as attempts from then on.

*Not here*: how long that is remembered (the deliverer's).
"""

from __future__ import annotations

import enum

from mailismus.smtp.client.reply_parser import make_reply


class Pipelining(enum.Enum):
    """What is known of the pipelining of a host."""

    UNPROVEN = "unproven"
    PROVEN = "proven"
    """Commands sent ahead were answered."""
    DOUBTED = "doubted"
    """Pipelining may have failed: the next attempt goes step by step."""
    BROKEN = "broken"
    """Pipelining failed, and going step by step worked."""
    INNOCENT = "innocent"
    """Transactions failed with and without pipelining: it is not the cause."""


_STEPS = (Pipelining.DOUBTED, Pipelining.BROKEN)
_OUT_OF_STEP = (500, 501, 502, 503)


class Trust:
    """What one session knows and learns of its host.

    `known`: the present knowledge, to be kept when the session ends. `is_used`: whether commands are sent ahead.
    """

    __slots__ = ("_is_offered", "is_used", "is_waiting", "known")

    def __init__(self, known: Pipelining) -> None:
        self.known = known
        self._is_offered = self.is_used = False
        self.is_waiting = known is Pipelining.UNPROVEN
        """Whether a reply to a transaction behind a final dot would prove that pipelining works."""

    def offer(self) -> None:
        """The host offers pipelining and our settings allow it: decide whether it is used."""
        self._is_offered = True
        self.is_used = self.known not in _STEPS

    def note_proof(self) -> None:
        """Note that a transaction sent behind a final dot was answered."""
        self.is_waiting = False
        self.known = Pipelining.PROVEN

    def note_steps(self) -> None:
        """Note that the host gave sensible replies to each step up to DATA."""
        if self.known is Pipelining.DOUBTED and self._is_offered:
            self.known = Pipelining.BROKEN

    def blame_for_loss(self) -> bool:
        """Judge a connection lost, or useless, before the replies to MAIL, RCPT or DATA. Return whether pipelining may be
        the cause."""
        return self._blame((Pipelining.UNPROVEN,))

    def blame_for_reply(self, code: int, raw: bytes) -> bool:
        """Judge the reply to a command that was in its place. Return whether pipelining may be the cause of a refusal."""
        if code not in _OUT_OF_STEP:
            return False
        enhanced = make_reply(code, raw).enhanced
        return (not enhanced or enhanced.startswith(b"5.5.")) and self._blame((Pipelining.UNPROVEN, Pipelining.PROVEN))

    def _blame(self, suspects: tuple[Pipelining, ...]) -> bool:
        if not self.is_used:
            if self.known is Pipelining.DOUBTED and self._is_offered:
                self.known = Pipelining.INNOCENT
            return False
        if self.known not in suspects:
            return False
        self.known = Pipelining.DOUBTED
        return True
