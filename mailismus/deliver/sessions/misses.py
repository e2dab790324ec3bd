"""Sessions that missed TLS: what follows for the mail, counted, and logged once an hour.

*Not here*: what is demanded (`security.policy`), the texts (`security.failure`), the host that is left alone (`schedule`).
"""

from __future__ import annotations

from twisted.logger import Logger

from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.security.failure import may_go_plain, reply_of
from mailismus.deliver.security.fallback import Fallbacks
from mailismus.deliver.security.warnings import Warnings
from mailismus.mail.reply import Reply
from mailismus.smtp.client.starttls import TlsFailure


class TlsMisses:
    """What follows where TLS fails. `now`: monotonic seconds."""

    _log = Logger()

    def __init__(self, fallbacks: Fallbacks, counters: DeliveryCounters) -> None:
        self._fallbacks, self._counters = fallbacks, counters
        self._warnings = Warnings()

    def note(self, host: Host, label: bytes, failure: TlsFailure, now: float) -> Reply | None:
        """Note that a session with this host missed TLS. Returns the reply to the mail; None: it goes without TLS, over a
        new connection. `label`: the host as logged behind `relay=`."""
        requirement = host.profile.requirement
        self._counters.count_tls_failure(requirement.level.value, failure.fault.value)
        reply = reply_of(failure, label, requirement)
        is_told = self._warnings.tell((label, failure.fault, requirement.demanded_by), now)
        words = {"host": label.decode("ascii"), "reply": bytes(reply).decode("ascii")}
        if may_go_plain(failure, host.profile):
            self._fallbacks.note((host.address, host.port), now)
            if is_told:
                self._log.warn("Mail to {host} goes without TLS for an hour: {reply}", **words)
            return None
        if is_told:
            self._log.warn("Mail for {host} waits: {reply}", **words)
        return reply
