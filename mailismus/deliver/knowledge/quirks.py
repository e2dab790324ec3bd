"""Host quirks: known defects of a host, kept beyond the connection that showed them (pure).

*Rules*: a host is an address and a port. A quirk is forgotten `REMEMBERED_S` after it was learned, even if it was used
since: the host may have been repaired. At most `MAX_HOSTS` are remembered; the oldest entry is dropped first. Nothing is
kept over a restart: one connection finds a quirk again.

*Not here*: hosts that can't be reached (`schedule`), the consequences of a quirk (`smtp.client`).
"""

from __future__ import annotations

import attrs

from mailismus.smtp.client.pipelining import Pipelining

REMEMBERED_S = 3600.0
MAX_HOSTS = 10_000

Host = tuple[str, int]


@attrs.frozen
class HostQuirks:
    """The quirks of a host. `needs_helo`: it rejects EHLO."""

    pipelining: Pipelining = Pipelining.UNPROVEN
    needs_helo: bool = False


NO_QUIRKS = HostQuirks()


class QuirkMemory:
    """Quirks by host. `now`: monotonic seconds."""

    def __init__(self, max_hosts: int = MAX_HOSTS) -> None:
        self._max_hosts = max_hosts
        self._learned: dict[Host, tuple[float, HostQuirks]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._learned)

    def of(self, host: Host, now: float) -> HostQuirks:
        """The known quirks of this host."""
        learned = self._learned.get(host)
        if learned is None:
            return NO_QUIRKS
        if now - learned[0] > REMEMBERED_S:
            del self._learned[host]
            return NO_QUIRKS
        return learned[1]

    def note(self, host: Host, quirks: HostQuirks, now: float) -> None:
        """Store the quirks of this host, learned now."""
        self._learned.pop(host, None)
        if quirks == NO_QUIRKS:
            return
        if len(self._learned) >= self._max_hosts:
            del self._learned[next(iter(self._learned))]
        self._learned[host] = (now, quirks)
