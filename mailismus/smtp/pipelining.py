"""Pipelining that may not work: what is known of a host that offers it, and what a failure says about it (RFC 2920).

Some hosts offer PIPELINING and drop, mistake or trip over what was sent ahead. A failure alone does not tell whether
that was the cause; the same transaction sent step by step does.

*Rules*: a host is UNPROVEN until a transaction that travelled behind a final dot was answered. A connection lost, a time-out
or nonsense under commands sent ahead to an UNPROVEN host, or a reply such as 503 to one of them even from a PROVEN host,
makes it DOUBTED: the transaction was no attempt, and is tried again in steps. If they work the host is BROKEN and nothing
is sent ahead to it; if they fail too, sending ahead was INNOCENT, and what the host says counts from then on.

*Not here*: for how long that is remembered (the deliverer's).
"""

from __future__ import annotations

import enum

from mailismus.smtp.reply_parser import make_reply


class Pipelining(enum.Enum):
    """What is known of a host's pipelining."""

    UNPROVEN = "unproven"
    PROVEN = "proven"
    """It has worked."""
    DOUBTED = "doubted"
    """It may have failed: steps are tried."""
    BROKEN = "broken"
    """It failed, and steps worked."""
    INNOCENT = "innocent"
    """Something failed, with and without it."""


_STEPS = (Pipelining.DOUBTED, Pipelining.BROKEN)
_OUT_OF_STEP = (500, 501, 502, 503)


class Trust:
    """What one session knows, and learns, of its host. `known`: read it when the session is over."""

    __slots__ = ("_is_offered", "is_used", "is_waiting", "known")

    def __init__(self, known: Pipelining) -> None:
        self.known = known
        self._is_offered = self.is_used = False
        self.is_waiting = known is Pipelining.UNPROVEN
        """Whether a transaction behind a final dot would prove something."""

    def offer(self) -> None:
        """The host offers it, and we would like to use it; `is_used` says whether we do."""
        self._is_offered = True
        self.is_used = self.known not in _STEPS

    def works(self) -> None:
        """What travelled behind a final dot was answered."""
        self.is_waiting = False
        self.known = Pipelining.PROVEN

    def step_worked(self) -> None:
        """The host has answered every step, DATA or what took its place, and made sense."""
        if self.known is Pipelining.DOUBTED and self._is_offered:
            self.known = Pipelining.BROKEN

    def is_to_blame_for_loss(self) -> bool:
        """The connection is lost or useless while MAIL, RCPT or DATA wait for their replies."""
        return self._blame((Pipelining.UNPROVEN,))

    def is_to_blame_for(self, code: int, raw: bytes) -> bool:
        """This is the reply to a command that should have been in its place."""
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
