"""The history of the last day, as values for its template, and that of the last hour (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

import attrs

from mailismus.observe.amounts import amount
from mailismus.web.history.samples import SPAN_S, Sample
from mailismus.web.pages.plot import Plot, plot

HOUR_S = 3600.0


@attrs.frozen
class _Chart:
    """What a plot shows. `curves`: name, kind and value of each line; `show` and `most`: as of `plot`."""

    title: str
    curves: Sequence[tuple[str, str, Callable[[Sample], float | None]]]
    show: Callable[[float | None], str] = amount
    most: float | None = None

    def plot(self, samples: Sequence[Sample], begin: float, end: float, zone: tzinfo | None) -> Plot:
        """The plot of these samples."""
        lines = [(name, kind, [(one.at, read(one)) for one in samples]) for name, kind, read in self.curves]
        return plot(self.title, lines, begin, end, self.show, zone, self.most)


def _barrier_ms(sample: Sample) -> float | None:
    return None if sample.barrier_s is None else sample.barrier_s * 1000


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


_MESSAGES = _Chart("Messages a second", (("received", "a", lambda one: one.came), ("sent", "b", lambda one: one.sent)))
_FAILED = _Chart(
    "Attempts that failed, a second",
    (("deferred", "warn", lambda one: one.deferred), ("failed", "bad", lambda one: one.failed)),
)
_WAITING = (("deferred", "warn", lambda one: one.waiting), ("incoming", "a", lambda one: one.incoming))
_DAY = (
    _MESSAGES,
    _FAILED,
    _Chart("Entries that wait", (*_WAITING, ("held", "b", lambda one: one.held))),
    _Chart("Connections", (("to hosts", "b", lambda one: one.connections), ("of clients", "a", lambda one: one.clients))),
    _Chart("Barriers of the disk, ms each", (("mean", "a", _barrier_ms),)),
    _Chart("Free space", (("least", "b", lambda one: one.free_share),), _percent, 1.0),
)
_HOUR = (_MESSAGES, _FAILED, _Chart("Entries that wait", _WAITING))


def day_values(samples: Sequence[Sample], now: float, zone: tzinfo | None = None) -> Mapping[str, object]:
    """The values. `zone`: of the times shown; None: the local one."""
    return {"plots": [chart.plot(samples, now - SPAN_S, now, zone) for chart in _DAY], "count": len(samples)}


def last_hour(samples: Sequence[Sample], now: float, zone: tzinfo | None = None) -> Sequence[Plot]:
    """What came, went, failed and waited in the last hour."""
    begin = now - HOUR_S
    found = [sample for sample in samples if sample.at >= begin]
    return [chart.plot(found, begin, now, zone) for chart in _HOUR]
