"""The summary of a run of the large world: a few numbers, which can be kept in a file (pure)."""

from __future__ import annotations

from typing import Any

import attrs

from benchmarks.simulation.books import SMALL, Record
from benchmarks.simulation.measures import demand, fairness, percentile
from benchmarks.simulation.run import Result
from benchmarks.simulation.worlds import Load
from mailismus.plan.clock import STARTS_AT
from mailismus.plan.site import SiteKind

BESIDE_S = 120.0
"""Small mail counts as beside the big message if it comes within so long after that."""
SPANS_S = (15, 30, 60, 120)
COMPARED_S = 30
"""Of these, the one that is told: all bulk senders have much to send so long."""
POINTS = 200
"""Of a distribution that are kept."""


@attrs.frozen
class Summary:
    """One run. Delays in seconds, of small mail to fast receivers where nothing else is said."""

    schedule: str
    has_big: bool
    seed: int
    recipients: int
    beside: tuple[float, float, float]
    """50, 95 and 99 % of the delays of what came in the first time after the big message."""
    whole: tuple[float, float, float]
    """The same of all."""
    curve: list[float]
    """Delays beside the big message at equal steps of the share of mail."""
    kinds: dict[str, tuple[int, float, float, float]]
    """Recipients of small mail that were delivered, and their delays, by kind of receiver."""
    big_s: float
    """When the big message's recipients had been tried, after its arrival; 0: there is none."""
    bulk_s: float
    connections_a_message: float
    wasted_a_thousand: float
    """Wasted attempts for a thousand recipients that were delivered."""
    attempts_a_thousand: float
    fairness: dict[str, float]
    """Jain's index over all senders, by the seconds after the big message in which it is measured."""
    fairness_bulk: dict[str, float]
    """The same over the senders of bulk mail and of the big message."""
    served: dict[str, list[int]]
    """What each of these asked for and got in `COMPARED_S`."""
    delivered: int
    left: int
    most_open: int
    simulated_s: float
    took_s: float
    events: int

    def to_json(self) -> dict[str, Any]:
        """Its numbers."""
        return attrs.asdict(self)


def from_json(numbers: dict[str, Any]) -> Summary:
    """The summary with these numbers."""
    return Summary(**numbers)


def summarize(result: Result, load: Load, schedule: str, seed: int) -> Summary:
    """The summary of a run."""
    record = result.record
    begin = STARTS_AT + load.big_at_s
    fast = record.delays.get((SMALL, SiteKind.FAST.value))
    beside = fast.between(begin, begin + BESIDE_S) if fast is not None else []
    whole = fast.between(0.0, float("inf")) if fast is not None else []
    heavy = {name: service for name, service in record.services.items() if name.startswith((b"bulk", b"list"))}
    kinds = {}
    for (of_class, kind), delays in sorted(record.delays.items()):
        if of_class == SMALL:
            values = delays.between(0.0, float("inf"))
            kinds[kind] = (len(values), *_percentiles(values))
    return Summary(
        schedule,
        bool(load.big),
        seed,
        load.small + load.bulk + load.big,
        _percentiles(beside),
        _percentiles(whole),
        [percentile(beside, point / POINTS) for point in range(1, POINTS + 1)],
        kinds,
        _ended(record, b"list", begin),
        _ended(record, b"bulk", STARTS_AT + load.bulk_at_s),
        result.connections / max(1, result.transactions),
        1000.0 * result.wasted / max(1, record.delivered),
        1000.0 * result.attempts / max(1, record.delivered),
        {str(span): fairness(record.services, begin, begin + span) for span in SPANS_S},
        {str(span): fairness(heavy, begin, begin + span) for span in SPANS_S},
        {name.decode(): list(demand(service, begin, begin + COMPARED_S)) for name, service in heavy.items()},
        record.delivered,
        result.left,
        result.most_open,
        result.simulated_s,
        result.took_s,
        result.events,
    )


def _percentiles(values: list[float]) -> tuple[float, float, float]:
    return percentile(values, 0.5), percentile(values, 0.95), percentile(values, 0.99)


def _ended(record: Record, prefix: bytes, begin: float) -> float:
    """How long it took until 99 % of the recipients of these senders had been tried."""
    served = sorted([at for name, one in record.services.items() if name.startswith(prefix) for at in one.served_at])
    return percentile(served, 0.99) - begin if served else 0.0
