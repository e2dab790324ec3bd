"""The simulation as a program: runs of the large world with our schedule and two plain ones, the named cases, the cost of a
decision; tables and drawings.

    python -m benchmarks.simulation                        # ours, a million recipients, with the big message and without it
    python -m benchmarks.simulation --schedule all --record runs.jsonl
    python -m benchmarks.simulation --draw docs/simulation --record runs.jsonl
    python -m benchmarks.simulation --cases
    python -m benchmarks.simulation --decisions
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import attrs

from benchmarks.simulation.books import SMALL
from benchmarks.simulation.cases import CASES, Case
from benchmarks.simulation.decisions import COUNTS, measure
from benchmarks.simulation.drawing import Curve, Panel, draw_curves, draw_panels
from benchmarks.simulation.measures import percentile
from benchmarks.simulation.rivals import plain
from benchmarks.simulation.run import Result, World, run, settings_of
from benchmarks.simulation.summary import BESIDE_S, COMPARED_S, Summary, from_json, summarize
from benchmarks.simulation.worlds import Load, large
from benchmarks.stage.progress import shown

MILLION = 1_000_000
HORIZON_S = 3600.0
OURS, FIRST_COME, EQUAL = "ours", "first come", "equal share"
_SPAN = str(COMPARED_S)
SCHEDULES = (OURS, FIRST_COME, EQUAL)
COLOURS = {OURS: "#1a7f37", FIRST_COME: "#cf222e", EQUAL: "#8250df"}


def simulate(world: World, schedule: str, seed: int, share: int, horizon_s: float = HORIZON_S, **settings: int) -> Result:
    """Run a world with this schedule. The plain ones have no limit of what they hold."""
    patches: AbstractContextManager[object] | None = None
    if schedule != OURS:
        settings = settings | {"queuecache": 0}
        patches = plain(share, is_in_turns=True) if schedule == EQUAL else plain()
    return run(world, settings_of(**settings), seed, horizon_s, patches)


def load_of(recipients: int) -> Load:
    """The load of so many recipients, in the same proportions and time for each."""
    whole = Load()
    factor = recipients / MILLION
    return Load(
        small=int(whole.small * factor),
        small_s=whole.small_s * factor,
        senders=max(50, int(whole.senders * factor)),
        bulk=int(whole.bulk * factor),
        bulk_at_s=whole.bulk_at_s * factor,
        big=int(whole.big * factor),
        big_at_s=whole.big_at_s * factor,
        domains=max(1000, int(whole.domains * factor)),
    )


def run_large(recipients: int, schedule: str, seed: int, share: int, *, has_big: bool) -> Summary:
    """Run the large world."""
    load = load_of(recipients)
    if not has_big:
        load = attrs.evolve(load, big=0)
    return summarize(simulate(large(load, seed), schedule, seed, share), load, schedule, seed)


# ---------------------------------------------------------------------- tables


def _s(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 100 else f"{seconds:.0f}"


def print_runs(runs: list[Summary]) -> None:
    """Print the figures of some runs as a table."""
    print(f"\nSmall mail to fast receivers; beside: what came within {BESIDE_S:.0f} s after the big message's time\n")
    print("| schedule | big message | beside p50 s | p95 s | p99 s | all p95 s | big took s | conn. a message |", end="")
    print(" wasted of 1,000 |", end="")
    print(" attempts of 1,000 | Jain | Jain, bulk | left | connections | simulated s | took s |")
    print("|---|---|" + "--:|" * 14)
    for one in runs:
        cells = [one.schedule, "with" if one.has_big else "without", *map(_s, one.beside), _s(one.whole[1])]
        cells += [_s(one.big_s) if one.has_big else "", f"{one.connections_a_message:.3f}", f"{one.wasted_a_thousand:.1f}"]
        cells += [f"{one.attempts_a_thousand:.0f}", f"{one.fairness[_SPAN]:.3f}", f"{one.fairness_bulk[_SPAN]:.3f}"]
        cells += [f"{one.left:,}", f"{one.most_open:,}", f"{one.simulated_s:,.0f}", f"{one.took_s:.0f}"]
        print(f"| {' | '.join(cells)} |")


def print_kinds(runs: list[Summary]) -> None:
    """Print the delays of small mail by kind of receiver."""
    print("\n| receivers | recipients |", end="")
    for one in runs:
        print(f" {one.schedule}, {'with' if one.has_big else 'without'}: p50 / p95 s |", end="")
    print("\n|---|--:|" + "--:|" * len(runs))
    for kind in sorted({kind for one in runs for kind in one.kinds}):
        counts = [one.kinds[kind][0] for one in runs if kind in one.kinds]
        cells = [kind, f"{max(counts):,}"]
        for one in runs:
            found = one.kinds.get(kind)
            cells.append(f"{_s(found[1])} / {_s(found[2])}" if found else "")
        print(f"| {' | '.join(cells)} |")


def _delay(case: Case, schedule: str, seed: int, share: int, *, has_load: bool) -> tuple[float, int]:
    """The 95th percentile of the delays of small mail, and how many attempts it needed beyond one for each."""
    result = simulate(case.make(seed, has_load), schedule, seed, share, **case.settings)
    values: list[float] = []
    for (of_class, _), delays in result.record.delays.items():
        if of_class == SMALL:
            values += delays.delay_s
    came = sum(
        len(one.came_at) for name, one in result.record.services.items() if name.startswith(b"s") and b"@sender" in name
    )
    return percentile(sorted(values), 0.95), came - len(values)


def print_cases(names: list[str], schedules: list[str], seed: int, share: int) -> None:
    """Run the named cases and print the delays of small mail."""
    print("\n| case | schedule | p95 without it | with it | factor | not delivered |\n|---|---|--:|--:|--:|--:|")
    for case in CASES:
        if names and case.name not in names:
            continue
        for schedule in schedules:
            (before, _), (after, lost) = [_delay(case, schedule, seed, share, has_load=has) for has in (False, True)]
            factor = after / before if before else 0.0
            print(f"| {case.text} | {schedule} | {_ms(before)} | {_ms(after)} | {factor:.2f} | {lost} |", flush=True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def print_decisions() -> None:
    """Measure and print the time of a decision."""
    print("\n| way | " + " | ".join(f"{count:,} connections" for count in COUNTS) + " | most to 1 |\n|---|" + "--:|" * 4)
    for way, times in measure().items():
        cells = [f"{times[count] * 1e6:.2f} us" for count in COUNTS]
        print(f"| {way} | {' | '.join(cells)} | {times[COUNTS[-1]] / times[1]:.2f} |")


def draw(runs: list[Summary], directory: Path) -> None:
    """Write the drawings of these runs."""
    directory.mkdir(parents=True, exist_ok=True)
    runs = sorted(runs, key=lambda one: (SCHEDULES.index(one.schedule), one.has_big))
    curves = [
        Curve(
            f"{one.schedule}, {'with' if one.has_big else 'without'} the big message",
            COLOURS[one.schedule],
            not one.has_big,
            one.curve,
        )
        for one in runs
    ]
    big = max(one.recipients for one in runs) // 10
    subtitle = f"small mail to fast receivers, in the {BESIDE_S / 60:.0f} minutes behind a message to {big:,} recipients"
    (directory / "delays.svg").write_text(draw_curves("How long small mail takes", subtitle, curves))
    full = [one for one in runs if one.has_big]

    def bars(value: Callable[[Summary], float]) -> list[tuple[str, str, float]]:
        return [(one.schedule.replace(" ", "\n"), COLOURS[one.schedule], value(one)) for one in full]

    panels = [
        Panel("connections a message", bars(lambda one: one.connections_a_message)),
        Panel("wasted a thousand", bars(lambda one: one.wasted_a_thousand)),
        Panel("Jain's index, all senders", bars(lambda one: one.fairness[_SPAN]), 0.9),
        Panel("the same, bulk senders", bars(lambda one: one.fairness_bulk[_SPAN]), 0.9),
    ]
    (directory / "figures.svg").write_text(
        draw_panels(f"{full[0].recipients:,} recipients, one message to {full[0].recipients // 10:,}", panels)
    )


def main(arguments: list[str]) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--recipients", type=int, default=MILLION, help="of the large world (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedule", choices=("ours", "first-come", "equal-share", "all"), default="ours")
    parser.add_argument("--big", choices=("both", "with", "without"), default="both", help="the message to a tenth of all")
    parser.add_argument("--share", type=int, default=20, help="connections of a set of hosts by equal share")
    parser.add_argument("--record", type=Path, help="keep the figures of runs in this file, a line each")
    parser.add_argument("--draw", type=Path, help="draw the recorded runs into this directory; nothing is run")
    parser.add_argument("--cases", nargs="*", metavar="NAME", help="run the named cases, all without names")
    parser.add_argument("--decisions", action="store_true", help="measure what a decision costs")
    options = parser.parse_args(arguments)
    schedules = list(SCHEDULES) if options.schedule == "all" else [options.schedule.replace("-", " ")]
    print(f"seed {options.seed}")
    if options.decisions:
        print_decisions()
        return
    if options.cases is not None:
        print_cases(options.cases, schedules, options.seed, options.share)
        return
    if options.draw is not None:
        lines = options.record.read_text().splitlines()
        runs = [from_json(json.loads(line)) for line in lines]
        draw(runs, options.draw)
    else:
        runs = []
        for schedule in schedules:
            for has_big in (False, True):
                if options.big not in ("both", "with" if has_big else "without"):
                    continue
                with shown(schedule):
                    one = run_large(options.recipients, schedule, options.seed, options.share, has_big=has_big)
                runs.append(one)
                print(f"{schedule}, {'with' if has_big else 'without'}: {runs[-1].took_s:.0f} s", flush=True)
                if options.record is not None:
                    with options.record.open("a") as file:
                        file.write(json.dumps(runs[-1].to_json()) + "\n")
    print_runs(runs)
    print_kinds(runs)


if __name__ == "__main__":
    main(sys.argv[1:])
