"""Overview: the figures of a running server at one moment, for a live screen (pure).

*Rules*: an overview is made of numbers that are in memory, and has a bounded size: it costs the same for an empty queue and
for a million entries. Counters grow from 0 at the start of the server; rates come from two overviews.

*Not here*: what fills it (`deliver.why.overview`, `start.overview`), its form on the wire (`admin.protocol.overview`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

FIGURES = (
    *("mailismus_submit_connections", "mailismus_submit_messages_total", "mailismus_submit_recipients_total"),
    *("mailismus_submit_content_bytes_total", "mailismus_submit_refused_total"),
    *("mailismus_deliveries_total", "mailismus_deliver_held_entries", "mailismus_deliver_waiting_jobs"),
    *("mailismus_deliver_content_bytes_total", "mailismus_deliver_connections", "mailismus_deliver_connections_total"),
    *("mailismus_deliver_connections_failed_total", "mailismus_deliver_next_hops", "mailismus_deliver_troubled_hosts"),
    *("mailismus_deliver_local_stuck", "mailismus_reports_total"),
    *("mailismus_queue_entries", "mailismus_queue_refusing", "mailismus_queue_out_entries", "mailismus_queue_in_doubt"),
    *("mailismus_journal_batches_total", "mailismus_journal_commits_total", "mailismus_journal_failures_total"),
    *("mailismus_journal_written_bytes_total", "mailismus_journal_barrier_seconds", "mailismus_journal_used_bytes"),
    *("mailismus_log_batches_total", "mailismus_log_commits_total", "mailismus_log_failures_total"),
    *("mailismus_log_written_bytes_total", "mailismus_log_barrier_seconds", "mailismus_log_used_bytes"),
    *("mailismus_chunk_batches_total", "mailismus_chunk_commits_total", "mailismus_chunk_failures_total"),
    *("mailismus_disk_free_bytes", "mailismus_disk_size_bytes"),
)
"""The metrics of an overview; a server has those of its provider alone."""

MAX_NEXT_HOPS = 200
MAX_FAILURES = 50
MAX_HOLDS = 50


class Failure(NamedTuple):
    """One attempt that did not deliver. Texts are printable, whatever a peer said."""

    at: float
    """UTC seconds."""
    status: str
    """As in the log: `deferred`, `bounced` or `expired`."""
    next_hop: str
    recipient: str
    """The first one of the attempt."""
    recipients: int
    host: str
    """As it is logged; empty: no host was reached."""
    reply: str


class NextHopFigures(NamedTuple):
    """The state of one next hop. Texts are printable, whatever a peer said."""

    name: str
    entries: int
    """Entries in hand: waiting or under way."""
    connections: int
    waits_s: float
    """For how long its mail in hand waits, in seconds; 0: none is in hand."""
    hold: str
    """Why, in the word of `mailismus why`; empty: nothing waits and nothing has failed."""
    reason: str
    """The same in a sentence."""
    delivered: int
    deferred: int
    failed: int
    """Recipients by outcome, since the next hop came into use."""


class Holding(NamedTuple):
    """Something that holds mail back now, in a word, and what it is, in a sentence."""

    hold: str
    subject: str
    sentence: str


Number = int | float


@attrs.frozen
class Spread:
    """A histogram: upper bounds, counts (one more than bounds), and the sum of the values."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


Figure = Number | Mapping[str, Number] | Spread
"""A number; numbers by the values of all labels, with a space between them; a histogram."""


@attrs.frozen
class Overview:
    """Everything at one moment. `now`: UTC seconds; `monotonic`: seconds of the server's clock that never jumps."""

    now: float
    monotonic: float
    version: str
    name: str
    """The host name that the server announces."""
    cpu_s: float
    """Processor time of the server since its start."""
    figures: Mapping[str, Figure]
    next_hops: tuple[NextHopFigures, ...]
    """The fullest, the slowest, and those with the last failures, at most `MAX_NEXT_HOPS`."""
    holds: tuple[Holding, ...]
    failures: tuple[Failure, ...]
    """The newest first."""
    known: tuple[str, ...] = ()
    """What is known of the domain that was asked for, in sentences."""
