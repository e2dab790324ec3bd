"""What it takes to find and change one message of a large queue: `python -m benchmarks.acts_by_id --provider log`.

A queue of deferred messages is built, whose time comes in hours. A server runs over it. Messages of it, named by their ids,
are looked for, held, and the hold is undone, in turn: first alone, then beside deliveries as fast as they go, in windows
with deliveries alone between them. Told are the seconds of each, and what was left of the deliveries.

Rules: a look is what `queue show` asks the server for, an act is asked for at its socket, without the count that a command
makes before; each must find what it names. No command starts in between. An act is told at its end, or 0.2 s later.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.costs import pss_bytes
from benchmarks.results.report import table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.administrator import Administrator, connected
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import TREE, Sink, program
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import Extras, Ours
from benchmarks.stage.trial import administer, queue_counts
from mailismus.errors import StartError
from mailismus.queue.acts.act import ActKind
from tests.support.processes import TrialError, free_port, start, wait_until

LEAST_SHARE = 0.9
BUILD_TIMEOUT_S = 900.0
LISTED = 5000
"""Messages of the queue from which those are drawn that are named."""


@attrs.define
class Times:
    """Seconds of each kind of request."""

    of: dict[str, list[float]] = attrs.field(factory=dict)

    @contextlib.contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Note how long something takes."""
        began_s = time.monotonic()
        yield
        self.of.setdefault(name, []).append(time.monotonic() - began_s)

    def cell(self, name: str) -> str:
        """Median and highest."""
        found = self.of.get(name)
        return f"{statistics.median(found):.2f}, {max(found):.2f} ({len(found)})" if found else "-"


class ByName:
    """Looks, holds and undoings of single messages of one server."""

    def __init__(self, server: Ours, socket_path: Path) -> None:
        self._path, self._administrator = socket_path, Administrator(socket_path)
        lines = administer(server, "queue", "list", "area=deferred", "--limit", str(LISTED), "--json").splitlines()
        self._names = sorted({str(json.loads(line)["queue_id"]) for line in lines})
        random.Random(1).shuffle(self._names)

    def run(self, times: Times, seconds: float, least: int) -> None:
        """Go on for so long, with at least so many messages, and add their times. Raises: TrialError, StartError."""
        ends_s = time.monotonic() + seconds
        while least > 0 or time.monotonic() < ends_s:
            self._names.append(self._names.pop(0))
            self._one(self._names[-1], times)
            least -= 1

    def _one(self, name: str, times: Times) -> None:
        with times.measured("look"), connected(self._path) as source:
            found = list(source.messages((name,), None))
        with times.measured("hold"):
            held = self._administrator.act(ActKind.HOLD, (name,))
        with times.measured("undo"):
            undone = self._administrator.undo(held)
        counts = (len(found), held.messages, min(1, undone.restored))
        if counts != (1, 1, 1):
            raise TrialError(f"{name}: found, held and restored were {counts} messages")


@attrs.frozen
class Found:
    """All that was measured. `shares`: what was left of the deliveries in each window beside acts; `rate`: of them alone."""

    alone: Times
    beside: Times
    shares: list[float]
    rate: float
    memory_bytes: int


def measure(options: argparse.Namespace, at: Stage) -> Found:
    """Both parts over one queue. Raises: TrialError, StartError."""
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
        by_name = ByName(server, place.directory / "admin.sock")
        alone, beside = Times(), Times()
        by_name.run(alone, 0.0, options.alone)
        argv = [program("smtp-source"), *WORKLOADS["W2"].source_arguments(10_000_000), f"127.0.0.1:{server.port}"]
        with start("source", argv, place.logs) as generator:
            time.sleep(3.0)
            rates = [rate_during(sink, lambda: time.sleep(options.window))]
            shares: list[float] = []
            for _ in range(options.windows):
                rate = rate_during(sink, lambda: by_name.run(beside, options.window, 1))
                rates.append(rate_during(sink, lambda: time.sleep(options.window)))
                shares.append(rate / statistics.mean(rates[-2:]))
                say(f"{rate:.0f} a second beside acts, {rates[-2]:.0f} and {rates[-1]:.0f} alone before and behind them")
            if not generator.running():
                raise TrialError(generator.complaint())
            generator.kill()
        found = Found(alone, beside, shares, statistics.mean(rates), pss_bytes(server.account.pids()))
        server.stop()
    return found


def rate_during(sink: Sink, act: Callable[[], None]) -> float:
    """Deliveries a second meanwhile."""
    first, began_s = sink.count(), time.monotonic()
    act()
    return (sink.count() - first) / (time.monotonic() - began_s)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acts_by_id", description="Acts on one message of many.")
    add_option(parser)
    parser.add_argument("--entries", type=int, default=100_000, help="in the queue (default: %(default)s)")
    parser.add_argument("--recipients", type=int, default=1, help="of each message (default: %(default)s)")
    parser.add_argument("--alone", type=int, default=10, help="messages without other work (default: %(default)s)")
    parser.add_argument("--windows", type=int, default=4, help="beside deliveries (default: %(default)s)")
    parser.add_argument("--window", type=float, default=5.0, help="seconds of each window (default: %(default)s)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when each message was found, and enough was left of the deliveries."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stage(options.directory) as at:
            found = measure(options, at)
    except (StartError, TrialError) as e:
        say(f"stopped: {e}")
        return 1
    rows = [[name, found.alone.cell(name), found.beside.cell(name)] for name in found.alone.of]
    print(table(["request", "alone, s: median, highest (count)", "beside deliveries, s"], rows))
    share, each = statistics.mean(found.shares), ", ".join(f"{one:.2f}" for one in found.shares)
    print(f"left of {found.rate:.0f} deliveries a second: {share:.2f} ({each}); server {found.memory_bytes / 1e6:.0f} MB")
    good = share >= LEAST_SHARE
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
