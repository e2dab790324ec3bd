"""Counters of the DNS client: plain numbers that only grow, for metrics (pure)."""

from __future__ import annotations

import attrs


@attrs.define
class DnsCounters:
    """Totals since the start of the program."""

    questions: int = 0
    """Questions that the cache did not answer; the same question of several callers counts once."""
    cache_hits: int = 0
    queries: int = 0
    """Messages sent to name servers, by UDP and TCP, including repetitions."""
    answers: int = 0
    """Messages that answered a question, including denials."""
    failures: int = 0
    """Questions that no server answered."""
    timeouts: int = 0
    """Name servers that did not answer a question in time."""
    refused: int = 0
    """Name servers that could not be reached: no process listens, or there is no route."""
    server_failures: int = 0
    """SERVFAIL, REFUSED and other refusals, and unusable answers."""
    forged: int = 0
    """Messages that matched no question."""
    truncated: int = 0
    """Answers that were repeated by TCP."""
    rejected: int = 0
    """Questions rejected because too many waited."""

    def count_question(self) -> None:
        """Count a question."""
        self.questions += 1

    def count_cache_hit(self) -> None:
        """Count a question that was answered from the cache."""
        self.cache_hits += 1

    def count_query(self) -> None:
        """Count a message that was sent."""
        self.queries += 1

    def count_answer(self) -> None:
        """Count a message that answered a question."""
        self.answers += 1

    def count_failure(self) -> None:
        """Count a question that stayed without an answer."""
        self.failures += 1

    def count_timeout(self) -> None:
        """Count a name server that did not answer in time."""
        self.timeouts += 1

    def count_refused(self) -> None:
        """Count a name server that could not be reached."""
        self.refused += 1

    def count_server_failure(self) -> None:
        """Count a name server that refused, or whose answer was invalid."""
        self.server_failures += 1

    def count_forged(self) -> None:
        """Count a message that matched no question."""
        self.forged += 1

    def count_truncated(self) -> None:
        """Count a question that is repeated by TCP."""
        self.truncated += 1

    def count_rejected(self) -> None:
        """Count a question that was rejected because too many waited."""
        self.rejected += 1
