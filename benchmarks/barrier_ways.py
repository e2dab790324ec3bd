"""Ways to make bytes durable, without the server: `python -m benchmarks.barrier_ways`. What is measured: docs/benchmarks.md.

The bare calls in turn (`sync_calls`) on ext4 and XFS, each in an image of its own, alone and beside writers; then the file
work handed to a thread or to a child process (`handover`). Needs root.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clients.append_loop import Appends, append_loop
from benchmarks.clients.heavy_writer import Writer, heavy_writer
from benchmarks.drain import percentile
from benchmarks.measure.handover import WAYS, measure, turns_alone
from benchmarks.measure.sync_calls import Timed, new_files, writes
from benchmarks.results.report import number, table
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.file_systems import ground
from benchmarks.stage.progress import say
from tests.support.power import FileSystem
from tests.support.processes import TrialError

BATCHES, FILES = (1, 10, 100), (1, 4, 10, 100, 1000)
PARTS = ("writes", "files", "handover")
LONGEST_S = 600.0
LAZY_S = 1.0
"""A writer that never syncs has written some 80 MB in that time."""
WRITES_HEADER = ["one batch", "messages", "pwritev + fdatasync ms", "p95", "pwritev RWF_DSYNC ms", "p95", "ratio"]
FILES_HEADER = ["new files", "files", "fsync of each ms", "p95", "syncfs ms", "p95", "ratio"]
FILES_HEADER += ["an append meanwhile: fsync of each, p95 ms", "longest", "syncfs, p95 ms", "longest"]
HANDED_HEADER = ["handed over", "messages", "to", "barrier ms", "hand-over ms", "p95", "batches/s", "main loop's turns left"]


def pair(name: str, count: int, both: Sequence[Timed]) -> list[str]:
    """A row: two ways, and the second's median by the first's."""
    one, other = both
    figures = [one.median_ms, one.p95_ms, other.median_ms, other.p95_ms, other.median_ms / one.median_ms]
    return [name, str(count), *(number(figure) for figure in figures)]


def meanwhile(both: Sequence[Timed], appends: Appends) -> list[str]:
    """p95 and longest (ms) of the appends that were under way while each way was."""
    cells = []
    for timed in both:
        spans = zip(timed.began_at_s, timed.took_s, strict=True)
        found = [took_s for began_s, span_s in spans for took_s in appends.between(began_s, began_s + span_s)]
        cells += [number(percentile(found, share) * 1e3) if found else "-" for share in (0.95, 1.0)]
    return cells


def calls(at: Stage, kind: FileSystem, options: argparse.Namespace, rows: dict[str, list[list[str]]]) -> None:
    """The bare calls on one file system."""
    for writer in Writer:
        name = f"{kind.value}, {writer.value}"
        say(name)
        with heavy_writer(at.root, at.logs, LONGEST_S, writer):
            if "writes" in options.part:
                for messages in BATCHES:
                    rows["writes"].append(pair(name, messages, writes(at.root, messages, options.seconds)))
            if "files" in options.part:
                for files in FILES:
                    with append_loop(at.root, at.logs, LONGEST_S) as beside:
                        pause_s = LAZY_S if writer is Writer.LAZY else 0.0
                        both = new_files(at.root, files, options.seconds, pause_s)
                        rows["files"].append([*pair(name, files, both), *meanwhile(both, beside.end())])


def handed(at: Stage, kind: FileSystem, seconds: float, rows: list[list[str]]) -> None:
    """A thread against a child process."""
    for messages in BATCHES:
        alone = turns_alone(seconds / 2)
        for name, make in WAYS:
            found = measure(make, at.root, messages, seconds)
            figures = [found.barrier.median_ms, found.over.median_ms, found.over.p95_ms, found.batches_per_s]
            cells = [number(figure) for figure in figures]
            rows.append([kind.value, str(messages), name, *cells, f"{found.turns_per_s / alone:.2f}"])


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.barrier_ways", description="Ways to make bytes durable.")
    parser.add_argument("--part", action="append", choices=PARTS, help="which (default: all)")
    kinds = [kind.value for kind in FileSystem]
    parser.add_argument("--file-system", action="append", choices=kinds, help="which (default: both)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row, about (default: 2)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the images lie (default: /var/tmp)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when it could not be measured (what was until then is shown)."""
    options = arguments().parse_args(argv)
    options.part = options.part or list(PARTS)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: dict[str, list[list[str]]] = {part: [] for part in PARTS}
    code = 0
    try:
        with stage(options.directory) as at:
            for kind in options.file_system or [kind.value for kind in FileSystem]:
                with ground(at, FileSystem(kind)) as own:
                    calls(own, FileSystem(kind), options, rows)
                    if "handover" in options.part:
                        say(f"{kind}, hand-over")
                        handed(own, FileSystem(kind), options.seconds, rows["handover"])
    except (TrialError, OSError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
        code = 1
    for part, header in zip(PARTS, (WRITES_HEADER, FILES_HEADER, HANDED_HEADER), strict=True):
        if rows[part]:
            print(table(header, rows[part]), end="\n\n", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
