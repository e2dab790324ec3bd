"""Ways to make batches of the queue of chunks durable: `python -m benchmarks.chunk_ways`. What it does: docs/benchmarks.md.

The same batches (`benchmarks.measure.chunk_batches`) with each way in turn, and as the server chooses, on ext4 and XFS, each
in an image of its own, alone and beside writers. Needs root.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from benchmarks.clients.append_loop import Appends, append_loop
from benchmarks.clients.heavy_writer import Writer, heavy_writer
from benchmarks.drain import percentile
from benchmarks.measure.chunk_batches import AlwaysWay, BatchBench, CountedChoice, OneAtATime, TimedBatches
from benchmarks.results.report import number, table
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.file_systems import ground
from benchmarks.stage.progress import say
from mailismus.disk.posix import PosixDisk
from mailismus.errors import StartError
from mailismus.queue.providers.chunk.write.ways import SyncWay, WayChoice
from tests.support.power import FileSystem
from tests.support.processes import TrialError

LONGEST_S = 600.0
SIZE_MB = 1200


@attrs.frozen
class Load:
    """What the batches are. `pause_s`: before each."""

    name: str
    sessions: int
    pause_s: float = 0.0
    marks: bool = False


LOADS = {
    load.name: load
    for load in (
        Load("1 session", 1),
        Load("1 session, 5 a second", 1, 0.2),
        Load("50 sessions", 50),
        Load("marks of 1 message", 1, 0.0, True),
        Load("marks of 50 messages", 50, 0.0, True),
    )
}
WAYS: dict[str, tuple[Callable[[], WayChoice], Callable[[], PosixDisk]]] = {
    "each file, one at a time": (lambda: AlwaysWay(SyncWay.FILES), OneAtATime),
    "each file, several at a time": (lambda: AlwaysWay(SyncWay.FILES), PosixDisk),
    "the file system at once": (lambda: AlwaysWay(SyncWay.WHOLE), PosixDisk),
    "as the server chooses": (CountedChoice, PosixDisk),
}
HEADER = ["file system", "other programs", "batches", "way", "batch ms", "p95", "batches/s"]
HEADER += ["an append meanwhile, p95 ms", "file system at once %"]


def appends_ms(timed: TimedBatches, appends: Appends) -> str:
    """p95 of the appends that were under way while a batch was."""
    found: list[float] = []
    for began_s, took_s in zip(timed.began_at_s, timed.took_s, strict=True):
        found += appends.between(began_s, began_s + took_s)
    return number(percentile(found, 0.95) * 1e3) if found else "-"


def point(at: Stage, load: Load, way: str, seconds: float) -> list[str]:
    """The figures of one row. Raises: StartError, OSError, TrialError."""
    new_choice, new_disk = WAYS[way]
    choice = new_choice()
    with append_loop(at.root, at.logs, LONGEST_S) as beside:
        bench = BatchBench(at.root / "batches", choice, new_disk())
        try:
            run = bench.marks if load.marks else bench.mail
            timed = run(load.sessions, seconds, load.pause_s)
        finally:
            bench.close()
        appends = beside.end()
    cells = [number(figure) for figure in (timed.median_ms, timed.p95_ms, timed.a_second)]
    whole = "-"
    if isinstance(choice, CountedChoice):
        whole = number(choice.taken[SyncWay.WHOLE] / max(1, sum(choice.taken.values())) * 100)
    return [*cells, appends_ms(timed, appends), whole]


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunk_ways", description="Barriers of the queue of chunks.")
    kinds = [kind.value for kind in FileSystem]
    parser.add_argument("--file-system", action="append", choices=kinds, help="which (default: both)")
    parser.add_argument("--load", action="append", choices=list(LOADS), help="which batches (default: all)")
    parser.add_argument("--writer", action="append", choices=[one.name.lower() for one in Writer], help="(default: all)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row, about (default: 2)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the images lie (default: /var/tmp)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when it could not be measured (what was until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[list[str]] = []
    code = 0
    writers = [one for one in Writer if not options.writer or one.name.lower() in options.writer]
    try:
        with stage(options.directory) as at:
            for kind in options.file_system or [kind.value for kind in FileSystem]:
                with ground(at, FileSystem(kind), SIZE_MB) as own:
                    for writer in writers:
                        with heavy_writer(own.root, own.logs, LONGEST_S, writer):
                            for load in options.load or list(LOADS):
                                for name in WAYS:
                                    began_s = time.monotonic()
                                    found = point(own, LOADS[load], name, options.seconds)
                                    rows.append([kind, writer.value, load, name, *found])
                                    say(f"{', '.join(rows[-1])}: {time.monotonic() - began_s:.1f} s")
    except (StartError, TrialError, OSError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
        code = 1
    if rows:
        print(table(HEADER, rows), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
