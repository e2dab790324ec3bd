"""Copies of the content and passes over it, by way: `python -m benchmarks.content`. What is counted: docs/benchmarks.md."""

from __future__ import annotations

import argparse
import enum
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import attrs

from benchmarks.measure import copies, instructions, system_calls
from benchmarks.measure.calls import C, CountedOurs, Key, Snapshots, minus
from benchmarks.measure.instructions import Callgrind
from benchmarks.measure.passes import Pass, calibrate, passes
from benchmarks.results.report import number, table
from benchmarks.results.workloads import Connections, Workload
from benchmarks.stage.contenders import LASTING, Contender, add_directory, contenders
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import send
from benchmarks.stage.progress import say
from benchmarks.stage.running import QUIET_S, TIMEOUT_S, Running, started
from benchmarks.stage.servers import Ours
from tests.support.processes import TrialError

HELD = attrs.evolve(LASTING, deliver="<delay_start>1d</delay_start>")
"""Nothing is delivered, either."""
LEAST = 0.02
Figures = dict[str, float]
"""By C function, or by way through the kernel: for each byte of content."""


class Way(enum.Enum):
    """Which part of the path is counted."""

    IN = "in"
    BOTH = "in and out"


@attrs.frozen
class Pair:
    """Two sizes of message that go the same way: the difference between them is content and nothing else.

    The difference is a multiple of 64 KiB: what is cut off at the end of what a receive brought is the same for both."""

    name: str
    small_bytes: int
    large_bytes: int
    messages: int

    def difference(self, small: Mapping[str, float], large: Mapping[str, float]) -> Figures:
        """For each byte of content."""
        more = self.messages * (self.large_bytes - self.small_bytes)
        return {key: (large.get(key, 0) - small.get(key, 0)) / more for key in {**small, **large}}

    def workload(self, size_bytes: int) -> Workload:
        """One message a connection."""
        return Workload(self.name, size_bytes, 1, Connections.ONE_MESSAGE, self.messages, self.messages)


PAIRS = (
    Pair("up to 100 KiB, in the journal", 36 << 10, 100 << 10, 100),
    Pair("up to 1 MiB, in a message file", 512 << 10, 1 << 20, 30),
)


def carry(running: Running, workload: Workload, messages: int, way: Way) -> None:
    """Send messages and wait until they have gone where they go. Raises: TrialError."""
    server, sink, place = running
    before = sink.count()
    send(workload, messages, server.port, place.logs, TIMEOUT_S)
    if way is Way.BOTH:
        sink.wait_for(before + messages, TIMEOUT_S)
    time.sleep(QUIET_S)


def server_for(contender: Contender, way: Way) -> Ours:
    """A contender's server for one way."""
    return Ours(contender.name, contender.tree, HELD if way is Way.IN else LASTING)


def count_copies(contender: Contender, at: Stage, pair: Pair, way: Way) -> Figures:
    """Copies of the content by C functions. Raises: TrialError."""
    found = []
    for size in (pair.small_bytes, pair.large_bytes):
        file = at.root / "copies"
        with started(lambda: server_for(contender, way), at, copies.command(file)) as running:
            carry(running, pair.workload(size), pair.messages, way)
        found.append(copies.parse(file.read_text()))
        file.unlink()
    return pair.difference(*found)


def count_instructions(contender: Contender, at: Stage, pair: Pair, way: Way) -> Figures:
    """Instructions a byte of content by C function. Raises: TrialError."""
    file, found = at.root / "callgrind", []
    with started(lambda: server_for(contender, way), at, instructions.command(file)) as running:
        tool = Callgrind(file, running[0].pid)
        for size in (pair.small_bytes, pair.large_bytes):
            carry(running, pair.workload(size), 5, way)
            tool.dump()
            carry(running, pair.workload(size), pair.messages, way)
            found.append(tool.dump().own)
    return pair.difference(*found)


def count_kernel(contender: Contender, at: Stage, pair: Pair, way: Way) -> Figures:
    """Bytes through the kernel for each byte of content. Raises: TrialError."""
    trace, spans = at.root / "trace", []
    with started(lambda: server_for(contender, way), at, system_calls.command(trace)) as running:
        for size in (pair.small_bytes, pair.large_bytes):
            carry(running, pair.workload(size), 5, way)  # what is made ahead (segments of the journal) is made now
            began = time.time()
            carry(running, pair.workload(size), pair.messages, way)
            spans.append((began, time.time()))
    found = []
    for span in spans:
        with trace.open(errors="replace") as lines:
            found.append(system_calls.bytes_moved((line.rstrip("\n") for line in lines), span))
    trace.unlink()
    return pair.difference(*found)


