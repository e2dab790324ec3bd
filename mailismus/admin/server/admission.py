"""Which requests the admin socket answers at a time, and which gives way to another. No I/O is here.

A listing takes as long as its client reads: an hour, where nobody turns the pages. So listings never take all places, and
where places are short the one that made no progress for longest gives way. An answer that makes progress is never cut off:
the new request is refused then, and told which processes hold the places.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import attrs

from mailismus.admin.protocol.wire import Refusal
from mailismus.observe.text import shown

PLACES = 20
"""Requests that are answered at a time."""

RESERVE = 4
"""Of these, places that no long answer takes."""

STALLED_S = 5.0
"""Without progress for so long, an answer may give way."""

_MOST_TEXT = 60
"""Characters of a command that are shown."""


@attrs.frozen
class Peer:
    """The process that connected, by the kernel's word. `pid` 0: it is of another pid namespace."""

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
    """Its answer is as long as the queue, or a message: it takes as long as the client reads."""
    give_way: Callable[[Refusal], None]
    since: float
    progressed_at: float
    """When the client last took all of it that there was, or the next part was made."""
    is_being_made: bool = False
    """The server is at work on it: the client is not what it waits for."""

    def describe(self, now: float) -> str:
        """For a line that tells who holds a place."""
        idle_s = 0.0 if self.is_being_made else now - self.progressed_at
        stalled = f", without progress for {idle_s:.0f} s" if idle_s >= STALLED_S else ""
        return f"{self.peer}: {_harmless(self.command)} for {now - self.since:.0f} s{stalled}"


class Admission:
    """The requests that are answered. `now`: seconds of a clock that does not jump."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._asked: dict[Asked, None] = {}

    def admit(self, asked: Asked) -> None:
        """Answer this one too; another may be told to give way. Raises `Refusal` where none can."""
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
        """It is answered, or not wanted any more. Harmless when repeated."""
        self._asked.pop(asked, None)

    def _rivals(self, asked: Asked) -> list[Asked]:
        """Those of which one has to give way; none where there is room."""
        if len(self._asked) >= PLACES:
            return list(self._asked)
        long = [one for one in self._asked if one.is_long]
        return long if asked.is_long and len(long) >= PLACES - RESERVE else []


def find_stalled(asked: Iterable[Asked], now: float) -> Asked | None:
    """The long answer that made no progress for longest, and where there is none such a short one; None: all go on."""
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
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
