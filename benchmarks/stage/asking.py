"""An administrator's `queue count` and `queue list`, measured from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import attrs

from benchmarks.stage.progress import say
from benchmarks.stage.servers import Ours
from tests.support.processes import TrialError

SETTLE_S = 0.5
"""Until what was under way has ended, when a command is held up or goes on."""

FEW = 100
"""Entries that a short listing asks for."""


@attrs.define
class Counts:
    """Runs `queue count` and judges what it says. `messages`: in `deferred`; None: any number."""

    server: Ours
    entries: int
    messages: int | None = None
    is_exact: bool = True
    peak_bytes: int = 0

    def run(self) -> float:
        """One count; gives its seconds."""
        began_s = time.monotonic()
        with _command(self.server, "queue", "count", "--json") as process:
            assert process.stdout is not None
            text = process.stdout.read()
            self.peak_bytes = _end(process)
        took_s, found = time.monotonic() - began_s, json.loads(text)
        wanted = {"entries": self.entries, **({} if self.messages is None else {"messages": self.messages})}
        told = {name: found["deferred"][name] for name in wanted}
        if told != wanted or found["exact"] is not True:
            self.is_exact = False
            say(f"queue count says {found}; in deferred it should be {wanted}")
        return took_s


class Windows(threading.Thread):
    """Deliveries in windows with and without a command that runs: it is held up (SIGSTOP) in every second one, so that what
    else the machine does meanwhile is in both. `delivered`: how many messages have been delivered so far."""

    def __init__(self, delivered: Callable[[], int], window_s: float) -> None:
        super().__init__(daemon=True)
        self._delivered, self._window_s = delivered, window_s
        self._pid = 0
        self._is_over = threading.Event()
        self._held_s = 0.0
        self._counts = {True: 0, False: 0}
        self._seconds = {True: 0.0, False: 0.0}

    def follow(self, pid: int) -> None:
        """Begin: this process runs."""
        self._pid = pid
        self.start()

    def run(self) -> None:
        """Hold it up and let it go on, until it has ended."""
        while not self._is_over.is_set():
            self._look(is_held=False)
            if self._is_over.is_set():
                break
            began_s = time.monotonic()
            os.kill(self._pid, signal.SIGSTOP)
            self._is_over.wait(SETTLE_S)
            self._look(is_held=True)
            os.kill(self._pid, signal.SIGCONT)
            self._held_s += time.monotonic() - began_s
            self._is_over.wait(SETTLE_S)

    def _look(self, *, is_held: bool) -> None:
        before, began_s = self._delivered(), time.monotonic()
        self._is_over.wait(self._window_s)
        self._counts[is_held] += self._delivered() - before
        self._seconds[is_held] += time.monotonic() - began_s

    def end(self) -> float:
        """The process is about to end. Return the seconds for which it was held up."""
        self._is_over.set()
        self.join()
        return self._held_s

    def share(self, without: float) -> float:
        """What is left of the rate beside the command. `without`: the rate without it, where that has no window here."""
        rates = {held: self._counts[held] / self._seconds[held] for held in (False, True) if self._seconds[held]}
        return rates.get(False, 0.0) / (rates.get(True) or without)


@attrs.define
class Lists:
    """Runs `queue list --json` and counts what it says. `limit`: entries that are asked for; 0: all."""

    server: Ours
    limit: int = 0
    found: int = 0
    peak_bytes: int = 0
    windows: Windows | None = None
    """Told of the command's process while it runs."""

    def run(self) -> float:
        """One list; gives its seconds, without those for which it was held up."""
        began_s, self.found = time.monotonic(), 0
        limit = ("--limit", str(self.limit)) if self.limit else ()
        with _command(self.server, "queue", "list", "--json", *limit) as process:
            assert process.stdout is not None
            if self.windows is not None:
                self.windows.follow(process.pid)
            for line in process.stdout:
                self.found += sum(len(at["recipients"]) for at in [json.loads(line)] if at["queue_name"] == "deferred")
            held_s = self.windows.end() if self.windows is not None else 0.0
            self.peak_bytes = _end(process)
        return time.monotonic() - began_s - held_s


def _command(server: Ours, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(server.command(*words), env=server.environment(), stdout=subprocess.PIPE)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end, and return how many bytes it had in memory at most. Raises: TrialError."""
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise TrialError(f"a queue command: exit code {process.returncode}")
    return used.ru_maxrss << 10
