"""Metrics of the shared queue, as far as this server knows them.

*Rules*: only numbers that are in memory; reading a metric asks no service.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.observe.metrics import Metric, counter, gauge
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.provider import DistributedQueue


class DistributedFigures:
    """The figures that every queue has (`IQueueFigures`). Entries: those of all servers, as they were counted last, and
    never fewer than this server has in its hand."""

    def __init__(self, queue: DistributedQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        parts = self._queue.parts
        index, counted = parts.hand.index, parts.sizes.entries
        return {area: max(index.count_in(area), counted.get(area, 0)) for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        parts = self._queue.parts
        return {**parts.admission.reasons(), "memory": parts.drafts.used >= parts.drafts.limit}


METRICS: tuple[Metric[DistributedQueue], ...] = (
    gauge(
        "mailismus_distributed_lease",
        "1: this server serves the queue. 0: its lease is not sure.",
        lambda q: int(q.parts.lease.is_sure),
    ),
    gauge(
        "mailismus_distributed_circuit_open",
        "1: the store has failed and is left alone but for probes. 0: it is asked.",
        lambda q: {(circuit.name,): int(not circuit.is_closed) for circuit in q.parts.circuits.all},
        "store",
    ),
    counter(
        "mailismus_distributed_circuit_openings_total",
        "How often a store was left alone because it failed.",
        lambda q: {(circuit.name,): circuit.openings for circuit in q.parts.circuits.all},
        "store",
    ),
    gauge(
        "mailismus_distributed_withheld",
        "1: no entry is handed out, because a store, the lease or contents are missing.",
        lambda q: int(bool(q.parts.admission.withheld())),
    ),
    gauge(
        "mailismus_distributed_clock_ahead_seconds",
        "Seconds that this server's clock is ahead of the database's, as of the last look.",
        lambda q: q.parts.admission.clock.ahead_s,
    ),
    gauge(
        "mailismus_distributed_dead_messages",
        "Messages in the broker's queue mq.dead, as of the last look.",
        lambda q: q.parts.watching.dead,
    ),
    counter(
        "mailismus_distributed_refills_total",
        "Queues of the broker that were lost and filled again by this server.",
        lambda q: q.parts.refilling.refilled,
    ),
    counter(
        "mailismus_distributed_carried_total",
        "Entries that waited for over a day and were moved into the present slice by this server.",
        lambda q: q.parts.carrying.carried,
    ),
    counter(
        "mailismus_distributed_swept_contents_total",
        "Contents that no message had and that this server removed.",
        lambda q: q.parts.sweep.removed,
    ),
    gauge("mailismus_distributed_shares", "Shares in the hand of this server.", lambda q: len(q.parts.hand.shares)),
    gauge(
        "mailismus_distributed_entries",
        "Entries of the whole queue by area, of all servers, as counted within the last 10 s. None with <sizemetrics> N.",
        lambda q: {(area.value,): count for area, count in q.parts.sizes.entries.items()},
        "area",
    ),
    gauge(
        "mailismus_distributed_limits",
        "Limits of hosts, over all servers, of which this server has a part or wants one.",
        lambda q: len(q.parts.sharing.limits.parts),
    ),
    counter(
        "mailismus_distributed_limit_writes_total",
        "How often this server asked the database for parts of limits, or gave some back.",
        lambda q: q.parts.sharing.limits.writes,
    ),
    gauge(
        "mailismus_distributed_servers",
        "Servers that run, as of the last look of this one while it used a limit.",
        lambda q: q.parts.sharing.limits.servers,
    ),
    counter(
        "mailismus_distributed_fetched_ahead_total",
        "Contents that this server fetched before they were asked for.",
        lambda q: q.parts.ahead.fetched,
    ),
    gauge(
        "mailismus_distributed_ahead_bytes",
        "Bytes of contents that were fetched, or are being fetched, and were not asked for yet.",
        lambda q: q.parts.ahead.used_bytes,
    ),
    gauge("mailismus_distributed_draft_bytes", "Bytes of messages that are coming in.", lambda q: q.parts.drafts.used),
)
