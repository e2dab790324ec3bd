"""A large shared queue: filled with deferred entries through the provider, then what count, list, start, flush and delete
take, and what they need of memory.

The server is stopped while the queue is filled. Its next hop does not listen, so nothing leaves the queue.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from benchmarks.distributed.bed import Bed, bed
from benchmarks.measure.costs import at_rest, pss_bytes
from benchmarks.results.report import number, table
from benchmarks.stage.asking import Lists
from benchmarks.stage.directories import stage
from benchmarks.stage.servers import TREE, Ours
from benchmarks.stage.trial import administer
from tests.support.processes import TrialError, start, wait_until

AT_ONCE = 32
"""Messages that are put in at a time: each must be durable within seconds."""
A_MESSAGE = 48
"""Recipients: 1,000,000 in 21,000 messages."""
DUE_IN_S = 14_400.0
FIRST = 220
FILL_S = 1500.0
COMMAND_S = 5400.0
REST_S = 60.0
EXACT_S = 60.0
DAYS = 3
"""Behind which all is cleaned up."""
LOOK_S = 0.5
GROWS = ("fill", "queue list", "queue flush", "all are deferred again", "queue delete")
"""Steps that take longer with more entries."""


@attrs.frozen
class Step:
    """What something took, and what it told. `most_bytes`: of the server's memory meanwhile; 0: it did not run."""

    what: str
    seconds: float
    told: str
    most_bytes: int
    rows_read: float
    """Calls of the database meanwhile, reads."""
    rows_written: float

    @property
    def grows(self) -> bool:
        """Whether it takes longer with more entries."""
        return self.what.partition(",")[0] in GROWS


@attrs.frozen
class Large:
    """A queue of so many entries."""

    entries: int
    messages: int
    steps: tuple[Step, ...]
    disk: dict[str, float]
    """Bytes, by table and service."""

    def took(self, what: str) -> float:
        """Seconds of a step; 0: it was not taken."""
        return next((step.seconds for step in self.steps if step.what.partition(",")[0] == what), 0.0)


@attrs.frozen
class Wanted:
    """Which steps are taken. `is_brief`: what a flush made due is not waited for. `clean`: what is deleted is gone at once,
    and in the end the queue is cleaned up, as it would be days later."""

    flush: bool = True
    delete: bool = True
    clean: bool = False
    is_brief: bool = False

    @property
    def admin(self) -> str:
        """Elements of the server's administration."""
        return "<undo>0</undo>" if self.clean else ""


class _Watch(threading.Thread):
    """The most memory that a server has had."""

    def __init__(self, server: Ours) -> None:
        super().__init__(daemon=True)
        self._server, self._is_over, self.most = server, threading.Event(), 0

    def run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.most = max(self.most, pss_bytes(self._server.account.pids()))

    def end(self) -> int:
        """Look no more."""
        self._is_over.set()
        self.join()
        return self.most


class _Steps:
    def __init__(self, made: Bed, say: Callable[[str], None]) -> None:
        self._made, self._say, self.found = made, say, list[Step]()

    def take(self, what: str, act: Callable[[], str], server: Ours | None = None) -> None:
        """Do something, and note what it took."""
        before = self._rows()
        with _watched(server) as most:
            began_s = time.monotonic()
            told = act()
            seconds = time.monotonic() - began_s
        read, written = (now - then for now, then in zip(self._rows(), before, strict=True))
        self.found.append(Step(what, seconds, told, most(), read, written))
        self._say(f"{what}: {seconds:.2f} s, {told}, {most() >> 20} MiB, {read:.0f} reads, {written:.0f} writes")

    def _rows(self) -> tuple[float, float]:
        calls = [wires["cassandra"]["calls"] for wires in self._made.counting.counts().values()]
        read = sum(count for one in calls for name, count in one.items() if name.startswith("read "))
        return read, sum(count for one in calls for name, count in one.items() if name.startswith(("write ", "compare ")))


@contextmanager
def _watched(server: Ours | None) -> Iterator[Callable[[], int]]:
    if server is None:
        yield lambda: 0
        return
    watch = _Watch(server)
    watch.start()
    try:
        yield lambda: watch.most
    finally:
        watch.end()


