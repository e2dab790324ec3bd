"""The idle sessions, by their hosts: which one makes room when somebody else needs a connection (pure).

Whether a session is idle, and for which next hop, its next hop knows; this is the way from a host to it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from mailismus.deliver.hosts import Host

S = TypeVar("S")


class IdleSessions(Generic[S]):
    """Sessions that have nothing to do, those of one host in the order they became idle."""

    def __init__(self) -> None:
        self._by_host: dict[Host, dict[S, None]] = {}

    def add(self, session: S, host: Host) -> None:
        """It is idle from now on."""
        self._by_host.setdefault(host, {})[session] = None

    def discard(self, session: S, host: Host) -> None:
        """It is not, or not any more."""
        sessions = self._by_host.get(host)
        if sessions is not None:
            sessions.pop(session, None)
            if not sessions:
                del self._by_host[host]

    def find(self) -> S | None:
        """One of any host."""
        for sessions in self._by_host.values():
            return next(iter(sessions))
        return None

    def find_at(self, host: Host) -> S | None:
        """One of this host, the longest idle."""
        sessions = self._by_host.get(host)
        return next(iter(sessions)) if sessions else None
