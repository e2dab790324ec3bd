"""What the queue manager counts, for whoever asks."""

from __future__ import annotations

from mailismus.observe.metrics import Metric, gauge
from mailismus.queue.manager import QueueManager

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
        "mailismus_queue_may_begin", "1 while deliveries may begin; 0: too many are in doubt.", lambda m: int(m.may_begin)
    ),
)
