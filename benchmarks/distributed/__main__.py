"""What a message of the shared queue costs: `python -m benchmarks.distributed`. See docs/benchmarks.

The services must be up: `python -m tests.services up`. Exit codes: 0 all aims were met, 1 not, 69 it could not be measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from benchmarks.distributed import figures, kept
from benchmarks.distributed.large import Wanted, measure_large, steps_table
from benchmarks.distributed.page import write_page
from benchmarks.distributed.prices import Price, take_prices
from benchmarks.distributed.run import Load, measure
from benchmarks.measure.profiling import profiler
from benchmarks.results.report import number, table
from benchmarks.stage.progress import say
from tests.support.processes import TrialError

LOADS = {
    "one": Load(1, 1, 0, 500),
    "two": Load(2, 1, 0, 250),
    "ten": Load(1, 10, 0, 200),
    "two-ten": Load(2, 10, 0, 100),
    "deferred": Load(1, 1, 1, 250),
    "two-deferred": Load(2, 1, 1, 125),
    "slices": Load(1, 1, 0, 250, 4),
    "two-slices": Load(2, 1, 0, 125, 4),
}
"""Messages are those of each server."""


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description="A message of the shared queue.")
    parser.add_argument("--load", action="append", choices=[*LOADS], help="default: all")
    parser.add_argument("--prices", action="store_true", help="single calls alone, without a queue")
    parser.add_argument("--fill", type=int, metavar="N", help="a queue of N deferred entries alone")
    parser.add_argument("--no-flush", action="store_true", help="with --fill: nothing is flushed")
    parser.add_argument("--brief", action="store_true", help="with --fill: what a flush made due is not waited for")
    parser.add_argument("--no-delete", action="store_true", help="with --fill: all of it is not deleted in the end")
    text = "with --fill: deleted mail is gone at once, and the queue is cleaned up as days later"
    parser.add_argument("--clean", action="store_true", help=text)
    parser.add_argument("--profile", action="store_true", help="where a message's time goes, whatever it takes (py-spy)")
    parser.add_argument("--record", type=Path, help="a file in which all figures are kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page from the file, and measure nothing")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="for the servers' own directories")
    return parser


class Recorded:
    """Figures, and the file in which they are kept. `path` None: none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.figures = kept.Figures() if path is None else kept.read(path)

    def note(self, found: kept.Figures) -> None:
        """These are they now."""
        self.figures = attrs.evolve(found, machine=_machine())
        if self._path is not None:
            kept.write(self._path, self.figures)


def _machine() -> str:
    return f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"


def measure_loads(options: argparse.Namespace, recorded: Recorded) -> int:
    """Measure loads, and tell them. Return the exit code. Raises: TrialError."""
    runs = []
    for name in options.load or LOADS:
        measured = measure(LOADS[name], options.directory, wants_profile=options.profile, say=say)
        if measured.profile:
            print(f"\n{name}:\n\n{measured.profile}")
        runs.append(measured.run)
        found = recorded.figures.with_run(measured.run, measured.disk)
        is_plain = bool(measured.profile) and measured.run.servers == 1 and figures.has_aims(measured.run)
        recorded.note(attrs.evolve(found, profile=measured.profile) if is_plain else found)
    for text in (figures.costs(runs), figures.traffic(runs), figures.by_name(runs), figures.without_mail(runs[0])):
        print(f"\n{text}")
    missed = figures.over(runs)
    if any(figures.has_aims(run) for run in runs):
        print(f"\n{figures.aims(runs)}")
    slow = [run for run, aim in missed if aim.what == "CPU ms"]
    if slow and not options.profile:
        _tell_profile(options, recorded, slow[0])
    return 1 if missed else 0


def _tell_profile(options: argparse.Namespace, recorded: Recorded, run: figures.Run) -> None:
    if profiler() is None:
        say("no profile: py-spy is not installed (pip install py-spy)")
        return
    load = Load(run.servers, run.recipients, run.turns, run.messages // run.servers, run.slice_s)
    profile = measure(load, options.directory, wants_profile=True, say=say).profile
    recorded.note(attrs.evolve(recorded.figures, profile=profile))
    print(f"\n{profile}")


def measure_prices(recorded: Recorded) -> int:
    """Measure single calls, and tell them. Return the exit code."""
    found: list[Price] = []

    async def take() -> None:
        found.extend(await take_prices(installed))

    def begin(reactor: Any) -> Deferred[None]:
        return Deferred.fromCoroutine(take())

    try:
        react(begin)
    except SystemExit as ended:
        if ended.code:
            raise
    recorded.note(attrs.evolve(recorded.figures, prices=found))
    rows = [[one.service, one.call, number(one.ours_ms), number(one.theirs_ms)] for one in found]
    print(table(["service", "call", "ours, ms", "the service's, ms"], rows))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Give the exit code."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    recorded = Recorded(options.record)
    if options.write is not None:
        write_page(options.write, recorded.figures)
        return 0
    try:
        if options.prices:
            return measure_prices(recorded)
        if options.fill:
            wanted = Wanted(not options.no_flush, not options.no_delete, options.clean, options.brief)
            large = measure_large(options.fill, options.directory, wanted, say)
            recorded.note(recorded.figures.with_large(large))
            print(steps_table(large))
            return 0
        return measure_loads(options, recorded)
    except TrialError as error:
        say(f"stopped: {error}")
        return os.EX_UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
