"""What commits must reach, each with its verdict: `python -m benchmarks.commit_goals`. What is measured: docs/benchmarks.md.

- `barriers`: at 50 sessions, counted from outside by strace;
- `alone`: a lone client's 250 beside a bare append in turn with it, while nothing is delivered;
- `files`: message files made a message while the next hop is up;
- `gaps`: the longest time without any 250 while a backlog builds up, beside a bare append loop on the same file system.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from benchmarks.clients.append_loop import append_loop
from benchmarks.clients.closed_loop import Answers, Lone
from benchmarks.drain import percentile
from benchmarks.main_path import measure_barriers
from benchmarks.measure.disk_calls import Counted
from benchmarks.measure.sync_calls import MESSAGE, WrittenFile
from benchmarks.results.report import number, table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.directories import Stage, file_system, stage
from benchmarks.stage.load import Sink
from benchmarks.stage.progress import say
from benchmarks.stage.providers import ServedProvider, add_option, chosen
from benchmarks.stage.servers import TREE, Extras, Ours
from tests.support.processes import TrialError, free_port, start, wait_until

SESSIONS, SIZE_BYTES = 50, 4096
BARRIERS_A_MESSAGE, FILES_A_MESSAGE = 0.2, 0.05
LONE_TIMES, LONE_MORE_S = 3.0, 0.002
GAP_MORE_S, CHECKPOINTS = 0.250, 4
LONE_WARM_UP = 50
DRAIN_S, LONGEST_S = 60.0, 900.0
HELD = "<delay_start>1d</delay_start>"
"""Nothing is delivered."""


@attrs.frozen
class Finding:
    """One goal's row."""

    what: str
    found: str
    limit: str
    good: bool


def lone_limit_s(bare_s: float) -> float:
    """How long a lone client's 250 may take."""
    return max(LONE_TIMES * bare_s, bare_s + LONE_MORE_S)


def barriers(at: Stage, options: argparse.Namespace) -> list[Finding]:
    """At 50 sessions, by workload."""
    found = []
    for name in ("W1", "W2"):
        counted = [
            measure_barriers(partial(Ours, provider=chosen(options)), at, WORKLOADS[name]) for _ in range(options.runs)
        ]
        rates = [one.barriers.count / one.messages for one in counted]
        middle = statistics.median(rates)
        text = f"{number(middle)} ({', '.join(map(number, rates))})"
        what = f"barriers a message at 50 sessions, {WORKLOADS[name].connections.value}"
        found.append(Finding(what, text, f"<= {BARRIERS_A_MESSAGE}", middle <= BARRIERS_A_MESSAGE))
    return found


def alone(at: Stage, options: argparse.Namespace) -> list[Finding]:
    """A lone client."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(at.place(free_port()))
        server = Ours(extras=Extras(deliver=HELD), provider=chosen(options))
        stack.callback(server.close)
        server.start(place)
        file = stack.enter_context(WrittenFile(place.queue / "bare"))
        client = stack.enter_context(Lone(server.port, SIZE_BYTES))
        answers, bare = [], []
        for _ in range(LONE_WARM_UP):
            client.send()
        for _ in range(options.lone):
            answers.append(client.send())
            bare.append(file.append([MESSAGE]))
    answer_s, bare_s = statistics.median(answers), statistics.median(bare)
    limit_s = lone_limit_s(bare_s)
    text = f"{number(answer_s * 1e3)} ms (p95 {number(percentile(answers, 0.95) * 1e3)})"
    limit = f"<= {number(limit_s * 1e3)} ms (an append: {number(bare_s * 1e3)}, p95 {number(percentile(bare, 0.95) * 1e3)})"
    return [Finding("a lone client's 250, median", text, limit, answer_s <= limit_s)]


def files(at: Stage, options: argparse.Namespace) -> list[Finding]:
    """Message files while the next hop is up."""
    with contextlib.ExitStack() as stack:
        sink = Sink(at.logs)
        stack.callback(sink.close)
        place = stack.enter_context(at.place(sink.port))
        server = Counted()
        stack.callback(server.close)
        server.start(place)
        answers = send(server, place.logs, ["--seconds", str(options.seconds)])
        messages = len(answers.at_s)
        wait_until(lambda: sink.count() >= messages, DRAIN_S, f"{messages} messages at the sink")
        rate = server.counts().message_files / messages
    what = "message files made a message, next hop up"
    return [Finding(what, f"{number(rate)} ({messages} messages)", f"< {FILES_A_MESSAGE}", rate < FILES_A_MESSAGE)]


def send(server: Ours, logs: Path, bounds: Sequence[str]) -> Answers:
    """Messages over 50 sessions, to the end. Raises: TrialError."""
    record = logs / "answers"
    argv = [sys.executable, "-m", "benchmarks.clients.closed_loop", str(record), str(server.port)]
    argv += ["--sessions", str(SESSIONS), "--size", str(SIZE_BYTES), *bounds]
    with start("closed-loop", argv, logs, cwd=TREE) as clients:
        if clients.wait(LONGEST_S + DRAIN_S):
            raise TrialError(clients.complaint())
    return Answers.read(record)


def metric(port: int, name: str) -> float:
    """One of the server's metrics without labels. Raises: TrialError."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise TrialError(f"no metric {name}")


