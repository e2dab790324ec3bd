"""A trial of a whole server with numbered messages: generator, server, recording sink, and what they wrote down.

Used by `fidelity` and by the harnesses of the tests.

Rules: every process is ended; every wait is bounded. Not here: judgement (`verdict`).
"""

from __future__ import annotations

import contextlib
import enum
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.results.records import Acknowledged, Broken, Delivery, Unanswered, parse_broken, parse_deliveries, parse_sent
from benchmarks.stage.servers import TREE, Ours, Server
from tests.support.processes import Process, TrialError, free_port, listeners, start, wait_until

EMPTY_TIMEOUT_S = 60.0
STEP_S = 1.0
"""Seconds of one wait for a command: a stop of this process counts as one of them."""


@attrs.frozen
class Mix:
    """What the numbered messages are like."""

    name: str
    size_bytes: int
    fixed: bool
    recipients: int
    is_exact: bool = False
    """Each has so many recipients, not 1 to so many."""

    def arguments(self) -> list[str]:
        """The generator's."""
        argv = ["--size", str(self.size_bytes), "--recipients", str(self.recipients)]
        argv += ["--exact"] if self.is_exact else []
        return [*argv, "--fixed"] if self.fixed else argv


SMALL = Mix("4 KiB, 1 recipient", 4096, True, 1)
ANY = Mix("0 to 5 MB, 1 to 50 recipients", 5_000_000, False, 50)
VARIED = Mix("0 to 400 KB, 1 to 3 recipients", 400_000, False, 3)
"""Some of them larger than `largemsgsize`, most of them small."""
MIXES = {"small": SMALL, "any": ANY, "varied": VARIED}


class NextHop(enum.Enum):
    """The sink during the trial."""

    UP = "up"
    DOWN = "down"
    """Nobody listens until `Trial.relieve`."""
    FLAKY = "flaky"
    """In trouble (`sinks.flaky`) until `Trial.relieve`."""


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

    def __init__(self, directory: Path, mix: Mix, next_hop: NextHop = NextHop.UP, seed: int = 1) -> None:
        self.directory, self.mix = directory, mix
        self.next_hop, self.seed = next_hop, seed
        self.sent_path, self.sink_path = directory / "sent", directory / "arrived"
        self.sink_port = free_port()
        self._processes: list[Process] = []

    def start_sink(self) -> None:
        """Starts the sink. Raises: TrialError."""
        kind = "sinks.flaky" if self.next_hop is NextHop.FLAKY else "sinks.recording"
        argv = [sys.executable, "-m", f"benchmarks.{kind}", str(self.sink_path), str(self.sink_port)]
        argv += [str(self.seed)] if self.next_hop is NextHop.FLAKY else []
        self.sink = self.started("recording-sink", argv)
        wait_until(lambda: listeners(self.sink_port) > 0 or not self.sink.running(), 20, "the recording sink to listen")
        if not self.sink.running() or listeners(self.sink_port) != 1:
            raise TrialError(self.sink.complaint())

    def started(self, name: str, argv: Sequence[str]) -> Process:
        """An instrument that runs until `close`."""
        process = start(name, argv, self.directory, cwd=TREE)
        self._processes.append(process)
        return process

    def relieve(self) -> None:
        """The sink is well from now on. Raises: TrialError."""
        if self.next_hop is NextHop.DOWN:
            self.start_sink()
        elif self.next_hop is NextHop.FLAKY:
            os.kill(self.sink.pid, signal.SIGUSR1)
            wait_until(lambda: listeners(self.sink_port) > 0, 10, "the flaky sink to listen")

    def start_generator(
        self,
        port: int,
        messages: int,
        rate: float,
        seed: int,
        first: int = 0,
        sessions: int = 50,
        wrapper: Sequence[str] = (),
    ) -> Process:
        """Starts the numbered generator; with 0 messages it ends by `end_load`. `wrapper`: a command line put in front."""
        argv = [
            *wrapper,
            sys.executable,
            "-m",
            "benchmarks.clients.generator",
            str(self.sent_path),
            str(port),
            "--messages",
            str(messages),
        ]
        argv += ["--rate", str(rate), "--seed", str(seed), "--first", str(first), "--sessions", str(sessions)]
        argv += self.mix.arguments()
        return self.started("generator", argv)

    def end_load(self, generator: Process, timeout_s: float) -> None:
        """No more messages begin; returns when all that have begun are done with. Raises: TrialError."""
        progress = Follower(self.sent_path)  # once it has sent something it also listens to signals
        wait_until(lambda: progress.look() > 0 or not generator.running(), timeout_s, "the generator to send")
        if generator.running():
            os.kill(generator.pid, signal.SIGUSR1)
        if generator.wait(timeout_s):
            raise TrialError(generator.complaint())

    def sent(self) -> tuple[list[Acknowledged], list[Unanswered]]:
        """The generator's record."""
        return parse_sent(self.sent_path.read_bytes() if self.sent_path.exists() else b"")

    def deliveries(self) -> list[Delivery]:
        """The sink's record."""
        return parse_deliveries(self.sink_path.read_bytes() if self.sink_path.exists() else b"")

    def broken(self) -> list[Broken]:
        """Transactions of the sink's that were broken off."""
        return parse_broken(self.sink_path.read_bytes() if self.sink_path.exists() else b"")

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
def trial(directory: Path, mix: Mix, next_hop: NextHop = NextHop.UP, seed: int = 1) -> Iterator[Trial]:
    """Instruments with a running sink (unless the next hop is down), ended afterwards."""
    made = Trial(directory, mix, next_hop, seed)
    try:
        if next_hop is not NextHop.DOWN:
            made.start_sink()
        yield made
    finally:
        made.close()


def administer(server: Ours, *arguments: str, timeout_s: float = 120.0) -> bytes:
    """What an administrator's command writes. Time in which this process was stopped does not count: then the command may
    have been, too. Raises: TrialError."""
    words, argv = " ".join(arguments), server.command(*arguments)
    with subprocess.Popen(argv, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        try:
            output, error = _answer_of(command, timeout_s)
        except BaseException:
            command.kill()
            raise
    if output is None:
        raise TrialError(f"{words}: no answer within {timeout_s:.0f} s")
    if command.returncode:
        raise TrialError(f"{words}: exit code {command.returncode}: {error.decode('utf-8', 'replace').strip()}")
    return output


def _answer_of(command: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes | None, bytes]:
    """What a command writes to both its outputs; None: it did not end in time, and is killed."""
    for _ in range(math.ceil(timeout_s / STEP_S)):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return command.communicate(timeout=STEP_S)
    command.kill()
    return None, b""


def queue_counts(server: Ours) -> dict[str, int]:
    """Entries of each area, as `queue count --json` says. Raises: TrialError."""
    areas = json.loads(administer(server, "queue", "count", "--json"))
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


def keep(logs: Path, made: Trial, directory: Path) -> None:
    """Copies the server's logs and both records to a new directory."""
    shutil.copytree(logs, directory)
    for path in (made.sent_path, made.sink_path):
        if path.exists():
            shutil.copy(path, directory)
