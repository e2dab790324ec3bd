"""A next hop that hangs for ever costs nobody else anything: `python -m benchmarks.isolation`.

Some messages have a recipient whose next hop takes the connection and never greets, one whose next hop never answers the
final dot, and one whose next hop is well. While these hang, numbered messages go elsewhere at a steady rate; their delay is
from their MAIL to the reply to their final dot at the sink. Runs without and with the hanging hops take turns, each with a
server of its own. The median p95 with them may be 1.2 times that without, or 20 ms more, if that is larger.

Rules: a run counts only if the hops hung from before its first message until after its last, and nothing else was left in
the queue. Bounded in number and time, and every process is ended, also on errors.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import smtplib
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.drain import delays, percentile
from benchmarks.results.records import Acknowledged, Delivery
from benchmarks.results.report import table
from benchmarks.sinks.hanging import Way, hung
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import TREE, Extras, Ours
from benchmarks.stage.trial import SMALL, Trial, queue_counts
from tests.support.processes import Process, TrialError, free_port, listeners, start, wait_until

WARM_UP = 100
"""Messages at the beginning of each run that are not counted."""
FACTOR, MORE_S = 1.2, 0.020
WELL = "well.trial.example"
ARRIVAL_S = 30.0
SEEN_S = 1.0
"""What the sinks write down is in their files by then."""


@attrs.frozen
class Run:
    """One run: the delays (seconds) of what went elsewhere, and how many of these messages did not arrive."""

    hanging: int
    """Connections that hung meanwhile; 0 without hanging hops."""
    delays_s: tuple[float, ...]
    missing: int
    load: float = 0.0
    """The machine's load average of the last minute, afterwards."""

    def delay_s(self, share: float) -> float:
        """The delay that this share of all messages does not exceed; infinite for what did not arrive."""
        return percentile([*self.delays_s, *[math.inf] * self.missing], share)

    @property
    def name(self) -> str:
        """Which kind of run."""
        return "with" if self.hanging else "without"


@attrs.frozen
class Verdict:
    """Medians of the runs' p95 (seconds)."""

    without_s: float
    with_s: float

    @property
    def limit_s(self) -> float:
        """What may be with hanging hops."""
        return max(FACTOR * self.without_s, self.without_s + MORE_S)

    @property
    def good(self) -> bool:
        """Whether it was."""
        return math.isfinite(self.without_s) and self.with_s <= self.limit_s

    def text(self) -> str:
        """In one line."""
        figures = [f"{value_s * 1000:.1f} ms" for value_s in (self.with_s, self.without_s, self.limit_s)]
        ending = "good" if self.good else "**not good**"
        return "p95 {} with, {} without; limit {}: {}".format(*figures, ending)


def judge(runs: Sequence[Run]) -> Verdict:
    """Of all runs; infinite without one of either kind."""

    def median(name: str) -> float:
        return statistics.median([run.delay_s(0.95) for run in runs if run.name == name] or [math.inf])

    return Verdict(median("without"), median("with"))


def measured(sent: Sequence[Acknowledged], arrived: Sequence[Delivery]) -> tuple[tuple[float, ...], int]:
    """Delays of what came behind the warm-up, and how many of these did not arrive."""
    return delays([message for message in sent if message.number >= WARM_UP], arrived, -math.inf, math.inf)


def markdown(runs: Sequence[Run]) -> str:
    """A row a run."""
    rows = [
        [
            *(run.name, str(run.hanging), str(len(run.delays_s)), str(run.missing)),
            *(f"{run.delay_s(share) * 1000:.1f}" for share in (0.5, 0.95, 1.0)),
            f"{run.load:.1f}",
        ]
        for run in runs
    ]
    header = ["hanging hops", "hung connections", "messages", "not arrived", "median ms", "p95 ms", "most ms", "load"]
    return table(header, rows)


def turns(count: int) -> Iterator[bool]:
    """Whether each run has hanging hops: the two kinds alternate, and so does which is first."""
    for turn in range(count):
        yield from ((False, True) if turn % 2 == 0 else (True, False))


def await_listener(port: int, sink: Process) -> None:
    """Until the sink listens. Raises: TrialError when it has ended."""
    wait_until(lambda: listeners(port) > 0 or not sink.running(), 20, "the hanging sink to listen")
    if not sink.running():
        raise TrialError(sink.complaint())


