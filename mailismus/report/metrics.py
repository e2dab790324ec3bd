"""Metrics of reporting."""

from __future__ import annotations

from mailismus.observe.metrics import Metric, counter, gauge
from mailismus.report.task import ReportTask

METRICS: tuple[Metric[ReportTask], ...] = (
    counter("mailismus_reports_total", "Reports put into the queue.", lambda t: t.counters.reports),
    counter(
        "mailismus_bounces_total",
        "Bounces by their end: reported, discarded without a report, or given back for later.",
        lambda t: {
            ("reported",): t.counters.reported,
            ("discarded",): t.counters.discarded,
            ("given_back",): t.counters.given_back,
        },
        "end",
    ),
    gauge("mailismus_report_held_bounces", "Bounces held; `queuecache` limits them.", lambda t: t.held),
)
