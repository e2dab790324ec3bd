"""Parked destinations: those with jobs that wait for a limit or a trial, by host, and in turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Host


class ParkedDestinations:
    """The destinations whose own line is not empty. The line itself is `Destination.parked`."""

    def __init__(self) -> None:
        self._hosts_of: dict[Destination, Sequence[Host]] = {}
        """With their hosts when the first job was parked; who had a turn last is last."""
        self._at: dict[Host, dict[Destination, None]] = {}

    def __len__(self) -> int:
        return len(self._hosts_of)

    def __contains__(self, host: Host) -> bool:
        """Whether jobs wait for this host."""
        return host in self._at

    def at(self, host: Host) -> Sequence[Destination]:
        """The destinations with jobs that wait for this host."""
        return list(self._at.get(host, ()))

    def add(self, destination: Destination) -> None:
        """Add a destination with a parked job. Harmless when repeated."""
        if destination not in self._hosts_of:
            self._hosts_of[destination] = hosts = tuple(destination.labels)
            for host in hosts:
                self._at.setdefault(host, {})[destination] = None

    def remove(self, destination: Destination) -> None:
        """Remove a destination none of whose jobs is parked. Harmless when repeated."""
        for host in self._hosts_of.pop(destination, ()):
            waiting = self._at[host]
            del waiting[destination]
            if not waiting:
                del self._at[host]

    def next_ones(self, count: int) -> list[Destination]:
        """At most so many whose turn it is; the others have theirs before these again."""
        found = list(self._hosts_of)[:count]
        for destination in found:
            self._hosts_of[destination] = self._hosts_of.pop(destination)
        return found

    def clear(self) -> None:
        """Remove all."""
        self._hosts_of.clear()
        self._at.clear()