class Hops:
    """The hanging next hops, one for each way."""

    def __init__(self, at: Stage, directory: Path, stack: contextlib.ExitStack) -> None:
        """Raises: TrialError."""
        self.ports: dict[Way, int] = {}
        self._records: dict[Way, Path] = {}
        for way in Way:
            port, path = free_port(), directory / f"hung-{way.value}"
            argv = [sys.executable, "-m", "benchmarks.sinks.hanging", str(path), str(port), way.value]
            sink = stack.enter_context(start(f"hanging-{way.value}", argv, at.logs, cwd=TREE))
            await_listener(port, sink)
            self.ports[way], self._records[way] = port, path

    @staticmethod
    def domain(way: Way) -> str:
        """Whose mail goes there."""
        return f"{way.value}.trial.example"

    def relays(self) -> str:
        """For the configuration."""
        return "".join(
            f'<relay address="127.0.0.1:{port}" destdomains="{self.domain(way)}"/>' for way, port in self.ports.items()
        )

    def hung(self) -> tuple[tuple[int, int], ...]:
        """Of each: on how many connections it has hung, and how many were given up."""
        return tuple(hung(path.read_bytes()) for path in self._records.values())


def submit(port: int, count: int, domains: Sequence[str]) -> None:
    """Messages to one recipient at each of the domains. Raises: TrialError."""
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=30) as client:
            for number in range(count):
                client.sendmail(
                    "s@hang.trial.example", [f"h{number}@{domain}" for domain in domains], "Subject: hang\r\n\r\n"
                )
    except (OSError, smtplib.SMTPException) as e:
        raise TrialError(f"the messages that are to hang were not taken: {e}") from e


def run(options: argparse.Namespace, at: Stage, is_hanging: bool) -> Run:
    """One run. Raises: TrialError, also when the hops did not hang all the time."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(at.place(free_port()))
        trial = Trial(place.directory, SMALL)
        stack.callback(trial.close)
        trial.start_sink()
        hops = Hops(at, place.directory, stack)
        well = Trial(place.directory / "well", SMALL)
        well.directory.mkdir()
        stack.callback(well.close)
        well.start_sink()
        relays = hops.relays() + f'<relay address="127.0.0.1:{well.sink_port}" destdomains="{WELL}"/>'
        server = Ours(extras=Extras(relays=relays), provider=chosen(options))
        stack.callback(server.close)
        server.start(attrs.evolve(place, sink_port=trial.sink_port))
        if is_hanging:
            submit(server.port, options.hung, [*map(hops.domain, Way), WELL])
            wait_until(lambda: all(begun for begun, _ in hops.hung()), ARRIVAL_S, "the next hops to hang")
            wait_until(lambda: len(well.deliveries()) == options.hung, ARRIVAL_S, "these messages' other recipients")
        generator = trial.start_generator(server.port, WARM_UP + options.messages, options.rate, 1)
        if generator.wait(60 + 10 * (WARM_UP + options.messages) / options.rate):
            raise TrialError(generator.complaint())
        trial.drain(ARRIVAL_S)
        sent, doubt = trial.sent()
        if doubt:
            raise TrialError(f"the server did not take every message: {doubt[0]}")
        if any(given_up for _, given_up in hops.hung()):
            raise TrialError(f"the next hops did not hang all the time: {hops.hung()}")
        counts, left = queue_counts(server), options.hung * len(Way) if is_hanging else 0
        if counts != {"incoming": left, "deferred": 0, "bounces": 0}:
            raise TrialError(f"{left} entries should be left in the queue: {counts}")
        server.kill()  # a clean stop would wait for the final dot's reply
        return Run(sum(begun for begun, _ in hops.hung()), *measured(sent, trial.deliveries()), os.getloadavg()[0])


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isolation", description="A next hop hangs for ever.")
    add_option(parser)
    parser.add_argument("--messages", type=int, default=1000, help="that go elsewhere in a run")
    parser.add_argument("--rate", type=float, default=200.0, help="messages a second")
    parser.add_argument("--hung", type=int, default=1, help="messages with recipients whose next hops hang")
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queues lie")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when the limit was kept."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs: list[Run] = []
    try:
        with stage(options.directory) as at:
            for is_hanging in turns(options.runs):
                one = run(options, at, is_hanging)
                runs.append(one)
                say(f"{one.name} hanging hops: p95 {one.delay_s(0.95) * 1000:.1f} ms of {len(one.delays_s)} messages")
    except TrialError as e:
        say(f"stopped: {e}")
        return 1
    print(markdown(runs))
    verdict = judge(runs)
    print(f"\n{verdict.text()}")
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
