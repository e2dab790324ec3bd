"""Totals of delivery since the start: plain numbers, which metrics read on demand."""

from __future__ import annotations

from mailismus.observe.metrics import Distribution

QUEUED_S = (0.1, 0.5, 1, 5, 30, 60, 300, 900, 3600, 14400, 43200, 86400, 259200)
SENDING_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)


class DeliveryCounters:
    """Totals of delivery since the start."""

    def __init__(self) -> None:
        self.taken = 0
        """Entries taken from the queue."""
        self.delivered = self.deferred = self.failed = 0
        """Entries by outcome."""
        self.expired = 0
        """Deferred entries that have expired."""
        self.content_bytes = 0
        """Content bytes of successful transactions and local deliveries."""
        self.queued_s = Distribution(QUEUED_S)
        """From arrival to delivery, of each delivered entry."""
        self.sending_s = Distribution(SENDING_S)
        """Duration of transactions and local deliveries that delivered something."""
        self.given_back = 0
        """Entries given back untried."""
        self.in_doubt = 0
        """Entries that may have been sent (deferred)."""
        self.connections = self.connections_failed = 0
        self.tls_sessions: dict[tuple[str, ...], int] = {}
        """Sessions over TLS, by level, and whether the handshake was full or resumed an earlier session."""
        self.tls_failures: dict[tuple[str, ...], int] = {}
        """Sessions that missed TLS, by level and fault."""
        self.auth_sessions = 0
        """Sessions that were authenticated."""
        self.auth_failures: dict[tuple[str, ...], int] = {}
        """Sessions that were not, by kind."""
        self.transactions = 0
        self.local_deliveries = 0
        self.stored = 0
        """Recipients to whom an LMTP server has delivered."""
        self.lookups = 0

    def count_taken(self, entries: int) -> None:
        self.taken += entries

    def count_outcomes(self, delivered: int, deferred: int, failed: int, expired: int, content_bytes: int) -> None:
        """Count entries by outcome. `expired`: of the deferred ones, those whose time is over. `content_bytes`: of what was
        delivered. The times of deliveries are noted one by one, in `queued_s` and `sending_s`."""
        self.delivered += delivered
        self.deferred += deferred
        self.failed += failed
        self.expired += expired
        self.content_bytes += content_bytes

    def count_given_back(self, entries: int) -> None:
        self.given_back += entries

    def count_in_doubt(self, entries: int) -> None:
        self.in_doubt += entries

    def count_connection(self) -> None:
        self.connections += 1

    def count_failed_connection(self) -> None:
        self.connections_failed += 1

    def count_tls_session(self, level: str, *, is_resumed: bool) -> None:
        key = level, "resumed" if is_resumed else "full"
        self.tls_sessions[key] = self.tls_sessions.get(key, 0) + 1

    def count_tls_failure(self, level: str, fault: str) -> None:
        self.tls_failures[level, fault] = self.tls_failures.get((level, fault), 0) + 1

    def count_auth_session(self) -> None:
        self.auth_sessions += 1

    def count_auth_failure(self, kind: str) -> None:
        self.auth_failures[(kind,)] = self.auth_failures.get((kind,), 0) + 1

    def count_transaction(self) -> None:
        self.transactions += 1

    def count_local_delivery(self) -> None:
        self.local_deliveries += 1

    def count_stored(self) -> None:
        self.stored += 1
