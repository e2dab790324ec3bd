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
