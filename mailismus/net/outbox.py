"""Bytes for clients, sent a few connections at a time, and at the latest before the reactor waits for events.

A send on a machine where the client has nothing else to do wakes the client, which often takes our processor at once, and
sleeps again after one reply. Sends in a row wake it once and give it more to do: fewer changes between processes, which cost
both of them system calls' worth of time and their caches.

*Rules*: bytes leave in the order in which they were put. None waits longer than the turn of the reactor.
"""

from __future__ import annotations

from typing import Protocol

LIMIT = 4
"""Sends in a row. More let the clients idle while we work, and the other way round."""


class Sender(Protocol):
    """A connection whose bytes wait here."""

    def transmit(self, data: bytes) -> bool:
        """Send these bytes now. Never raises; does nothing on a connection that is over."""


class Outbox:
    """Collects sends of several connections. `flush` is called before each wait of the reactor.

    `entries`: what waits, in order. Who appends the `LIMIT`th calls `flush`.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[Sender, bytes]] = []

    def flush(self) -> None:
        """Send everything."""
        if self.entries:
            entries, self.entries = self.entries, []
            for sender, data in entries:
                sender.transmit(data)
