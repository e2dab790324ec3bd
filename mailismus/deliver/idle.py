"""Idle sessions by host: which one is closed to make room for a connection of another next hop (pure).

The next hop knows whether a session is idle; this index finds idle sessions by host.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from mailismus.deliver.hosts import Host

S = TypeVar("S")


class IdleSessions(Generic[S]):
    """Sessions without work; those of one host in the order in which they became idle."""

    def __init__(self) -> None:
        self._by_host: dict[Host, dict[S, None]] = {}

    def add(self, session: S, host: Host) -> None:
        """Add a session that became idle."""
        self._by_host.setdefault(host, {})[session] = None

    def discard(self, session: S, host: Host) -> None:
        """Remove a session that is not idle, or not any more."""
        sessions = self._by_host.get(host)
        if sessions is not None:
            sessions.pop(session, None)
            if not sessions:
                del self._by_host[host]

    def find(self) -> S | None:
        """An idle session of any host."""
        for sessions in self._by_host.values():
            return next(iter(sessions))
        return None

    def find_at(self, host: Host) -> S | None:
        """The session of this host that has been idle longest."""
        sessions = self._by_host.get(host)
        return next(iter(sessions)) if sessions else None
