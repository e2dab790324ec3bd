"""`python -m tests.durability.model [--provider log] [-s SCENARIO] [-m MUTANT|all] [-n STATES]`: explore; print the shortest
way to damage.

Without a mutant no state may break an invariant; a mutant leaves one barrier, order or check out and must. Exit code: how
many did otherwise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap

import attrs

from tests.durability.log_model import explore as log_explore
from tests.durability.log_model import scenarios as log_scenarios
from tests.durability.log_model import state as log_state
from tests.durability.model import explore, scenarios, state
from tests.durability.model.search import Explored


@attrs.frozen
class Model:
    """The model of a provider: its scenarios, its rules, and those that are needless."""

    scenarios: Sequence[str]
    mutants: Mapping[str, str]
    needless: Mapping[str, str]
    explore: Callable[[str, frozenset[str], int], Explored]
    """A scenario, rules that are left out, and how many states to look at."""

    def rules(self) -> list[str]:
        """All that can be left out, one at a time or joined by ` + `."""
        return sorted({rule for mutant in self.mutants for rule in mutant.split(" + ")})

    def leave_out(self, mutant: str, most_states: int) -> Explored:
        """Look for the damage where it is to be found."""
        return self.explore(self.mutants[mutant], frozenset(mutant.split(" + ")), most_states)


def _clustered(name: str, without: frozenset[str], most_states: int) -> Explored:
    return explore.explore(state.Setting(scenarios.SCENARIOS[name], without), most_states)


def _log(name: str, without: frozenset[str], most_states: int) -> Explored:
    return log_explore.explore(log_state.Setting(log_scenarios.SCENARIOS[name], without), most_states)


MODELS = {
    "clustered": Model(tuple(scenarios.SCENARIOS), scenarios.MUTANTS, scenarios.NEEDLESS, _clustered),
    "log": Model(tuple(log_scenarios.SCENARIOS), log_scenarios.MUTANTS, log_scenarios.NEEDLESS, _log),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.model", description=__doc__)
    parser.add_argument("--provider", choices=MODELS, default="clustered", help="whose model (%(default)s)")
    parser.add_argument("-s", "--scenario")
    parser.add_argument("-m", "--mutant", default="", help="a rule to leave out, or all: one after the other")
    parser.add_argument("-n", "--states", type=int, default=60_000, help="at most so many for each (60000)")
    arguments = parser.parse_args(words)
    model = MODELS[arguments.provider]
    if not set(filter(None, arguments.mutant.split(" + "))) <= {"all", *model.rules()}:
        parser.error(f"no such rule; there are: {', '.join(model.rules())}")
    if arguments.scenario not in (None, *model.scenarios):
        parser.error(f"no such scenario; there are: {', '.join(model.scenarios)}")
    wrong = 0
    for mutant in model.mutants if arguments.mutant == "all" else [arguments.mutant]:
        chosen = [model.mutants[mutant]] if mutant in model.mutants else list(model.scenarios)
        if arguments.scenario:
            chosen = [arguments.scenario]
        wrong += not look(model, mutant, chosen, arguments.states)
    print(f"wrong: {wrong}")
    return wrong


def look(model: Model, mutant: str, names: list[str], most_states: int) -> bool:
    """Whether it came out as it must: nothing broken in the design, something in a mutant."""
    is_caught, states = False, 0
    for name in names:
        began = time.monotonic()
        found = model.explore(name, frozenset(filter(None, mutant.split(" + "))), most_states)
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
    if len(names) > 1:
        print(f"{mutant or 'the design':40} {len(names)} scenarios  {states:8} states")
    if mutant in model.needless and not is_caught:
        print(f"    needless: {model.needless[mutant]}")
    return is_caught == (bool(mutant) and mutant not in model.needless)


if __name__ == "__main__":
    sys.exit(main())
