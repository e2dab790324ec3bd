"""Metrics of the queue of chunks: batches, what is in memory.

*Rules*: only numbers that are in memory; reading a metric reads no disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.observe.metrics import Metric, counter, gauge
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.provider import ChunkQueue


class ChunkFigures:
    """The figures that every queue has (`IQueueFigures`)."""

    def __init__(self, queue: ChunkQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        ledger = self._queue.parts.ledger
        return {area: ledger.index.count_in(area) + ledger.resting.count_in(area).entries for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        work = self._queue.parts.work
        return {
            "files_failed": work.bug is not None or work.trouble is not None,
            "minfree": self._queue.parts.space.is_short,
            "missing": self._queue.parts.upkeep.missing is not None,
        }


METRICS: tuple[Metric[ChunkQueue], ...] = (
    counter("mailismus_chunk_batches_total", "Batches that have ended.", lambda q: q.parts.work.batches),
    counter("mailismus_chunk_commits_total", "Commits of new messages made durable.", lambda q: q.parts.work.commits),
    counter("mailismus_chunk_failures_total", "Batches of which something failed.", lambda q: q.parts.work.failures),
    counter(
        "mailismus_chunk_adopted_total",
        "Messages that other programs put into the queue while the server ran.",
        lambda q: q.parts.adoption.adopted,
    ),
    gauge("mailismus_chunk_messages", "Messages in the queue.", lambda q: q.parts.ledger.message_count),
    gauge(
        "mailismus_chunk_resting",
        "Of these, messages that wait in their files alone.",
        lambda q: len(q.parts.ledger.resting),
    ),
)
