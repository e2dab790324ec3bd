"""Sessions that were not authenticated: counted, and logged once an hour.

*Not here*: the texts (`authentication.failure`), the hosts that are left alone (`schedule`).
"""

from __future__ import annotations

from twisted.logger import Logger

from mailismus.deliver.authentication.failure import AuthFailure
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.security.warnings import Warnings


class AuthMisses:
    """Counts and logs. `now`: monotonic seconds."""

    _log = Logger()

    def __init__(self, counters: DeliveryCounters) -> None:
        self._counters = counters
        self._warnings = Warnings()

    def note(self, label: bytes, username: str, failure: AuthFailure, now: float) -> None:
        """Note that a session with this host was not authenticated. `label`: the host as logged behind `relay=`."""
        self._counters.count_auth_failure(failure.kind.value)
        if self._warnings.tell((label, username, failure.kind), now):
            reply = bytes(failure.reply).decode("ascii")
            self._log.warn("Mail for {host} waits: {reply}", host=label.decode("ascii"), reply=reply)
