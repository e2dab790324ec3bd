"""Calls a message by part of the hot path, and instructions: `python -m benchmarks.calls`. Details: docs/benchmarks.md."""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
from collections.abc import Sequence

import attrs

from benchmarks.measure.calls import PYTHON, C, Calls, count_calls, functions_table, parts_table
from benchmarks.measure.instructions import count_instructions, is_installed
from benchmarks.results.report import number, table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.contenders import Contender, add_options, contenders
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import ServedProvider, add_option, chosen
from tests.support.processes import TrialError

DEFAULT = ("W1", "W2", "W3")


@attrs.define
class Results:
    """What one invocation found, filled as it goes: by workload, then by server."""

    calls: dict[str, dict[str, Calls]] = attrs.Factory(dict)
    instructions: dict[str, dict[str, float]] = attrs.Factory(dict)

    def markdown(self, functions: int) -> str:
        """All tables; `functions`: how many functions of each server and workload."""
        found = []
        for workload, servers in self.calls.items():
            if servers:
                about = f"{workload} ({WORKLOADS[workload].sentence}): calls a message."
                found.append(f"{about}\n\n{parts_table(servers, WORKLOADS[workload])}")
            for name, calls in servers.items():
                if functions:
                    found.append(f"{workload} {name}: most calls.\n\n{functions_table(calls, functions)}")
        found.append(self.summary())
        return "\n\n".join(found)

    def summary(self) -> str:
        """A row a workload and server, with ratios to the first server."""
        rows = []
        for workload in {**self.calls, **self.instructions}:
            calls, instructions = self.calls.get(workload, {}), self.instructions.get(workload, {})
            figures = {
                name: [
                    calls[name].total(PYTHON) if name in calls else float("nan"),
                    calls[name].total(C) if name in calls else float("nan"),
                    instructions.get(name, float("nan")) / 1000,
                ]
                for name in {**calls, **instructions}
            }
            first = next(iter(figures.values()), [])
            for name, values in figures.items():
                ratios = [ratio(one, other) for one, other in zip(first, values, strict=True)]
                rows.append(
                    [
                        f"{workload} {name}",
                        *(cell for pair in zip(map(number, values), ratios, strict=True) for cell in pair),
                    ]
                )
        header = ["", "Python calls/msg", "ours / it", "C calls/msg", "ours / it", "thousand instructions/msg", "ours / it"]
        return table(header, rows)


def ratio(one: float, other: float) -> str:
    """Of two figures; none where one of them was not counted."""
    return "-" if math.isnan(one) or math.isnan(other) or not other else f"{one / other:.3f}"


def carry_out(
    at: Stage,
    servers: Sequence[Contender],
    workloads: Sequence[str],
    provider: ServedProvider,
    figures: str,
    results: Results,
) -> None:
    """Count everything. Raises: TrialError."""
    if figures != "instructions":
        for name in workloads:
            for server in servers:
                calls = count_calls(server, at, WORKLOADS[name], provider=provider)
                results.calls.setdefault(name, {})[server.name] = calls
                say(f"{name} {server.name}: {calls.total(PYTHON):.0f} Python calls, {calls.total(C):.0f} C calls")
    if figures == "calls":
        return
    if not is_installed():
        say("no instructions: valgrind is not installed")
        return
    for server in servers:
        found = count_instructions(server, at, [WORKLOADS[name] for name in workloads], provider)
        for name, count in found.items():
            results.instructions.setdefault(name, {})[server.name] = count
            say(f"{name} {server.name}: {count / 1000:.0f} thousand instructions")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calls", description="Calls and instructions a message, by part of the hot path."
    )
    add_option(parser)
    add_options(parser)
    parser.add_argument("--workload", action="append", choices=sorted(WORKLOADS), help="which (default: W1, W2, W3)")
    parser.add_argument(
        "--functions", nargs="?", type=int, const=40, default=0, help="show the functions with most calls too (default: 40)"
    )
    parser.add_argument("--only", choices=("calls", "instructions"), help="leave the other figure out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when something could not be counted (what was until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results, code = Results(), 0
    try:
        with stage(options.directory) as at:
            servers = contenders(at, options.previous, options.other)
            carry_out(at, servers, options.workload or DEFAULT, chosen(options), options.only or "", results)
    except (TrialError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as e:
        say(f"stopped: {str(e) or 'interrupted'}")
        code = 1
    if results.calls or results.instructions:
        print(results.markdown(options.functions))
    return code


if __name__ == "__main__":
    sys.exit(main())
