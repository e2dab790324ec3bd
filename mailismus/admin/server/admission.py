"""Admission of requests at the admin socket: how many are answered at the same time, and which one gives way. No I/O.

A listing takes as long as its client reads: an hour, if a pager waits for its user. So listings never take all places, and
when places are short, the one without progress for longest gives way. An answer with progress is never cut off: then the new
request is refused, and told which processes hold the places.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import attrs

from mailismus.admin.protocol.wire import Refusal
from mailismus.observe.text import shown

PLACES = 20
"""Requests that are answered at the same time."""

RESERVE = 4
"""Places among them that no long answer takes."""

STALLED_S = 5.0
"""An answer without progress for this time may give way."""

_MAX_TEXT = 60
"""Characters of a command that are shown."""


@attrs.frozen
class Peer:
    """The process at the other end, as the kernel tells. `pid` 0: a process of another pid namespace."""

    pid: int
    uid: int

    def __str__(self) -> str:
        return f"pid {self.pid or 'unknown'} (uid {self.uid})"


@attrs.define(eq=False)
class Asked:
    """A request that is answered. Times are of a clock that does not jump."""

    peer: Peer
    command: str
    is_long: bool
    """The answer is as long as the queue, or a message: it takes as long as the client reads."""
    give_way: Callable[[Refusal], None]
    since: float
    progressed_at: float
    """When the client last took all available bytes, or the next part was made."""
    is_being_made: bool = False
    """The server is making the next part: the client is not the cause of the delay."""

    def describe(self, now: float) -> str:
        """Return the text about this request in a refusal of another."""
        idle_s = 0.0 if self.is_being_made else now - self.progressed_at
        stalled = f", without progress for {idle_s:.0f} s" if idle_s >= STALLED_S else ""
        return f"{self.peer}: {_harmless(self.command)} for {now - self.since:.0f} s{stalled}"


class Admission:
    """The requests that are answered. `now`: seconds of a clock that does not jump."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._asked: dict[Asked, None] = {}

    def admit(self, asked: Asked) -> None:
        """Admit this request; another may be told to give way. Raises `Refusal` if none can."""
        rivals = self._rivals(asked)
        if rivals:
            now = self.now()
            slowest = find_stalled(rivals, now)
            if slowest is None:
                raise Refusal(os.EX_TEMPFAIL, _crowded(rivals, now))
            self.leave(slowest)
            slowest.give_way(Refusal(os.EX_TEMPFAIL, _gave_way(slowest, asked, now)))
        self._asked[asked] = None

    def leave(self, asked: Asked) -> None:
        """Release the place of a request that is answered or abandoned. Harmless when repeated."""
        self._asked.pop(asked, None)

    def _rivals(self, asked: Asked) -> list[Asked]:
        """Return the requests of which one has to give way; empty if there is a free place."""
        if len(self._asked) >= PLACES:
            return list(self._asked)
        long = [one for one in self._asked if one.is_long]
        return long if asked.is_long and len(long) >= PLACES - RESERVE else []


def find_stalled(asked: Iterable[Asked], now: float) -> Asked | None:
    """Return the long answer without progress for longest, else such a short one; None: all make progress."""
    stalled = [one for one in asked if not one.is_being_made and now - one.progressed_at >= STALLED_S]
    return min(stalled, key=lambda one: (not one.is_long, one.progressed_at), default=None)


def _crowded(rivals: Iterable[Asked], now: float) -> str:
    holders = [one.describe(now) for one in rivals]
    return f"the server answers {len(holders)} commands already, try again: {'; '.join(holders)}"


def _gave_way(slowest: Asked, asked: Asked, now: float) -> str:
    idle_s = now - slowest.progressed_at
    other = f"{_harmless(asked.command)} of {asked.peer}"
    return f"nobody read on for {idle_s:.0f} s, and the answer gave way to {other}; ask again"


def _harmless(command: str) -> str:
    text = shown(command.encode("utf-8", "backslashreplace"))
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
