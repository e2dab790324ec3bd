"""`python -m tests.durability.model [-s SCENARIO] [-m MUTANT|all] [-n STATES]`: explore; print the shortest way to damage.

Without a mutant no state may break an invariant; a mutant leaves one barrier, order or check out and must. Exit code: how
many did otherwise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from textwrap import wrap

from tests.durability.model.explore import explore
from tests.durability.model.scenarios import MUTANTS, NEEDLESS, SCENARIOS
from tests.durability.model.state import Setting


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.model", description=__doc__)
    parser.add_argument("-s", "--scenario", choices=SCENARIOS)
    parser.add_argument("-m", "--mutant", default="", help="a rule to leave out, or all: one after the other")
    parser.add_argument("-n", "--states", type=int, default=60_000, help="at most so many for each (60000)")
    arguments = parser.parse_args(words)
    if not set(filter(None, arguments.mutant.split(" + "))) <= {"all", *rules()}:
        parser.error(f"no such rule; there are: {', '.join(rules())}")
    wrong = 0
    for mutant in MUTANTS if arguments.mutant == "all" else [arguments.mutant]:
        chosen = list(SCENARIOS) if mutant not in MUTANTS else [MUTANTS[mutant]]
        if arguments.scenario:
            chosen = [arguments.scenario]
        wrong += not look(mutant, chosen, arguments.states)
    print(f"wrong: {wrong}")
    return wrong


def rules() -> list[str]:
    """All that can be left out, one at a time or joined by ` + `."""
    return sorted({rule for mutant in MUTANTS for rule in mutant.split(" + ")})


def look(mutant: str, scenarios: list[str], most_states: int) -> bool:
    """Whether it came out as it must: nothing broken in the design, something in a mutant."""
    is_caught, states = False, 0
    for name in scenarios:
        began = time.monotonic()
        found = explore(Setting(SCENARIOS[name], frozenset(filter(None, mutant.split(" + ")))), most_states)
        states += found.states
        end = "every invariant holds" if found.is_whole else "none of these breaks an invariant"
        seconds = time.monotonic() - began
        print(
            f"{mutant or 'the design':40} {name:16} {found.states:8} states {seconds:5.1f} s  {found.damage or end}",
            flush=True,
        )
        if found.story:
            print("\n".join(wrap(" > ".join(found.story), 120, initial_indent="    ", subsequent_indent="    ")), flush=True)
            is_caught = True
            if mutant:
                break
    if len(scenarios) > 1:
        print(f"{mutant or 'the design':40} {len(scenarios)} scenarios  {states:8} states")
    if mutant in NEEDLESS and not is_caught:
        print(f"    needless: {NEEDLESS[mutant]}")
    return is_caught == (bool(mutant) and mutant not in NEEDLESS)


if __name__ == "__main__":
    sys.exit(main())