def measure_large(entries: int, directory: Path, wanted: Wanted, say: Callable[[str], None]) -> Large:
    """Fill a queue and ask for it. Raises: TrialError."""
    messages = -(-entries // A_MESSAGE)
    entries = messages * A_MESSAGE
    with stage(directory) as at, bed(at.root, at.logs, 1, 0, more="", admin=wanted.admin) as made:
        (server,), (place,) = made.servers, made.places
        _await_exact(server)
        server.stop()
        made.trial.sink.kill()
        steps, disk = _Steps(made, say), dict[str, float]()
        steps.take(f"fill, {messages} messages", lambda: _fill(server, entries, at.logs))
        disk |= _disk(made)
        say(f"on the disk: {disk}")

        def begin() -> str:
            server.launch(place)
            server.await_ready()
            return "-"

        steps.take("start until it takes mail", begin, server)
        steps.take("queue count", lambda: _count(server, entries), server)
        steps.take("queue count again", lambda: _count(server, entries), server)
        few, whole = Lists(server, FIRST), Lists(server)
        steps.take(f"queue list --limit {FIRST}", lambda: _list(few), server)
        steps.take("queue list", lambda: _list(whole), server)
        if whole.found != entries:
            raise TrialError(f"queue list told {whole.found} of {entries} entries")
        if wanted.flush:
            steps.take("queue flush", lambda: _run(server, "queue", "flush"), server)
        if wanted.flush and not wanted.is_brief:
            steps.take("all are deferred again, or at rest", lambda: _rest(server), server)
        if wanted.delete:
            words = ("queue", "delete", "--all", "--yes", "--reason", "measured")
            steps.take("queue delete", lambda: _run(server, *words), server)
            steps.take("queue count", lambda: _run(server, "queue", "count"), server)
        if wanted.clean:
            server.stop()
            steps.take("clean-up, days later", lambda: _clean(server, at.logs))
            cleaned = _disk(made)
            say(f"on the disk then: {cleaned}")
            disk |= {f"{name}, cleaned": size for name, size in cleaned.items()}
        server.kill()
        return Large(entries, messages, tuple(steps.found), disk)


def _disk(made: Bed) -> dict[str, float]:
    """Bytes, by table and service."""
    tables = {name: float(size) for name, size in made.used.table_bytes(made.keyspace).items()}
    return tables | {service: float(made.used.disk_bytes(service)) for service in made.used.pids}


def _await_exact(server: Ours) -> None:
    """Wait until the empty queue was counted: what comes after is counted as it comes."""
    wait_until(lambda: json.loads(administer(server, "queue", "count", "--json"))["exact"], EXACT_S, "an exact count")


def _clean(server: Ours, logs: Path) -> str:
    argv = [sys.executable, "-m", "benchmarks.distributed.cleaning", str(server.config), str(DAYS)]
    environment = {**os.environ, **server.environment()}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=COMMAND_S, env=environment, cwd=TREE)
    if done.returncode:
        raise TrialError(f"the clean-up: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    if any(found[what] for what in ("rows", "index", "objects")):
        raise TrialError(f"the clean-up left {found}")
    return "no row, none of the index, no object"


def _fill(server: Ours, entries: int, logs: Path) -> str:
    words = [str(server.config), str(entries), "--provider", "distributed", "--recipients", str(A_MESSAGE)]
    words += ["--due-in", str(DUE_IN_S), "--at-once", str(AT_ONCE)]
    argv = [sys.executable, "-m", "benchmarks.queue_builder", *words]
    with start("builder", argv, logs, {**os.environ, **server.environment()}, TREE) as process:
        if process.wait(FILL_S):
            raise TrialError(process.complaint())
    return f"{entries} entries"


def _rest(server: Ours) -> str:
    at_rest(server.account, REST_S)
    return "-"


def _count(server: Ours, entries: int) -> str:
    found = json.loads(administer(server, "queue", "count", "--json", timeout_s=COMMAND_S))
    told = found["deferred"]["entries"]
    if told != entries:
        return f"**{told} of {entries}**, exact: {found['exact']}"
    return f"{told} entries, exact: {found['exact']}"


def _list(lists: Lists) -> str:
    lists.run()
    return f"{lists.found} entries, the command had {lists.peak_bytes >> 20} MiB"


def _run(server: Ours, *words: str) -> str:
    return " ".join(administer(server, *words, timeout_s=COMMAND_S).decode().split())[-120:]


def steps_table(large: Large) -> str:
    """A row a step."""
    rows = [
        [step.what, number(step.seconds), step.told, str(step.most_bytes >> 20) if step.most_bytes else "-",
         number(round(step.rows_read)), number(round(step.rows_written))]
        for step in large.steps
    ]  # fmt: skip
    return table(["step", "s", "told", "server MiB", "reads", "writes"], rows)
