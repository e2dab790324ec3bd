"""One round of the kill loop: load, a row of kills, cuts and clean stops, then peace, drain and judgement.

    launch -- ready -- load for a moment -- kill, or power cut and kill, or SIGTERM -- launch -- ...
    ... -- ready -- load ends -- the next hop is well -- all arrive -- SIGTERM -- judged

Rules: a round begins and ends with no server running and an empty queue; queue, spool and their file system stay the same
from round to round, as do message numbers' order, so that mail of an earlier round is known when it comes back. A server
that ends by itself, or that a SIGTERM does not end, is a failure.
"""

from __future__ import annotations

import contextlib
import enum
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.results.verdict import Outage, Verdict, judge
from benchmarks.stage.directories import Stage
from benchmarks.stage.load import program
from benchmarks.stage.progress import say
from benchmarks.stage.servers import Extras, Ours, Place, Single
from benchmarks.stage.trial import Follower, Mix, NextHop, Trial, administer, left_in_queue, queue_counts
from tests.durability.harness.operator import Acted, Operator, settle_all
from tests.support.power import LoopDisk
from tests.support.processes import TrialError, free_port, wait_until

MESSAGES_A_ROUND = 1_000_000
"""Numbers set aside for each round."""
DYING_S = 0.02
"""At most this long lives a server whose power has been cut."""
AFTER_STOP_S = 0.7
"""So long at least runs a server that was stopped cleanly before, so that no kill excuses what a stop has doubled."""
MAX_FLUSHES, FLUSH_IDLE_S = 3, 20.0
SWEEP_S = 30.0
BRIEF_IDLE_S = 2.0
"""So long is waited for what will not come, where losses are expected."""
NO_BARRIERS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
FAREWELL = (0, -15)
"""Exit codes of a clean stop."""