def callers(contender: Contender, at: Stage, pair: Pair) -> dict[str, set[str]]:
    """The parts of the hot path that call a function in C more often for a larger message, or else at all. Raises:
    TrialError."""
    found = []
    with started(lambda: CountedOurs(contender.name, contender.tree, LASTING), at) as running:
        snapshots = Snapshots(running[2].logs, running[0].pid)
        for size in (pair.small_bytes, pair.large_bytes):
            before = snapshots.take()
            carry(running, pair.workload(size), pair.messages, Way.BOTH)
            found.append(minus(snapshots.take(), before))
    return parts_calling(found[0], found[1], pair.messages / 2)


def parts_calling(small: Mapping[Key, int], large: Mapping[Key, int], least: float) -> dict[str, set[str]]:
    """By function in C: the parts that call it at least so many times more for the large messages, or else at all."""
    growing, all_parts = dict[str, set[str]](), dict[str, set[str]]()
    for (kind, function, part), count in large.items():
        if kind == C and count - small.get((kind, function, part), 0) >= least:
            growing.setdefault(function, set()).add(part)
        if kind == C and count >= least:
            all_parts.setdefault(function, set()).add(part)
    return {**all_parts, **growing}


def out(found: Mapping[Way, Figures]) -> dict[str, tuple[float, float]]:
    """Of each key: on the way in, and on the way out."""
    both, inward = found[Way.BOTH], found[Way.IN]
    return {key: (inward.get(key, 0.0), both.get(key, 0.0) - inward.get(key, 0.0)) for key in {**both, **inward}}


def rows(found: Mapping[Way, Figures], notes: Mapping[str, str]) -> list[list[str]]:
    """A row a key, the greatest first, and the sum."""
    both = {key: values for key, values in out(found).items() if max(map(abs, values)) >= LEAST}
    ordered = sorted(both.items(), key=lambda item: -sum(item[1]))
    text = [[key, number(inward), number(outward), notes.get(key, "")] for key, (inward, outward) in ordered]
    sums = [number(sum(values[index] for values in both.values())) for index in (0, 1)]
    return [*text, ["all", *sums, ""]]


def section(
    copied: Mapping[Way, Figures],
    executed: Mapping[Way, Figures],
    moved: Mapping[Way, Figures],
    costs: Mapping[str, Pass],
    parts: Mapping[str, set[str]],
) -> str:
    """The tables of one server and pair of sizes."""
    looked = {way: passes(figures, costs) for way, figures in executed.items()}
    others = {way: {key: value for key, value in figures.items() if key not in costs} for way, figures in executed.items()}
    called = {name: ", ".join(sorted(found)) for name, found in parts.items()}
    notes = {
        function: f"{cost.operation}, {number(cost.per_byte)} instructions a byte; called in: "
        f"{called.get(cost.operation.partition(' of')[0], 'unknown')}"
        for function, cost in costs.items()
    }
    texts = [
        table(["copies of the content, by C function", "in", "out", ""], rows(copied, {})),
        table(["passes over the content, by C function", "in", "out", ""], rows(looked, notes)),
        table(["bytes through the kernel for each of content", "in", "out", ""], rows(moved, {})),
        table(["other instructions a byte of content", "in", "out", ""], rows(others, {})[:12]),
    ]
    return "\n\n".join(texts)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.content", description="Copies of the content and passes over it, a message."
    )
    parser.add_argument("--previous", metavar="REVISION", help="count another revision of this repository too")
    parser.add_argument(
        "--pair", type=int, action="append", choices=range(len(PAIRS)), help="0: 100 KiB, 1: 1 MiB (default: both)"
    )
    add_directory(parser)
    return parser


def carry_out(at: Stage, options: argparse.Namespace) -> None:
    """Everything, printed as it is found. Raises: TrialError."""
    servers = contenders(at, options.previous, None)
    say("what a pass costs")
    costs = calibrate(at.root)
    for index in options.pair or range(len(PAIRS)):
        pair = PAIRS[index]
        for server in servers:
            say(f"{pair.name}, {server.name}: copies")
            copied = {way: count_copies(server, at, pair, way) for way in Way}
            say("instructions")
            executed = {way: count_instructions(server, at, pair, way) for way in Way}
            say("system calls, and calls")
            moved = {way: count_kernel(server, at, pair, way) for way in Way}
            text = section(copied, executed, moved, costs, callers(server, at, pair))
            print(f"Messages of {pair.name}: {server.name}\n\n{text}\n", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when something could not be counted (what was until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stage(options.directory) as at:
            carry_out(at, options)
    except (TrialError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as e:
        say(f"stopped: {str(e) or 'interrupted'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
