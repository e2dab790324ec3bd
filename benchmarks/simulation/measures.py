"""The measures: percentiles, fairness, what was wasted (pure)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from benchmarks.simulation.books import Service


def percentile(values: Sequence[float], share: float) -> float:
    """The value of ascending ones that this share of them does not exceed; 0 if there are none."""
    if not values:
        return 0.0
    return values[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))]


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness (1984): 1 if all are equal, 1/n if one of n has everything; 1 without values."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def fill(demands: Sequence[float], capacity: float) -> list[float]:
    """The max-min fair shares of a capacity: nobody gets more than asked for, and who gets less has as much as anybody."""
    shares = [0.0] * len(demands)
    left = capacity
    order = sorted(range(len(demands)), key=lambda position: demands[position])
    for count, position in enumerate(order):
        shares[position] = min(demands[position], left / (len(order) - count))
        left -= shares[position]
    return shares


def demand(service: Service, begin: float, end: float) -> tuple[int, int]:
    """How many recipients of a sender could have been served in this time, and how many were."""
    came, served = service.came_at, sorted(service.served_at)
    before = bisect_left(served, begin)
    return bisect_left(came, end) - before, bisect_left(served, end) - before


def fairness(services: Mapping[bytes, Service], begin: float, end: float) -> float:
    """Jain's index over senders: of what each was served in this time, as a share of its max-min fair share of all that was
    served."""
    asked: list[float] = []
    got: list[int] = []
    for service in services.values():
        wanted, served = demand(service, begin, end)
        if wanted > 0:
            asked.append(wanted)
            got.append(served)
    shares = fill(asked, sum(got))
    return jain([served / share for served, share in zip(got, shares, strict=True) if share > 0])