def without_barriers() -> list[str]:
    """A command line in front of a server's, with which its barriers do nothing."""
    calls = ",".join(NO_BARRIERS)
    argv = [program("strace"), "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]
    return [*argv, "-e", f"trace={calls}", "-e", f"inject={calls}:retval=0", "-e", "signal=none"]


class Step(enum.Enum):
    """How one life of the server ends."""

    KILL = "kill"
    KILL_IN_START = "kill in the start"
    STOP = "stop"


@attrs.frozen
class Plan:
    """One round."""

    number: int
    mix: Mix
    next_hop: NextHop
    rate: float
    """Messages a second at most."""
    steps: tuple[Step, ...]
    longest_s: float
    """Load between two steps lasts up to this."""
    least: int
    """So many messages at least are acknowledged between two steps, however long it takes."""
    extras: Extras
    seed: int
    timeout_s: float
    """For the drain, and for the load's end."""
    has_acts: bool = False
    """An administrator acts on the queue meanwhile."""

    @property
    def kills(self) -> int:
        """How many of the steps are kills."""
        return sum(step is not Step.STOP for step in self.steps)


@attrs.frozen
class Ground:
    """What the rounds share: the stage, the server, and with power cuts the disk."""

    at: Stage
    server: Single
    disk: LoopDisk | None
    has_barriers: bool = True
    """False: the server's barriers do nothing, and power cuts must show it."""

    @property
    def home(self) -> Path:
        """Where queue and spool lie."""
        return (self.disk.mount_point if self.disk else self.at.root / "server") / "queue"

    def wrapper(self) -> list[str]:
        """The command line in front of the server's."""
        return [] if self.has_barriers else without_barriers()


@attrs.frozen
class Outcome:
    """What a round has shown."""

    verdict: Verdict
    left: dict[str, int]
    """Entries of each area in the end; empty: not asked."""
    flushes: int
    corrupt_files: int
    """Set aside as damaged: a crash must never look like damage."""
    stray_files: int
    """Files of messages and entries that one more start has not removed though the queue is empty."""
    complaints: tuple[str, ...]
    """What the server's log has of its own faults."""
    load_s: float
    """How long the server ran and was loaded."""
    arrived_in_load: int
    slowest_start_s: float
    acted: Acted | None = None
    """What an administrator did; None: there was none."""

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        if self.acted is not None and self.acted.faults:
            return False
        is_clean = not (any(self.left.values()) or self.corrupt_files or self.stray_files or self.complaints)
        return self.verdict.good and is_clean and self.flushes <= 1


class Round:
    """One round under way."""

    def __init__(self, ground: Ground, plan: Plan, made: Trial, logs: Path) -> None:
        """`made`: the instruments, with their sink as `plan` has it. `logs`: a directory for this round's logs."""
        self._ground, self._plan, self._made = ground, plan, made
        self._server, self._rng = ground.server, random.Random(plan.seed)
        directory = ground.at.root / "server"
        directory.mkdir(mode=0o711, exist_ok=True)
        self._place = Place(directory, ground.home, logs, made.sink_port, free_port())
        self._outages: list[Outage] = []
        self._down_at_s, self._cut_at_s = 0.0, None if ground.disk is None else 0.0
        self._slowest_start_s, self._start_s = 0.0, 0.5
        self._load_s = 0.0
        self._acknowledged = Follower(made.sent_path, b"A ")

    def run(self) -> Outcome:
        """Raises: TrialError."""
        plan, made = self._plan, self._made
        if isinstance(self._server, Ours):
            self._server.extras = plan.extras
        first = plan.number * MESSAGES_A_ROUND
        generator = made.start_generator(self._place.port, 0, plan.rate, plan.seed, first)
        socket_path = self._place.directory / "admin.sock"
        operator = Operator(socket_path, plan.seed, made.sink_port) if plan.has_acts else None
        if operator is not None:
            operator.start()
        previous = None
        for step in plan.steps:
            self._begin_life(step, is_after_kill=previous is not None and previous is not Step.STOP)
            if step is not Step.KILL_IN_START:
                self._wait_under_load(AFTER_STOP_S if previous is Step.STOP else 0.05)
            self._end_life(step)
            previous = step
        self._begin_life(None, is_after_kill=previous is not None and previous is not Step.STOP)
        self._wait_under_load(0.2)
        made.end_load(generator, plan.timeout_s)
        load_ends_s = time.monotonic()
        made.relieve()
        if operator is not None:
            operator.end()
            assert isinstance(self._server, Ours)
            settle_all(self._server, socket_path, operator.acted)
        flushes = self._drain()
        left = left_in_queue(self._server)
        self._stop()
        strays = self._sweep()
        made.sink.stop()
        deliveries = made.deliveries()
        return Outcome(
            judge(*made.sent(), deliveries, self._outages, made.broken()),
            left,
            flushes,
            _count(self._ground.home / "queue" / "corrupt", "*"),
            strays,
            complaints(self._place.logs),
            self._load_s,
            sum(len(delivery.recipients) for delivery in deliveries if delivery.at_s <= load_ends_s),
            self._slowest_start_s,
            operator.acted if operator is not None else None,
        )

    def _begin_life(self, step: Step | None, is_after_kill: bool) -> None:
        began_s = time.monotonic()
        self._server.launch(self._place, self._ground.wrapper())
        if step is Step.KILL_IN_START:
            time.sleep(self._rng.random() * 1.2 * self._start_s)
        else:
            self._await_ready()
            self._start_s = time.monotonic() - began_s
            self._slowest_start_s = max(self._slowest_start_s, self._start_s)
        if is_after_kill:
            self._outages.append(Outage(self._down_at_s, time.monotonic(), self._cut_at_s))

    def _await_ready(self) -> None:
        """Without barriers a power cut may leave what no server starts on: it is repaired first. Raises: TrialError."""
        server = self._server
        try:
            server.await_ready()
        except TrialError as refusal:
            if self._ground.has_barriers or not isinstance(server, Ours):
                raise
            say(f"{refusal}; repaired")
            server.kill()
            repair = server.command("fsck", "--repair")
            subprocess.run(repair, env=server.environment(), capture_output=True, timeout=self._plan.timeout_s, check=False)
            server.launch(self._place, self._ground.wrapper())
            server.await_ready()

    def _wait_under_load(self, shortest_s: float) -> None:
        seconds = max(shortest_s, self._rng.random() * self._plan.longest_s)
        began_s, before = time.monotonic(), self._acknowledged.look()
        time.sleep(seconds)
        least = before + self._plan.least
        wait_until(lambda: self._acknowledged.look() >= least, self._plan.timeout_s, "messages to be acknowledged")
        self._load_s += time.monotonic() - began_s

    def _end_life(self, step: Step) -> None:
        if not self._server.running() and (self._ground.has_barriers or step is not Step.KILL_IN_START):
            raise TrialError(f"the server has ended by itself: {self._server.process.complaint()}")
        if step is Step.STOP:
            self._stop()
            return
        disk = self._ground.disk
        if disk is not None:
            self._cut_at_s = time.monotonic()
            disk.shut_down()
            time.sleep(self._rng.random() * DYING_S)
            if step is Step.KILL and not self._server.running():
                raise TrialError(f"the server ended when its disk failed: {self._server.process.complaint()}")
        self._down_at_s = time.monotonic()
        self._server.kill()
        if disk is not None:
            disk.recover()

    def _stop(self) -> None:
        self._server.stop()
        code = self._server.process.popen.returncode
        if code not in FAREWELL:
            raise TrialError(f"a clean stop came to nothing: {self._server.process.complaint()}")

    def _sweep(self) -> int:
        """How many files of the empty queue are still there after one more start, if there are any now: a walk may have
        been due."""
        if not self._strays():
            return 0
        self._begin_life(None, is_after_kill=False)
        with contextlib.suppress(TrialError):
            wait_until(lambda: not self._strays(), SWEEP_S, "stray files to be removed", 0.1)
        self._stop()
        return self._strays()

    def _strays(self) -> int:
        if not isinstance(self._server, Ours):
            return 0
        return sum(_count(self._ground.home, f"*{ending}") for ending in self._server.provider.leftovers)

    def _drain(self) -> int:
        """Waits until all has arrived; gives how many flushes it took. One must be enough, and only with the hop down."""
        made, timeout_s, server = self._made, self._plan.timeout_s, self._server
        if self._plan.next_hop is not NextHop.DOWN or not isinstance(server, Ours):
            made.drain(timeout_s)
            return 0
        wait_until(lambda: not queue_counts(server)["incoming"], timeout_s, "every message to be tried once", 0.5)
        idle_s = FLUSH_IDLE_S if self._ground.has_barriers else BRIEF_IDLE_S
        for flushes in range(1, MAX_FLUSHES + 1):
            administer(server, "queue", "flush")
            if not made.drain(timeout_s, idle_s) or not self._ground.has_barriers:
                break
            say(f"flush {flushes} was not enough")
        return flushes


def _count(directory: Path, pattern: str) -> int:
    return sum(path.is_file() for path in directory.rglob(pattern)) if directory.exists() else 0


def complaints(logs: Path) -> tuple[str, ...]:
    """Lines of the server's logs that speak of a fault of its own, with where they stand."""
    found: list[str] = []
    for path in sorted(logs.glob("*")):
        lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
        found += [f"{path.name}:{number}: {line}" for number, line in enumerate(lines, 1) if "Traceback (most" in line]
    return tuple(found)


def in_turn(steps: Sequence[Step], rng: random.Random) -> tuple[Step, ...]:
    """The steps shuffled, but so that a start that is to be killed comes after something else."""
    mixed = list(steps)
    rng.shuffle(mixed)
    if mixed and mixed[0] is Step.KILL_IN_START:
        other = next((index for index, step in enumerate(mixed) if step is not Step.KILL_IN_START), 0)
        mixed[0], mixed[other] = mixed[other], mixed[0]
    return tuple(mixed)
