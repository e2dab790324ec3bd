"""Metrics of the log-structured queue: batches, segments, rounds of marks, what is in memory.

*Rules*: only numbers that are in memory; reading a metric reads no disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.observe.metrics import Metric, counter, gauge, histogram
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.provider import LogQueue


class LogFigures:
    """The figures that every queue has (`IQueueFigures`)."""

    def __init__(self, queue: LogQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        """Those in memory, and those that rest in what has been read of the log."""
        working_set, resting = self._queue.parts.working_set, self._queue.parts.resting
        return {area: working_set.count_in(area) + resting.amounts[area].entries for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        queue = self._queue
        return {
            "log_failed": queue.commits.trouble is not None and queue.parts.presence.missing is None,
            "missing": queue.parts.presence.missing is not None,
            "no_segment": queue.parts.opened.pool.is_short,
            "minfree": queue.parts.space.is_short,
            "slow_disk": queue.parts.pressure.is_shedding,
        }


METRICS: tuple[Metric[LogQueue], ...] = (
    gauge(
        "mailismus_log_loaded_entries",
        "Entries in memory: new, due soon, or out for delivery. All others rest in the log.",
        lambda q: {(area.value,): q.parts.working_set.count_in(area) for area in Area},
        "area",
    ),
    counter("mailismus_log_batches_total", "Batches made durable.", lambda q: q.commits.batches),
    counter("mailismus_log_commits_total", "Commits made durable.", lambda q: q.commits.items),
    counter("mailismus_log_failures_total", "Batches that could not be made durable.", lambda q: q.commits.failures),
    counter(
        "mailismus_log_written_bytes_total", "Bytes of batches made durable.", lambda q: q.parts.opened.writer.written_bytes
    ),
    histogram(
        "mailismus_log_barrier_seconds",
        "How long a batch took from its write to the return of its barrier.",
        lambda q: q.parts.opened.writer.barriers_s,
    ),
    gauge("mailismus_log_used_segments", "Segments in use.", lambda q: q.parts.segments.count),
    gauge("mailismus_log_failed_segments", "Of these those that have failed.", lambda q: len(q.parts.segments.failed)),
    gauge("mailismus_log_ready_segments", "Free segments, made ahead.", lambda q: len(q.parts.opened.pool)),
    counter("mailismus_log_rounds_total", "Rounds of marks that ended well.", lambda q: q.rounds.rounds),
    gauge("mailismus_log_live_bytes", "Bytes of live envelopes and contents.", lambda q: q.parts.segments.use().live_bytes),
    gauge("mailismus_log_used_bytes", "Bytes of the segments in use.", lambda q: q.parts.segments.use().used_bytes),
    counter("mailismus_log_moved_total", "Envelopes moved by compaction.", lambda q: q.parts.compaction.moved),
    counter("mailismus_log_emptied_total", "Segments emptied by compaction.", lambda q: q.parts.compaction.emptied),
    gauge("mailismus_log_unmarked", "Garbage that is not durably marked.", lambda q: len(q.ledger.unmarked)),
    gauge("mailismus_log_working", "Envelopes that work has begun on.", lambda q: len(q.ledger.working)),
    gauge(
        "mailismus_log_unread_pieces",
        "Pieces of the log that were not read since the start: the entries that rest there are not counted.",
        lambda q: q.parts.resting.unread,
    ),
    counter("mailismus_log_pieces_read_total", "Pieces of the log that were read.", lambda q: q.parts.reading.pieces_read),
)
