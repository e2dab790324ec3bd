"""Another heavy writer: `python -m benchmarks.clients.heavy_writer FILE [--lazy] [--seconds S]`.

It writes large blocks into one file, round and round, and makes each durable, as a database would; or, lazy,
writes them at a bounded pace and leaves it to the system when they reach the disk, as a copy of files would. It ends by
SIGTERM or after `--seconds`, and removes the file.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stage.servers import TREE
from tests.support.processes import start, wait_until

BLOCK_BYTES, BLOCKS = 8 << 20, 16
LAZY_PAUSE_S = 0.1


class Writer(enum.Enum):
    """What else writes to the file system."""

    NONE = "alone"
    SYNCING = "beside a heavy writer"
    LAZY = "beside a writer that never syncs"


def write(path: Path, seconds: float, kind: Writer) -> None:
    """Until that many seconds have gone by."""
    block, deadline_s = os.urandom(BLOCK_BYTES), time.monotonic() + seconds
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        number = 0
        while time.monotonic() < deadline_s:
            os.pwrite(fd, block, number % BLOCKS * BLOCK_BYTES)
            if kind is Writer.LAZY:
                time.sleep(LAZY_PAUSE_S)
            else:
                os.fdatasync(fd)
            number += 1
    finally:
        os.close(fd)
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def heavy_writer(directory: Path, logs: Path, seconds: float, kind: Writer = Writer.SYNCING) -> Iterator[None]:
    """One that runs, on the file system of `directory`, if there is to be one. Raises: TrialError."""
    if kind is Writer.NONE:
        yield
        return
    path = directory / "written-by-another"
    argv = [sys.executable, "-m", "benchmarks.clients.heavy_writer", str(path), "--seconds", str(seconds)]
    argv += ["--lazy"] if kind is Writer.LAZY else []
    with start("heavy-writer", argv, logs, cwd=TREE) as process:
        try:
            wait_until(lambda: path.exists() or not process.running(), 20, "the heavy writer to begin")
            yield
        finally:
            process.stop()
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients.heavy_writer", description="Another heavy writer.")
    parser.add_argument("file", type=Path, help="a new file")
    parser.add_argument("--seconds", type=float, default=60.0, help="it ends then")
    parser.add_argument("--lazy", action="store_true", help="nothing is made durable")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        write(chosen.file, chosen.seconds, Writer.LAZY if chosen.lazy else Writer.SYNCING)
