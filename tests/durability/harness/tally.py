"""The figures of rounds, one JSON line each in a file that a later run goes on with, and their sum.

P4 as seen from outside: what arrived twice had been answered by the sink in the last second before a kill (`verdict`), and
over all kills the mean is no more than 20 ms of the run's rate and the transactions open at the kill. Mail flows in bursts,
above all behind a start, so a handful of kills, of which one falls into a burst, says little: what had been answered in the
last 20 ms before the kills is told beside it, and not judged. A server whose power was cut lives on for up to 20 ms: what it
delivers then counts on both sides, as what a dead one was answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.results.report import table
from benchmarks.results.verdict import SETTLE_S
from tests.durability.harness.rounds import Outcome, Plan

EXTREMES = ("slowest_start_s", "oldest_doubled_s")
"""Figures of which a sum says nothing."""
ENOUGH_KILLS = 20
"""From so many kills on their mean says something."""


@attrs.frozen
class Figures:
    """Of one round, or the sum of some; counts are of entries (one recipient of one message) unless they say otherwise."""

    kills: int = 0
    stops: int = 0
    messages: int = 0
    entries: int = 0
    lost: int = 0
    wrong: int = 0
    torn: int = 0
    doubled: int = 0
    doubled_unanswered: int = 0
    doubled_at_kills: int = 0
    doubled_to_the_dead: int = 0
    """Of those at kills: answered after the kill, so their transactions were open at it."""
    unexplained: int = 0
    open_at_kills: int = 0
    allowed: float = 0.0
    """By P4, for all kills together."""
    settling: int = 0
    """Entries that the sink had answered in the last 20 ms before the kills, doubled or not."""
    in_doubt_messages: int = 0
    refused_messages: int = 0
    left: int = 0
    corrupt_files: int = 0
    stray_files: int = 0
    complaints: int = 0
    bad_rounds: int = 0
    acts: int = 0
    """Acts and undoings that came to an answer."""
    acts_cut_off: int = 0
    acted: int = 0
    """Entries that acts have changed, by their own counts."""
    seconds: float = 0.0
    slowest_start_s: float = 0.0
    oldest_doubled_s: float = 0.0
    """How long before a kill, or a cut, what it doubled had been answered, at most."""

    @classmethod
    def of(cls, plan: Plan, outcome: Outcome, seconds: float) -> Figures:
        """Those of a round that took so many seconds."""
        verdict = outcome.verdict
        at_kills = verdict.doubled_before_kill + verdict.doubled_after_kill
        rate = outcome.arrived_in_load / outcome.load_s if outcome.load_s else 0.0
        open_at_kills = verdict.open_at_kills + verdict.doubled_after_kill
        return cls(
            kills=plan.kills,
            stops=len(plan.steps) - plan.kills,
            messages=verdict.acknowledged_messages,
            entries=verdict.acknowledged,
            lost=len(verdict.lost),
            wrong=len(verdict.wrong),
            torn=len(verdict.torn),
            doubled=verdict.doubled,
            doubled_unanswered=verdict.doubled_unanswered,
            doubled_at_kills=at_kills,
            doubled_to_the_dead=verdict.doubled_after_kill,
            unexplained=len(verdict.unexplained),
            open_at_kills=open_at_kills,
            settling=verdict.settling_at_kills,
            allowed=plan.kills * SETTLE_S * rate + open_at_kills,
            in_doubt_messages=verdict.unanswered_messages,
            refused_messages=verdict.refused_messages,
            left=sum(outcome.left.values()),
            corrupt_files=outcome.corrupt_files,
            stray_files=outcome.stray_files,
            complaints=len(outcome.complaints),
            bad_rounds=int(not outcome.good),
            acts=sum(outcome.acted.ordered.values()) if outcome.acted is not None else 0,
            acts_cut_off=outcome.acted.cut_off if outcome.acted is not None else 0,
            acted=outcome.acted.entries if outcome.acted is not None else 0,
            seconds=round(seconds, 1),
            slowest_start_s=round(outcome.slowest_start_s, 2),
            oldest_doubled_s=round(verdict.oldest_doubled_s, 3),
        )

    @classmethod
    def total(cls, parts: Iterable[Figures]) -> Figures:
        """Their sum; of extremes the greatest."""
        rows = list(parts) or [cls()]
        found = {field.name: [getattr(row, field.name) for row in rows] for field in attrs.fields(cls)}
        return cls(**{name: max(values) if name in EXTREMES else sum(values) for name, values in found.items()})

    @property
    def is_within_p4(self) -> bool:
        """Whether the mean is; with few kills it says nothing."""
        return self.kills < ENOUGH_KILLS or self.doubled_at_kills <= self.allowed

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.bad_rounds and self.is_within_p4


class Record:
    """A file of figures, a line a round, under the settings they were made with."""

    def __init__(self, path: Path | None, settings: Mapping[str, object]) -> None:
        """`path`: None keeps them in memory alone. Rounds of other settings in the same file are left alone."""
        self._path, self._settings = path, json.loads(json.dumps(dict(settings)))
        self.rows: list[tuple[str, Figures]] = []
        """The next hop's state and the figures, of each round."""
        if path is not None and path.exists():
            found = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            mine = [row for row in found if row["settings"] == self._settings]
            self.rows = [(row["next_hop"], Figures(**row["figures"])) for row in mine]

    def add(self, plan: Plan, figures: Figures) -> None:
        """One more; in the file at once."""
        self.rows.append((plan.next_hop.value, figures))
        if self._path is not None:
            row = {"settings": self._settings, "next_hop": plan.next_hop.value, "seed": plan.seed}
            row["figures"] = attrs.asdict(figures)
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    @property
    def kills(self) -> int:
        """How many so far."""
        return sum(figures.kills for _, figures in self.rows)

    def total(self) -> Figures:
        """The sum of all."""
        return Figures.total(figures for _, figures in self.rows)

    def markdown(self, name: str) -> str:
        """A row for each state of the next hop, and their sum."""
        states = sorted({state for state, _ in self.rows})
        rows = [(state, Figures.total(figures for found, figures in self.rows if found == state)) for state in states]
        if len(rows) > 1:
            rows.append(("all", self.total()))
        return table(HEADER, [[f"{name}, next hop {state}", *_cells(figures)] for state, figures in rows])


HEADER = ["", "kills", "SIGTERMs", "messages", "entries", "lost", "wrong content", "only some recipients", "doubled"]
HEADER += [
    "of these not answered by the sink",
    "at a kill",
    "of these to the dead",
    "elsewhere",
    "oldest ms",
    "answered in the last 20 ms",
    "mean a kill",
    "allowed",
    "in doubt",
    "refused",
]
HEADER += ["left", "set aside", "stray files", "own faults", "slowest start s", "s"]


def _cells(figures: Figures) -> Sequence[str]:
    kills = max(1, figures.kills)
    cells: list[object] = [figures.kills, figures.stops, figures.messages, figures.entries, figures.lost, figures.wrong]
    cells += [figures.torn, figures.doubled, figures.doubled_unanswered, figures.doubled_at_kills]
    cells += [figures.doubled_to_the_dead, figures.unexplained]
    cells += [
        f"{figures.oldest_doubled_s * 1000:.0f}",
        figures.settling,
        f"{figures.doubled_at_kills / kills:.1f}",
        f"{figures.allowed / kills:.1f}",
        figures.in_doubt_messages,
    ]
    cells += [figures.refused_messages, figures.left, figures.corrupt_files, figures.stray_files, figures.complaints]
    cells += [f"{figures.slowest_start_s:.1f}", f"{figures.seconds:.0f}"]
    return [str(cell) for cell in cells]
