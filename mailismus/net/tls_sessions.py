"""TLS sessions that may be resumed: for an hour after their whole handshake, at most a thousand.

*Rules*
- What a resumed connection gives takes the place of what it resumed, and gets no more time: certificates are judged in
  whole handshakes alone, and none must count for long after its end (RFC 8446 4.6.1).
- The key says who may resume a session. The caller puts into it all that was demanded and checked when it was made, so that
  none is resumed for somebody who demands more.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

MAX_SESSIONS = 1000
KEPT_S = 3600.0

S = TypeVar("S")


class TlsSessions(Generic[S]):
    """The sessions by key. `now`: monotonic seconds."""

    def __init__(self, limit: int = MAX_SESSIONS) -> None:
        self._limit = limit
        self._known: dict[Hashable, tuple[float, S]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Hashable, now: float) -> S | None:
        """The session that may be resumed."""
        known = self._known.get(key)
        if known is None:
            return None
        if now - known[0] > KEPT_S:
            del self._known[key]
            return None
        return known[1]

    def keep(self, key: Hashable, session: S, now: float, resumed: S | None = None) -> None:
        """Keep a session. `resumed`: the one that its connection resumed; None: its handshake was a whole one."""
        if resumed is not None:
            known = self._known.get(key)
            if known is not None and known[1] is resumed:
                self._known[key] = known[0], session
            return
        self._known.pop(key, None)
        while len(self._known) >= self._limit:
            del self._known[next(iter(self._known))]
        self._known[key] = now, session

    def forget(self, key: Hashable) -> None:
        """Forget a session: a handshake with it failed."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
