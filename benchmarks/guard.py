"""What a message costs more than in another revision: `python -m benchmarks.guard REVISION`, in ten minutes.

Counts of the working tree and of the revision, W1 to W3: calls by part, system calls by kind, instructions. No time
is measured, so the machine may be busy. Exit code 1 when anything grew by more than `LIMIT`. Details: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import enum
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import attrs

from benchmarks.measure.calls import PYTHON, C, count_calls
from benchmarks.measure.instructions import count_instructions, is_installed
from benchmarks.measure.system_calls import count_system_calls
from benchmarks.results.report import number, table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.contenders import Contender, add_directory, contenders
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.progress import say
from tests.support.processes import TrialError

GUARDED = ("W1", "W2", "W3")
WAITING = ("futex", "epoll_wait")
"""System calls that depend on how busy the machine is; not judged."""
ROUNDS = 2
"""Servers of both trees take turns (those for instructions once: their loads do). The least of each figure counts: a smaller
batch only ever adds to it."""
LATEST_S = 240.0
"""No further round begins later than that: the last one of a busy machine takes as long again."""
INSTRUCTIONS_S = 240.0
"""Later than that instructions, which take the longest and tell the least, are left out."""


class Figure(enum.Enum):
    """What is compared."""

    CALLS = "calls"
    SYSTEM_CALLS = "system calls"
    INSTRUCTIONS = "thousand instructions"


LIMIT: Mapping[Figure, float] = {Figure.CALLS: 1.02, Figure.SYSTEM_CALLS: 1.02, Figure.INSTRUCTIONS: 1.05}
"""More is growth. Instructions of the same tree differ by some percent from run to run."""
MORE: Mapping[Figure, float] = {Figure.CALLS: 1.0, Figure.SYSTEM_CALLS: 0.2, Figure.INSTRUCTIONS: 10.0}
"""Growth of no more than this is not told, however large its share: it is a few batches more or less."""
Key = tuple[str, Figure, str]
"""Workload, figure, part or kind; `ALL` for the sum."""
ALL = "all"


@attrs.frozen
class Compared:
    """One figure of both trees, a message."""

    key: Key
    before: float
    after: float

    @property
    def has_grown(self) -> bool:
        """By more than the limit, and by more than a few batches explain."""
        figure = self.key[1]
        return self.after > self.before * LIMIT[figure] and self.after - self.before > MORE[figure]

    def row(self) -> list[str]:
        """For the table."""
        ratio = f"{self.after / self.before:.3f}" if self.before > 0 else "-"
        cells = [number(self.before), number(self.after), ratio, "**grew**" if self.has_grown else ""]
        workload, figure, part = self.key
        return [workload, figure.value, part, *cells]


def compare(before: Mapping[Key, float], after: Mapping[Key, float]) -> list[Compared]:
    """In the order of the first tree; a part that one of them does not have is 0 there."""
    return [Compared(key, before.get(key, 0.0), after.get(key, 0.0)) for key in {**before, **after}]


def least(rounds: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    """The least of each figure."""
    keys = {key: None for one in rounds for key in one}
    return {key: min(one.get(key, 0.0) for one in rounds) for key in keys}


def calls_of(server: Contender, at: Stage) -> Iterator[tuple[Key, float]]:
    """By part, and all, Python and C together."""
    for name in GUARDED:
        calls = count_calls(server, at, WORKLOADS[name])
        for part, count in calls.of_parts(WORKLOADS[name]).items():
            yield (name, Figure.CALLS, part), count
        yield (name, Figure.CALLS, ALL), calls.total(PYTHON) + calls.total(C)


def system_calls_of(server: Contender, at: Stage) -> Iterator[tuple[Key, float]]:
    """By kind, with and without an error together, and all; without those that wait."""
    for name in GUARDED:
        kinds = judged(count_system_calls(server, at, WORKLOADS[name]).by_kind)
        for kind, count in kinds.items():
            yield (name, Figure.SYSTEM_CALLS, kind), count
        yield (name, Figure.SYSTEM_CALLS, ALL), sum(kinds.values())


def judged(by_kind: Mapping[str, float]) -> dict[str, float]:
    """System calls by kind without their errors, the most frequent first; without those that wait."""
    found: dict[str, float] = {}
    for kind, count in by_kind.items():
        words = [word for word in kind.split() if not (word.startswith("E") and word.isupper())]
        if words[0] not in WAITING:
            found[" ".join(words)] = found.get(" ".join(words), 0.0) + count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def instructions_of(server: Contender, at: Stage) -> Iterator[tuple[Key, float]]:
    """In all."""
    for name, count in count_instructions(server, at, [WORKLOADS[name] for name in GUARDED]).items():
        yield (name, Figure.INSTRUCTIONS, ALL), count / 1000


def carry_out(at: Stage, servers: Sequence[Contender], rounds: int, found: list[list[Compared]]) -> None:
    """The figures of both trees, one kind of figure after the other, into `found`. Raises: TrialError."""
    counters = [calls_of, system_calls_of]
    if is_installed():
        counters.append(instructions_of)
    else:
        say("no instructions: valgrind is not installed")
    began_s = time.monotonic()
    for counter in counters:
        if counter is instructions_of and time.monotonic() - began_s > INSTRUCTIONS_S:
            say("late: no instructions")
            break
        taken: dict[str, list[dict[Key, float]]] = {server.name: [] for server in servers}
        for turn in range(1 if counter is instructions_of else rounds):
            if turn and time.monotonic() - began_s > LATEST_S:
                say("late: no further round")
                break
            for server in servers:
                say(f"{counter.__name__.removesuffix('_of').replace('_', ' ')}, {server.name} {turn + 1}")
                taken[server.name].append(dict(counter(server, at)))
        after, before = (least(taken[server.name]) for server in servers)
        found.append(compare(before, after))


def markdown(found: Sequence[Sequence[Compared]]) -> str:
    """A table of the sums, and one of what grew."""
    header = ["workload", "a message", "part or kind", "before", "after", "ratio", ""]
    every = [one for figure in found for one in figure]
    sums = [one for one in every if one.key[2] == ALL or one.key[1] == Figure.CALLS]
    grown = [one for one in every if one.has_grown]
    text = table(header, [one.row() for one in sums])
    if grown:
        text += "\n\nGrown:\n\n" + table(header, [one.row() for one in grown])
    return text


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.guard", description="What a message costs more than in another revision."
    )
    parser.add_argument("revision", help="the revision that the working tree is compared with")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each tree; the least counts (default: 2)")
    add_directory(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when nothing grew, 1 when something did or was not counted (what was until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[list[Compared]] = []
    is_whole = False
    try:
        with stage(options.directory) as at:
            carry_out(at, contenders(at, options.revision, None), options.rounds, found)
        is_whole = True
    except (TrialError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as e:
        say(f"stopped: {str(e) or 'interrupted'}")
    if not found:
        return 1
    print(markdown(found))
    has_grown = any(one.has_grown for figure in found for one in figure)
    verdict = "**grew**" if has_grown else "good: nothing grew" if is_whole else "nothing of this grew"
    print(f"\n{verdict}", flush=True)
    return 0 if is_whole and not has_grown else 1


if __name__ == "__main__":
    sys.exit(main())
