"""Metrics of the shared queue, as far as this server knows them.

*Rules*: only numbers that are in memory; reading a metric asks no service.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.observe.metrics import Metric, gauge
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.provider import DistributedQueue


class DistributedFigures:
    """The figures that every queue has (`IQueueFigures`): entries that this server has in its hand."""

    def __init__(self, queue: DistributedQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        index = self._queue.parts.hand.index
        return {area: index.count_in(area) for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        parts = self._queue.parts
        return {"lease": not parts.lease.is_sure, "memory": parts.drafts.used >= parts.drafts.limit}


METRICS: tuple[Metric[DistributedQueue], ...] = (
    gauge(
        "mailismus_distributed_lease",
        "1: this server serves the queue. 0: its lease is not sure.",
        lambda q: int(q.parts.lease.is_sure),
    ),
    gauge("mailismus_distributed_shares", "Shares in the hand of this server.", lambda q: len(q.parts.hand.shares)),
    gauge(
        "mailismus_distributed_entries",
        "Entries of the whole queue by area, of all servers, as counted within the last 10 s. None with <sizemetrics> N.",
        lambda q: {(area.value,): count for area, count in q.parts.sizes.entries.items()},
        "area",
    ),
    gauge("mailismus_distributed_draft_bytes", "Bytes of messages that are coming in.", lambda q: q.parts.drafts.used),
)
