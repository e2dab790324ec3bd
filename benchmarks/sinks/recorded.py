"""A recording sink beside others, and waiting for what it writes down."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results.records import parse_deliveries
from benchmarks.stage.servers import TREE
from tests.support.processes import TrialError, listeners, start, wait_until


@contextlib.contextmanager
def recording(directory: Path, port: int) -> Iterator[Path]:
    """A recording sink on this port, with a fresh record; gives the record's path. Raises: TrialError."""
    path = directory / f"arrived-{port}"
    path.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "benchmarks.sinks.recording", str(path), str(port)]
    with start(f"recording-sink-{port}", argv, directory, cwd=TREE) as process:
        wait_until(lambda: listeners(port) > 0 or not process.running(), 20, "the recording sink to listen")
        if not process.running():
            raise TrialError(process.complaint())
        yield path


def first_arrival(path: Path, recipient: bytes, timeout_s: float) -> float:
    """When the first message for this recipient (empty: for anybody) was answered (monotonic). Raises: TrialError."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        data = path.read_bytes() if path.exists() else b""
        at = data.find(recipient)
        if data and at >= 0:
            begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
            if end and (taken := parse_deliveries(data[begin:end])):
                return taken[0].at_s
        time.sleep(0.02)
    raise TrialError(f"waited {timeout_s:.0f} s in vain for {recipient.decode() or 'any recipient'} at the sink")


def recipients_in(path: Path) -> int:
    """How many recipients the record has, doubles included."""
    return sum(len(delivery.recipients) for delivery in parse_deliveries(path.read_bytes()))
