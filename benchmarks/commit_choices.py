"""What a commit costs, by load and choice: `python -m benchmarks.commit_choices`. What is measured: docs/benchmarks.md.

The whole server runs on ext4 and on XFS, each in an image of its own, takes mail over SMTP from clients in a closed loop,
and relays it to a sink. One thing of its configuration is changed at a time; the yardstick is a file for each message.
Each cell has a server of its own, freshly started with an empty queue. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clients.closed_loop import Answers
from benchmarks.clients.heavy_writer import heavy_writer
from benchmarks.measure.disk_calls import Counted
from benchmarks.results.commit_cells import Cell, Measured, cells, markdown
from benchmarks.results.report import number
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.file_systems import ground
from benchmarks.stage.load import Sink
from benchmarks.stage.progress import say
from benchmarks.stage.servers import TREE, Extras
from tests.support.power import FileSystem
from tests.support.processes import TrialError, free_port, start

WARM_UP_S = 1.2
TIMEOUT_S = 60.0
LONGEST_CELL_S = 60.0
PARTS = {
    "base": "each load with the default",
    "choices": "each choice at 1 and 50 sessions",
    "down": "ages and the yardstick while the next hop is down",
    "writer": "beside a heavy writer",
}


def measure(at: Stage, cell: Cell, seconds: float) -> Measured:
    """One run. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        port = 0
        if cell.has_next_hop:
            sink = Sink(at.logs)
            stack.callback(sink.close)
            port = sink.port
        place = stack.enter_context(at.place(port or free_port()))
        server = Counted(extras=Extras(queue=cell.choice.queue))
        stack.callback(server.close)
        server.start(place)
        if cell.has_writer:
            stack.enter_context(heavy_writer(at.root, at.logs, LONGEST_CELL_S))
        record = place.logs / "answers"
        argv = [sys.executable, "-m", "benchmarks.clients.closed_loop", str(record), str(server.port)]
        argv += ["--sessions", str(cell.sessions), "--size", str(cell.size_bytes), "--seconds", str(WARM_UP_S + seconds)]
        with start("closed-loop", argv, place.logs, cwd=TREE) as clients:
            time.sleep(WARM_UP_S)
            begun_s, before = time.monotonic(), server.counts()
            time.sleep(seconds)
            ended_s, after = time.monotonic(), server.counts()
            if clients.wait(TIMEOUT_S):
                raise TrialError(f"{cell.name}, {cell.sessions} sessions, {cell.choice.name}: {clients.complaint()}")
        taken = Answers.read(record).between(begun_s, ended_s)
        server.kill()
        return Measured(cell, ended_s - begun_s, tuple(taken), after.minus(before))


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commit_choices", description="What a commit costs.")
    parts = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser.add_argument("--part", action="append", choices=list(PARTS), help=f"which (default: all). {parts}")
    kinds = [kind.value for kind in FileSystem]
    parser.add_argument("--file-system", action="append", choices=kinds, help="which (default: both)")
    parser.add_argument("--seconds", type=float, default=3.0, help="measured in each cell (default: 3)")
    parser.add_argument("--cells", type=int, default=0, help="no more than this many on each file system (0: all)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the images lie (default: /var/tmp)")
    return parser


def run(options: argparse.Namespace, at: Stage, found: list[Measured]) -> None:
    """All cells. Raises: TrialError."""
    for kind in options.file_system or [kind.value for kind in FileSystem]:
        wanted = cells(kind, options.part or list(PARTS))[: options.cells or None]
        with ground(at, FileSystem(kind)) as own:
            for index, cell in enumerate(wanted):
                one = measure(own, cell, options.seconds)
                if not one.answers_s:
                    say(f"{cell.name}, {cell.sessions} sessions, {cell.choice.name}: no answer within the window")
                    continue
                found.append(one)
                say(
                    f"{index + 1}/{len(wanted)} {cell.name}, {cell.sessions} sessions, {cell.choice.name}: "
                    f"{one.per_s:.0f}/s, median {number(one.median_ms)} ms, p95 {number(one.p95_ms)} ms"
                )


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when a cell failed (what was measured until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[Measured] = []
    code = 0
    try:
        with stage(options.directory) as at:
            run(options, at, found)
    except (TrialError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
        code = 1
    if found:
        print(markdown(found), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
