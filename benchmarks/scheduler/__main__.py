"""`python -m benchmarks.scheduler [--only NAME] [--runs N]`: each load, its figures and its verdict.

The exit code is 0 only if every promise was kept. Bounded in number and time, and every process is ended, also on errors.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.scheduler.bed import Scene
from benchmarks.scheduler.cases import CASES
from benchmarks.scheduler.checks import Check, Played
from benchmarks.stage.contenders import add_directory, check_out
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import TREE
from tests.support.processes import TrialError


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduler", description="Loads on the scheduler.")
    add_option(parser)
    parser.add_argument("--only", action="append", choices=[*CASES], help="this load alone; may be given several times")
    parser.add_argument("--runs", type=int, default=0, help="of each kind, where a load has two (default: by load, 1 to 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="smaller loads, to see whether it works: 0.1")
    parser.add_argument("--previous", metavar="REVISION", help="another revision of this repository too; it is not judged")
    add_directory(parser)
    return parser


def play(options: argparse.Namespace, at: Stage, name: str, tree: Path) -> Played:
    """One load. What could not be carried out is not good."""
    case = CASES[name]
    scene = Scene(at, chosen(options), tree, options.runs or case.runs, options.scale)
    try:
        return case.play(scene)
    except TrialError as e:
        return Played((), [Check(f"{name} can be carried out", str(e), good=False)])


def main(argv: Sequence[str] | None = None) -> int:
    """Give the exit code."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    good = True
    with stage(options.directory) as at:
        trees = {"": TREE} | ({" (previous)": check_out(options.previous, at.root)} if options.previous else {})
        for name in options.only or CASES:
            for label, tree in trees.items():
                say(f"{name}{label}: {CASES[name].about}")
                began_s = time.monotonic()
                played = play(options, at, name, tree)
                load = os.getloadavg()[0]
                print(f"\n## {name}{label}\n{CASES[name].about}; {time.monotonic() - began_s:.0f} s, load {load:.1f}\n")
                print(played.text(), flush=True)
                good = good and (bool(label) or played.good)
    print("\ngood" if good else "\n**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TrialError as e:
        sys.exit(f"scheduler: {e}")
