"""The answer to `servers`: those that share the queue, as its services know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred

from mailismus.admin.protocol.servers import encode_alone, encode_server
from mailismus.queue.gaps import Gaps
from mailismus.queue.servers import KnownServer


class ServersAnswer:
    """All of them at once: they are few."""

    def __init__(self, ask: Callable[[], Deferred[Sequence[KnownServer]] | None]) -> None:
        self.gaps = Gaps()
        self._ask = ask
        self._is_over = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        self._is_over = True
        asked = self._ask()
        return [encode_alone()] if asked is None else [encode_server(server) for server in await asked]

    def close(self) -> None:
        """It holds nothing open."""
