"""One load on one or two servers: a window without mail, a window with it, and what a message costs by both."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import attrs

from benchmarks.distributed.bed import Bed, bed, window
from benchmarks.distributed.figures import DEFAULT_SLICE_S, Run, Window, message_of
from benchmarks.distributed.parts import parts_table, shares
from benchmarks.measure.costs import Machine
from benchmarks.measure.profiling import record
from benchmarks.stage.directories import stage
from benchmarks.stage.trial import Mix
from tests.support.processes import TrialError

WARM_UP, SIZE_BYTES = 100, 4096
SETTLE_S = 7.0
"""Behind the last message: counts are written down each 5 s."""
IDLE_S = 21.0
"""A lease is renewed each 10 s."""
PROFILE_S = 8


@attrs.frozen
class Load:
    """What is sent to each server. `turns`: how often each recipient is deferred; `slice_s`: `slicewindow`."""

    servers: int
    recipients: int
    turns: int
    messages: int
    slice_s: int = DEFAULT_SLICE_S

    @property
    def mix(self) -> Mix:
        """For the generator."""
        return Mix(f"4 KiB, {self.recipients} recipients", SIZE_BYTES, True, self.recipients, is_exact=True)


@attrs.frozen
class Measured:
    """A run. `disk`: bytes on the disk of each table, once all was over. `profile`: a table; empty: none was taken."""

    run: Run
    disk: dict[str, float]
    profile: str


def measure(load: Load, directory: Path, *, wants_profile: bool, say: Callable[[str], None]) -> Measured:
    """Start servers, load them, and end them. Raises: TrialError."""
    with stage(directory) as at, bed(at.root, at.logs, load.servers, load.turns, load.slice_s) as made:
        swift_before, files_before = made.used.disk_bytes("swift"), made.used.files("swift")
        made.load(WARM_UP, load.mix)
        time.sleep(SETTLE_S)
        idle = _idle(made)
        before, machine = made.now(), Machine.now()
        seconds = made.load(load.messages, load.mix)
        time.sleep(SETTLE_S)
        after, messages = made.now(), load.messages * load.servers
        whole = window(before, after)
        others = Machine.now().others_share(machine, sum(whole.cpu_s) + sum(whole.service_cpu_s.values()))
        message = message_of(whole, idle, messages)
        figures = (messages, SIZE_BYTES, messages / seconds, others)
        run = Run(load.servers, load.recipients, load.turns, load.slice_s, *figures, message, idle)
        say(f"{load.servers} x {run.name}: {message.cpu_ms:.2f} ms, {run.delivered_per_s:.0f} a second")
        all_messages = (WARM_UP + load.messages) * load.servers
        disk = {name: size / all_messages for name, size in made.used.table_bytes(made.keyspace).items()}
        disk["swift bytes"] = (made.used.disk_bytes("swift") - swift_before) / all_messages
        disk["swift files"] = (made.used.files("swift") - files_before) / all_messages
        profile = _profile(made, load, at.logs, message.cpu_ms) if wants_profile else ""
        for server in made.servers:
            server.stop()
        return Measured(run, disk, profile)


def _idle(made: Bed) -> Window:
    before = made.now()
    time.sleep(IDLE_S)
    return window(before, made.now())


def _profile(made: Bed, load: Load, logs: Path, cpu_ms: float) -> str:
    """Of the first server, while messages come. Raises: TrialError."""
    generator = made.trial.start_generator(made.servers[0].port, 0, 0.0, 1, 7_000_000_000)
    time.sleep(2.0)
    taken = record(made.servers[0].pid, logs, PROFILE_S)
    made.trial.end_load(generator, 60.0)
    if made.trial.drain(120.0):
        raise TrialError("not all of the profiled messages arrived")
    return parts_table(shares(taken.profile, taken.thread_cpu_s), cpu_ms)
