"""The history of the last day, as values for its template (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

from mailismus.observe.amounts import amount
from mailismus.web.history.samples import SPAN_S, Sample
from mailismus.web.pages.plot import Plot, Point, plot

HOUR_S = 3600.0


def day_values(samples: Sequence[Sample], now: float, zone: tzinfo | None = None) -> Mapping[str, object]:
    """The values. `zone`: of the times shown; None: the local one."""
    begin = now - SPAN_S

    def of(read: Callable[[Sample], float | None]) -> Sequence[Point]:
        return [(sample.at, read(sample)) for sample in samples]

    plots = [
        plot(
            "Messages a second",
            [("received", "a", of(lambda one: one.came)), ("sent", "b", of(lambda one: one.sent))],
            *(begin, now, amount, zone),
        ),
        plot(
            "Attempts that failed, a second",
            [("deferred", "warn", of(lambda one: one.deferred)), ("failed", "bad", of(lambda one: one.failed))],
            *(begin, now, amount, zone),
        ),
        plot(
            "Entries that wait",
            [
                ("deferred", "warn", of(lambda one: one.waiting)),
                ("incoming", "a", of(lambda one: one.incoming)),
                ("held", "b", of(lambda one: one.held)),
            ],
            *(begin, now, amount, zone),
        ),
        plot(
            "Connections",
            [("to hosts", "b", of(lambda one: one.connections)), ("of clients", "a", of(lambda one: one.clients))],
            *(begin, now, amount, zone),
        ),
        plot("Barriers of the disk, ms each", [("mean", "a", of(_barrier_ms))], begin, now, amount, zone),
        plot("Free space", [("least", "b", of(lambda one: one.free_share))], begin, now, _percent, zone, most=1.0),
    ]
    return {"plots": plots, "count": len(samples)}


def last_hour(samples: Sequence[Sample], now: float, zone: tzinfo | None = None) -> Sequence[Plot]:
    """What came, went and waited in the last hour."""
    found = [sample for sample in samples if sample.at >= now - HOUR_S]
    came = [(sample.at, sample.came) for sample in found]
    sent = [(sample.at, sample.sent) for sample in found]
    waiting = [(sample.at, float(sample.waiting)) for sample in found]
    incoming = [(sample.at, float(sample.incoming)) for sample in found]
    return (
        plot(
            "Messages a second",
            [("received", "a", came), ("sent", "b", sent)],
            *(now - HOUR_S, now, amount, zone),
        ),
        plot(
            "Entries that wait",
            [("deferred", "warn", waiting), ("incoming", "a", incoming)],
            *(now - HOUR_S, now, amount, zone),
        ),
    )


def _barrier_ms(sample: Sample) -> float | None:
    return None if sample.barrier_s is None else sample.barrier_s * 1000


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
