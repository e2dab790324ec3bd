"""The memory of hosts whose TLS does not work: where it is not demanded, mail goes there without it. Pure.

*Rules*: a host is an address and a port. It is forgotten `REMEMBERED_S` after its TLS failed: it may have been repaired. At
most `MAX_HOSTS` are remembered; the oldest is dropped first. Nothing is kept over a restart.
"""

from __future__ import annotations

REMEMBERED_S = 3600.0
MAX_HOSTS = 10_000


class Fallbacks:
    """Hosts without working TLS. `now`: monotonic seconds."""

    def __init__(self, max_hosts: int = MAX_HOSTS) -> None:
        self._max_hosts = max_hosts
        self._failed_at: dict[tuple[str, int], float] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._failed_at)

    def has(self, host: tuple[str, int], now: float) -> bool:
        """Whether TLS with this host failed within the last hour."""
        failed_at = self._failed_at.get(host)
        if failed_at is None:
            return False
        if now - failed_at > REMEMBERED_S:
            del self._failed_at[host]
            return False
        return True

    def forget(self, host: tuple[str, int]) -> None:
        """Try TLS with this host again."""
        self._failed_at.pop(host, None)

    def clear(self) -> None:
        """Try TLS with all hosts again."""
        self._failed_at.clear()

    def note(self, host: tuple[str, int], now: float) -> None:
        """Note that TLS with this host fails."""
        self._failed_at.pop(host, None)
        while len(self._failed_at) >= self._max_hosts:
            del self._failed_at[next(iter(self._failed_at))]
        self._failed_at[host] = now
