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