@attrs.frozen
class Gap:
    """One backlog: the longest time without a 250, and the longest append beside it (seconds)."""

    gap_s: float
    append_s: float
    checkpoints: int
    seconds: float

    @property
    def beyond_s(self) -> float:
        """How much longer than the append."""
        return self.gap_s - self.append_s


def backlog(at: Stage, messages: int, provider: ServedProvider) -> Gap:
    """One backlog. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        place, port = stack.enter_context(at.place(free_port())), free_port()
        metrics = f'<metrics interface="127.0.0.1" port="{port}"/>'
        server = Ours(extras=Extras(queue="<retry_delays>4h</retry_delays>", admin=metrics), provider=provider)
        stack.callback(server.close)
        server.start(place)
        beside = stack.enter_context(append_loop(place.queue, place.logs, LONGEST_S))
        began_s = time.monotonic()
        answers = send(server, place.logs, ["--messages", str(messages), "--seconds", str(LONGEST_S)])
        seconds = time.monotonic() - began_s
        checkpoints = int(metric(port, "mailismus_checkpoints_total"))
        appends = beside.end().between(answers.at_s[0], answers.at_s[-1])
        if len(answers.at_s) < messages:
            raise TrialError(f"{len(answers.at_s)} messages in {LONGEST_S:.0f} s")
        return Gap(answers.longest_gap_s(), max(appends), checkpoints, seconds)


def gaps(at: Stage, options: argparse.Namespace) -> list[Finding]:
    """Some backlogs."""
    taken: list[Gap] = []
    for _ in range(options.runs):
        taken.append(backlog(at, options.messages, chosen(options)))
        say(f"backlog: {taken[-1]}")
    middle = statistics.median(gap.beyond_s for gap in taken)
    least = min(gap.checkpoints for gap in taken)
    each = "; ".join(f"{number(gap.gap_s * 1e3)} beside {number(gap.append_s * 1e3)}" for gap in taken)
    what = f"longest gap between 250s beyond the longest append, {options.messages} messages into a backlog"
    text = f"{number(middle * 1e3)} ms ({each}; {least} checkpoints or more)"
    limit = f"<= {number(GAP_MORE_S * 1e3)} ms, {CHECKPOINTS} checkpoints"
    return [Finding(what, text, limit, middle <= GAP_MORE_S and least >= CHECKPOINTS)]


GOALS: dict[str, Callable[[Stage, argparse.Namespace], list[Finding]]] = {
    "barriers": barriers,
    "alone": alone,
    "files": files,
    "gaps": gaps,
}


def markdown(found: Sequence[Finding]) -> str:
    """A row a goal."""
    rows = [[one.what, one.found, one.limit, "good" if one.good else "**not good**"] for one in found]
    return table(["goal", "found", "limit", ""], rows)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commit_goals", description="What commits must reach.")
    add_option(parser)
    parser.add_argument("--goal", action="append", choices=list(GOALS), help="which (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="of barriers and gaps; their median counts (default: 3)")
    parser.add_argument("--lone", type=int, default=1000, help="messages of the lone client (default: 1000)")
    parser.add_argument("--messages", type=int, default=300_000, help="in the backlog (default: 300000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of load for the message files (default: 10)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queues lie (default: /var/tmp)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when all goals were reached."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[Finding] = []
    is_whole = False
    try:
        with stage(options.directory) as at:
            for goal in options.goal or GOALS:
                say(goal)
                found += GOALS[goal](at, options)
        is_whole = True
    except (TrialError, OSError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
    good = is_whole and all(one.good for one in found)
    if found:
        print(f"{markdown(found)}\n\n{file_system(options.directory)}: {'good' if good else '**not good**'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
