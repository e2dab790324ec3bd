"""Metrics of every queue, whatever its provider, and of the queue manager. Their names survive a change of provider."""

from __future__ import annotations

from mailismus.observe.metrics import Metric, gauge
from mailismus.queue.manager import QueueManager
from mailismus.queue.not_durable import MAX_IN_DOUBT
from mailismus.queue.provider import IQueueFigures

FIGURES: tuple[Metric[IQueueFigures], ...] = (
    gauge(
        "mailismus_queue_entries",
        "Entries of the queue by area, those that are out for delivery included.",
        lambda figures: {(area.value,): count for area, count in figures.entries().items()},
        "area",
    ),
    gauge(
        "mailismus_queue_refusing",
        "1 while mail is refused (4xx) for this reason, 0 otherwise. The reasons are the provider's.",
        lambda figures: {(reason,): int(is_refusing) for reason, is_refusing in figures.refusals().items()},
        "reason",
    ),
)

METRICS: tuple[Metric[QueueManager], ...] = (
    gauge(
        "mailismus_queue_out_entries",
        "Entries handed out, for delivery or for a report, those that wait for the end of their round included.",
        lambda m: m.out_count,
    ),
    gauge(
        "mailismus_queue_in_doubt",
        "Outcomes that are known and not yet durable: a crash now would try so many again.",
        lambda m: m.in_doubt,
    ),
    gauge(
        "mailismus_queue_may_begin",
        "1 while deliveries may begin; 0: too many are in doubt.",
        lambda m: int(m.in_doubt < MAX_IN_DOUBT),
    ),
)
