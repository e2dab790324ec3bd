"""A bare append loop: `python -m benchmarks.clients.append_loop FILE RECORD`. What a barrier costs, beside whatever runs.

It writes 4 KiB into blocks that exist and makes them durable, again and again with a short pause. The record gets two
doubles an append: when it began (monotonic clock) and how long it took, both in seconds. It ends by SIGTERM or after
`--seconds`, removes the file, and writes the record then.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from benchmarks.measure.sync_calls import MESSAGE, WrittenFile
from benchmarks.stage.servers import TREE
from tests.support.processes import Process, TrialError, start, wait_until

PAUSE_S = 0.005


@attrs.frozen
class Appends:
    """What a loop has recorded."""

    began_at_s: tuple[float, ...]
    took_s: tuple[float, ...]

    @classmethod
    def read(cls, path: Path) -> Appends:
        """As written by a loop that has ended."""
        numbers = array.array("d")
        numbers.frombytes(path.read_bytes())
        return cls(tuple(numbers[::2]), tuple(numbers[1::2]))

    def between(self, begin_s: float, end_s: float) -> list[float]:
        """How long each took that was under way in this window."""
        pairs = zip(self.began_at_s, self.took_s, strict=True)
        return [took_s for began_s, took_s in pairs if began_s < end_s and began_s + took_s > begin_s]


@attrs.define
class Running:
    """A loop that runs."""

    process: Process
    record: Path

    def end(self) -> Appends:
        """What it has recorded; it is ended. Raises: TrialError."""
        if self.process.stop():
            raise TrialError(self.process.complaint())
        return Appends.read(self.record)


@contextlib.contextmanager
def append_loop(directory: Path, logs: Path, seconds: float) -> Iterator[Running]:
    """One that runs, in `directory`. Raises: TrialError."""
    path, record = directory / "appended", logs / "appends"
    record.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "benchmarks.clients.append_loop", str(path), str(record), "--seconds", str(seconds)]
    with start("append-loop", argv, logs, cwd=TREE) as process:
        wait_until(lambda: record.exists() or not process.running(), 20, "the append loop to begin")
        try:
            yield Running(process, record)
        finally:
            process.stop()
            path.unlink(missing_ok=True)


def loop(path: Path, seconds: float, record: array.array[float], begins: Callable[[], None]) -> None:
    """Until that many seconds have gone by; `begins` is called when all is ready."""
    deadline_s = time.monotonic() + seconds
    with WrittenFile(path, 4 << 20) as file:
        begins()
        while (now_s := time.monotonic()) < deadline_s:
            record.append(now_s)
            record.append(file.append([MESSAGE]))
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients.append_loop", description="A bare append loop.")
    parser.add_argument("file", type=Path, help="a new file")
    parser.add_argument("record", type=Path, help="a new file for the record")
    parser.add_argument("--seconds", type=float, default=60.0, help="it ends then")
    chosen = parser.parse_args()
    taken = array.array("d")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        loop(chosen.file, chosen.seconds, taken, chosen.record.touch)
    chosen.record.write_bytes(taken[: len(taken) // 2 * 2].tobytes())
