"""The counters of the DNS client: plain numbers that only grow, for whoever shows them (pure)."""

from __future__ import annotations

import attrs


@attrs.define
class DnsCounters:
    """Since the start of the program."""

    questions: int = 0
    """Asked by the program and not answered from the cache; many at once for one question count once."""
    cache_hits: int = 0
    queries: int = 0
    """Messages sent to name servers, by UDP and TCP, repetitions too."""
    answers: int = 0
    """Messages that answered a question, denials too."""
    failures: int = 0
    """Questions that nobody answered."""
    timeouts: int = 0
    """Name servers that did not answer a question in time."""
    refused: int = 0
    """Name servers that could not be reached: nobody listens there, or no way leads there."""
    server_failures: int = 0
    """SERVFAIL, REFUSED and other refusals, and answers that make no sense."""
    forged: int = 0
    """Messages that fitted no question of ours."""
    truncated: int = 0
    """Answers that were asked for again by TCP."""
    rejected: int = 0
    """Questions that found no room to wait."""

    def count_question(self) -> None:
        """One more question."""
        self.questions += 1

    def count_cache_hit(self) -> None:
        """A question was answered from the cache."""
        self.cache_hits += 1

    def count_query(self) -> None:
        """A message was sent."""
        self.queries += 1

    def count_answer(self) -> None:
        """A message answered a question."""
        self.answers += 1

    def count_failure(self) -> None:
        """A question stayed without an answer."""
        self.failures += 1

    def count_timeout(self) -> None:
        """A name server did not answer in time."""
        self.timeouts += 1

    def count_refused(self) -> None:
        """A name server could not be reached."""
        self.refused += 1

    def count_server_failure(self) -> None:
        """A name server refused, or its answer made no sense."""
        self.server_failures += 1

    def count_forged(self) -> None:
        """A message fitted no question."""
        self.forged += 1

    def count_truncated(self) -> None:
        """A question is repeated by TCP."""
        self.truncated += 1

    def count_rejected(self) -> None:
        """A question found no room to wait."""
        self.rejected += 1
