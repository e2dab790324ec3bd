"""What an act on a large queue leaves of the deliveries beside it: `python -m benchmarks.acts_beside --entries 60000`.

A queue of deferred messages is built, whose time comes in hours. A server runs over it, and delivers other mail as fast as
it goes. Then acts follow upon each other, a hold of all that waits and its undoing in turn, with windows of deliveries
alone before, between and behind them. Told are the rates of deliveries in both kinds of windows, what is left of them
beside the acts, and how fast these went. An act that lasts longer than `--longest` is interrupted, and counts as far as it
came.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from benchmarks.measure.costs import pss_bytes
from benchmarks.results.report import table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.administrator import Administrator
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import TREE, Sink, program
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import Extras, Ours
from benchmarks.stage.trial import queue_counts
from mailismus.errors import StartError
from mailismus.queue.acts.act import Act, ActKind
from tests.support.processes import TrialError, free_port, start, wait_until

LEAST_SHARE = 0.9
BUILD_TIMEOUT_S = 600.0


@attrs.frozen
class Beside:
    """One act beside the load. `share`: of the rate of deliveries in the windows before and behind it."""

    name: str
    entries: int
    seconds: float
    rate: float
    share: float

    def cells(self) -> list[str]:
        """A row of the table."""
        pace = self.entries / self.seconds
        numbers = f"{self.seconds:.1f}", f"{pace:.0f}", f"{self.rate:.0f}", f"{self.share:.2f}"
        return [self.name, str(self.entries), *numbers]


class Acts:
    """A hold of all that waits, and its undoing."""

    def __init__(self, administrator: Administrator) -> None:
        self._administrator = administrator
        self._newest: Act | None = None

    def run(self, name: str) -> None:
        """Do an act to its end, or for the longest time. Raises: TrialError, StartError."""
        if name == "undo" and self._newest is not None:
            self._newest = self._administrator.undo(self._newest)
        else:
            self._newest = self._administrator.act(ActKind.HOLD, ["area=deferred"])

    def changed(self, name: str) -> int:
        """How many entries the newest act, or its undoing, has changed."""
        return 0 if self._newest is None else self._newest.restored if name == "undo" else self._newest.entries


def measure(options: argparse.Namespace, at: Stage) -> list[Beside]:
    """All acts over one queue. Raises: TrialError, StartError."""
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(at.place(free_port()))
        place = attrs.evolve(made, port=free_port())
        sink = Sink(place.logs, place.sink_port)
        stack.callback(sink.close)
        server = Ours(extras=Extras("<retry_delays>4h</retry_delays>"), provider=chosen(options))
        stack.callback(server.close)
        server.configure(place)
        argv = [sys.executable, "-m", "benchmarks.queue_builder", str(server.config), str(options.entries)]
        argv += ["--area", "deferred", "--provider", server.provider.name, "--recipients", str(options.recipients)]
        with start("builder", argv, place.logs, cwd=TREE) as builder:
            if builder.wait(BUILD_TIMEOUT_S):
                raise TrialError(builder.complaint())
        server.start(place)
        wait_until(lambda: queue_counts(server)["deferred"] == options.entries, 120, "all entries to be counted", 1.0)
        argv = [program("smtp-source"), *WORKLOADS["W2"].source_arguments(10_000_000), f"127.0.0.1:{server.port}"]
        with start("source", argv, place.logs) as generator:
            administrator = Administrator(place.directory / "admin.sock", options.longest)
            found = beside_load(options, sink.count, Acts(administrator))
            if not generator.running():
                raise TrialError(generator.complaint())
            generator.kill()
        say(f"memory of the server behind all of it: {pss_bytes(server.account.pids()) / 1e6:.0f} MB")
        server.stop()
    return found


def beside_load(options: argparse.Namespace, delivered: Callable[[], int], acts: Acts) -> list[Beside]:
    """The windows."""

    def rate_during(act: Callable[[], None]) -> tuple[float, float]:
        first, began_s = delivered(), time.monotonic()
        act()
        seconds = time.monotonic() - began_s
        return (delivered() - first) / seconds, seconds

    def alone() -> None:
        time.sleep(options.window)

    time.sleep(3.0)
    before, _ = rate_during(alone)
    found: list[Beside] = []
    for number in range(options.acts):
        name = ("hold", "undo")[number % 2]
        rate, seconds = rate_during(partial(acts.run, name))
        entries = acts.changed(name)
        after, _ = rate_during(alone)
        found.append(Beside(name, entries, seconds, rate, rate / ((before + after) / 2)))
        say(f"{found[-1]}; alone before and behind it {before:.0f} and {after:.0f}")
        before = after
    return found


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acts_beside", description="Acts beside deliveries.")
    add_option(parser)
    parser.add_argument("--entries", type=int, default=60_000, help="in the queue (default: %(default)s)")
    parser.add_argument("--recipients", type=int, default=1, help="of each message (default: %(default)s)")
    parser.add_argument("--acts", type=int, default=4, help="holds and undoings in turn (default: %(default)s)")
    parser.add_argument("--window", type=float, default=8.0, help="seconds of deliveries alone (default: %(default)s)")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds of an act, at most (default: %(default)s)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when enough was left of the deliveries, and each act came on."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stage(options.directory) as at:
            found = measure(options, at)
    except (StartError, TrialError) as e:
        say(f"stopped: {e}")
        return 1
    print(table(["act", "entries", "s", "entries/s", "delivered/s beside it", "share"], [one.cells() for one in found]))
    shares = [one.share for one in found]
    mean = sum(shares) / len(shares)
    good = mean >= LEAST_SHARE and all(one.entries for one in found)
    print(f"left of the deliveries, in the mean: {mean:.2f}")
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
