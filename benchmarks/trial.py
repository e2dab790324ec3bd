"""A trial of a whole server with numbered messages: generator, server, recording sink, and what they wrote down.

Used by `fidelity` and `kill_loop`. Rules: every process is ended; every wait is bounded. Not here: judgement (`verdict`).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.processes import Process, TrialError, free_port, listeners, start, wait_until
from benchmarks.records import Acknowledged, Delivery, Unanswered, parse_deliveries, parse_sent
from benchmarks.servers import TREE, Ours, Server
from benchmarks.stage import Stage

EMPTY_TIMEOUT_S = 60.0


@attrs.frozen
class Mix:
    """What the numbered messages are like."""

    name: str
    size_bytes: int
    fixed: bool
    recipients: int

    def arguments(self) -> list[str]:
        """The generator's."""
        argv = ["--size", str(self.size_bytes), "--recipients", str(self.recipients)]
        return [*argv, "--fixed"] if self.fixed else argv


SMALL = Mix("4 KiB, 1 recipient", 4096, True, 1)
ANY = Mix("0 to 5 MB, 1 to 50 recipients", 5_000_000, False, 50)
MIXES = {"small": SMALL, "any": ANY}


class Follower:
    """Counts lines of a growing file without reading any twice."""

    def __init__(self, path: Path, start_with: bytes = b"") -> None:
        self._path, self._start = path, start_with
        self._offset, self.count = 0, 0

    def look(self) -> int:
        """The number of complete lines so far."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as f:
            f.seek(self._offset)
            data = f.read()
            data = data[: data.rfind(b"\n") + 1]
            self._offset += len(data)
            self.count += sum(line.startswith(self._start) for line in data.splitlines())
        return self.count


class Trial:
    """The instruments around one server. Made by `trial`."""

    def __init__(self, directory: Path, mix: Mix) -> None:
        self.directory, self.mix = directory, mix
        self.sent_path, self.sink_path = directory / "sent", directory / "arrived"
        self.sink_port = free_port()
        self._processes: list[Process] = []

    def start_sink(self) -> None:
        """Starts the recording sink. Raises: TrialError."""
        argv = [sys.executable, "-m", "benchmarks.recording_sink", str(self.sink_path), str(self.sink_port)]
        self.sink = start("recording-sink", argv, self.directory, cwd=TREE)
        self._processes.append(self.sink)
        wait_until(lambda: listeners(self.sink_port) > 0 or not self.sink.running(), 20, "the recording sink to listen")
        if not self.sink.running() or listeners(self.sink_port) != 1:
            raise TrialError(self.sink.complaint())

    def start_generator(self, port: int, messages: int, rate: float, seed: int) -> Process:
        """Starts the numbered generator."""
        argv = [sys.executable, "-m", "benchmarks.generator", str(self.sent_path), str(port), "--messages", str(messages)]
        argv += ["--rate", str(rate), "--seed", str(seed), *self.mix.arguments()]
        process = start("generator", argv, self.directory, cwd=TREE)
        self._processes.append(process)
        return process

    def sent(self) -> tuple[list[Acknowledged], list[Unanswered]]:
        """The generator's record."""
        return parse_sent(self.sent_path.read_bytes() if self.sent_path.exists() else b"")

    def deliveries(self) -> list[Delivery]:
        """The sink's record."""
        return parse_deliveries(self.sink_path.read_bytes() if self.sink_path.exists() else b"")

    def missing(self) -> int:
        """How many acknowledged entries have not arrived."""
        arrived = {entry for delivery in self.deliveries() for entry in delivery.entries()}
        return sum(
            (message.number, index) not in arrived for message in self.sent()[0] for index in range(message.recipients)
        )

    def drain(self, timeout_s: float, idle_s: float = 20.0) -> int:
        """Waits until every acknowledged entry has arrived, or nothing at all did for `idle_s`; gives what is missing."""
        arrived, began_s = Follower(self.sink_path), time.monotonic()
        count, last_s = arrived.look(), began_s
        while True:
            if arrived.look() != count:
                count, last_s = arrived.count, time.monotonic()
            now_s = time.monotonic()
            missing = self.missing()
            if not missing or now_s - last_s > idle_s or now_s - began_s > timeout_s:
                time.sleep(0.3)  # the sink writes its record out every 0.1 s
                return self.missing() if missing else 0
            time.sleep(min(5.0, 0.2 + missing / 5000))

    def close(self) -> None:
        """Ends the instruments; the sink by its clean end, so that its record is whole."""
        for process in self._processes:
            process.stop(10.0)
            process.kill()


@contextlib.contextmanager
def trial(directory: Path, mix: Mix) -> Iterator[Trial]:
    """Instruments with a running sink, ended afterwards."""
    made = Trial(directory, mix)
    try:
        made.start_sink()
        yield made
    finally:
        made.close()


def queue_counts(server: Ours) -> dict[str, int]:
    """Entries of each area, as `queue count --json` says. Raises: TrialError."""
    done = subprocess.run(
        server.command("queue", "count", "--json"), env=server.environment(), capture_output=True, timeout=60, check=False
    )
    if done.returncode:
        raise TrialError(f"queue count: exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()}")
    areas = json.loads(done.stdout)
    return {area: int(areas[area]["entries"]) for area in ("incoming", "deferred", "bounces")}


def left_in_queue(server: Server) -> dict[str, int]:
    """Entries of each area once they are 0, or after a minute; empty for a server that cannot tell."""
    if not isinstance(server, Ours):
        return {}
    deadline_s = time.monotonic() + EMPTY_TIMEOUT_S
    while True:
        counts = queue_counts(server)
        if not any(counts.values()) or time.monotonic() > deadline_s:
            return counts
        time.sleep(0.5)


def keep(at: Stage, made: Trial, directory: Path) -> None:
    """Copies the server's logs and both records to a new directory."""
    shutil.copytree(at.logs, directory)
    for path in (made.sent_path, made.sink_path):
        if path.exists():
            shutil.copy(path, directory)
