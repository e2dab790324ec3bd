"""Verdicts: what was asked, what was found, and whether that is enough (pure)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import attrs

from benchmarks.drain import percentile

MORE_S = 0.020
"""So much more also passes where delays are compared."""


@attrs.frozen
class Check:
    """One promise."""

    asked: str
    found: str
    good: bool

    def text(self) -> str:
        """In one line."""
        return f"- {'good' if self.good else '**not good**'}: {self.asked}: {self.found}"


@attrs.frozen
class Played:
    """One load: its figures, a line each, and what was promised."""

    notes: Sequence[str]
    checks: Sequence[Check]

    @property
    def good(self) -> bool:
        """Whether every promise was kept; one at least."""
        return bool(self.checks) and all(check.good for check in self.checks)

    def text(self) -> str:
        """All of it."""
        return "\n".join([*self.notes, "", *(check.text() for check in self.checks)])


@attrs.frozen
class Small:
    """The small messages of one run: the delays (seconds) of those that arrived, and how many did not."""

    delays_s: tuple[float, ...]
    missing: int

    @property
    def p95_s(self) -> float:
        """The delay that 95 % of all do not exceed; infinite for those that did not arrive."""
        return percentile([*self.delays_s, *[math.inf] * self.missing], 0.95)

    def text(self) -> str:
        """In a few words."""
        figures = f"p50 {self.p50_s * 1000:.1f} ms, p95 {self.p95_s * 1000:.1f} ms"
        return f"{len(self.delays_s)} small ones, {self.missing} not arrived, {figures}"

    @property
    def p50_s(self) -> float:
        """The median."""
        return percentile([*self.delays_s, *[math.inf] * self.missing], 0.5)


def small_of(sent: Iterable[tuple[str, float]], arrived: Mapping[str, float]) -> Small:
    """Of small messages: name and moment of each MAIL, and when those that arrived did."""
    wanted = list(sent)
    delays = tuple(arrived[key] - began_at_s for key, began_at_s in wanted if key in arrived)
    return Small(delays, len(wanted) - len(delays))


def at_most(asked: str, value: float, limit: float, unit: str = "") -> Check:
    """A value with an upper limit."""
    return Check(f"{asked} <= {limit:g}{unit}", f"{value:.4g}{unit}", value <= limit)


def at_least(asked: str, value: float, limit: float, unit: str = "") -> Check:
    """A value with a lower limit."""
    return Check(f"{asked} >= {limit:g}{unit}", f"{value:.4g}{unit}", value >= limit)


def none_of(asked: str, found: Sequence[str]) -> Check:
    """Something that must not occur; the first few are shown."""
    return Check(asked, f"{len(found)}: {'; '.join(found[:3])}" if found else "none", not found)


def compare(name: str, alone: Sequence[Small], beside: Sequence[Small], factor: float) -> Check:
    """The median p95 of the runs beside a load: at most `factor` times that of the runs alone, or `MORE_S` more."""
    alone_s, beside_s = (statistics.median([run.p95_s for run in runs] or [math.inf]) for runs in (alone, beside))
    limit_s = max(factor * alone_s, alone_s + MORE_S)
    good = math.isfinite(alone_s) and beside_s <= limit_s
    figures = [f"{value_s * 1000:.1f} ms" for value_s in (beside_s, alone_s, limit_s)]
    return Check(
        f"{name}: p95 <= {factor:g} times that alone, or 20 ms more", "{} ({} alone, limit {})".format(*figures), good
    )
