"""The open questions of the log-structured queue, measured: `python -m benchmarks.log_choices --record FILE`.

What is asked and what the figures mean: docs/benchmarks.md. The choices of a question take turns on file systems of their
own, each point in a process of its own with an empty queue. `--record` goes on where it stopped. Needs root.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.log.plan import QUESTIONS, SESSIONS, Point, points
from benchmarks.measure.costs import Machine
from benchmarks.results.kept import Kept, cells
from benchmarks.results.report import table
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.file_systems import ground
from benchmarks.stage.progress import say
from benchmarks.stage.servers import TREE
from tests.support.power import FileSystem
from tests.support.processes import TrialError

TIMEOUT_S = 60.0
SIZE_MB = 1200


def run_point(directory: Path, point: Point) -> dict[str, float]:
    """One point. Raises: TrialError."""
    machine, before, own = Machine.now(), resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time()
    figures: dict[str, float] = {}
    try:
        for more in ([], ["start"]) if QUESTIONS[point.question].is_killed else ([],):
            argv = [sys.executable, "-m", "benchmarks.log.point", str(directory / "point"), point.question, point.choice]
            argv += [str(point.sessions), *more]
            try:
                done = subprocess.run(argv, cwd=TREE, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired as e:
                raise TrialError(f"{point}: {TIMEOUT_S:.0f} s were not enough") from e
            if done.returncode or not done.stdout:
                raise TrialError(f"{point}: {done.stderr.strip()[-2000:]}")
            figures |= json.loads(done.stdout.splitlines()[-1])
    finally:
        shutil.rmtree(directory / "point", ignore_errors=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + time.process_time() - own
    figures["others %"] = Machine.now().others_share(machine, cpu_s) * 100
    return figures


def key_of(kind: str, point: Point) -> tuple[str, ...]:
    """The key of a point's figures."""
    return (kind, point.question, str(point.sessions), point.choice)


def run(options: argparse.Namespace, at: Stage, kept: Kept) -> None:
    """All points that are not measured yet. Raises: TrialError."""
    wanted = points(options.question or list(QUESTIONS), options.sessions or SESSIONS)
    for kind in options.file_system or [kind.value for kind in FileSystem]:
        if all(len(kept.of(key_of(kind, point))) >= options.runs for point in wanted):
            continue
        with ground(at, FileSystem(kind), SIZE_MB) as own:
            for turn in range(options.runs):
                for point in wanted:
                    key = key_of(kind, point)
                    if len(kept.of(key)) > turn:
                        continue
                    began_s = time.monotonic()
                    kept.add(key, run_point(own.root, point))
                    say(f"{', '.join(key)}, {turn + 1}/{options.runs}: {time.monotonic() - began_s:.0f} s")


def markdown(kept: Kept) -> str:
    """A table for each question: a row for each choice, file system and number of sessions."""
    parts = []
    for question in QUESTIONS.values():
        rows = []
        for key in kept.measured:
            kind, name, sessions, choice = key
            if name == question.name:
                runs = kept.of(key)
                rows.append([kind, sessions, choice, str(len(runs)), *cells(runs, (*question.figures, "others %"))])
        if rows:
            header = ["file system", "sessions", "choice", "runs", *question.figures, "others %"]
            rows.sort(key=lambda row: (row[0], int(row[1])))
            parts.append(f"{question.text}\n\n{table(header, rows)}")
    return "\n\n".join(parts)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.log_choices", description="What the log does, by choice.")
    texts = "; ".join(f"{name}: {question.text}" for name, question in QUESTIONS.items())
    parser.add_argument("--question", action="append", choices=list(QUESTIONS), help=f"which (default: all). {texts}")
    kinds = [kind.value for kind in FileSystem]
    parser.add_argument("--file-system", action="append", choices=kinds, help="which (default: both)")
    parser.add_argument("--sessions", action="append", type=int, choices=SESSIONS, help="how many (default: 1 and 50)")
    parser.add_argument("--runs", type=int, default=1, help="of each point (default: 1)")
    parser.add_argument("--record", type=Path, help="figures are kept there; those that are there are not measured again")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the images lie (default: /var/tmp)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when a point failed (what was measured until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept, code = Kept(options.record), 0
    try:
        with stage(options.directory) as at:
            run(options, at, kept)
    except (TrialError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
        code = 1
    print(markdown(kept), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
