"""An administrator's `queue count` and `queue list`, measured from outside."""

from __future__ import annotations

import json
import os
import subprocess
import time

import attrs

from benchmarks.stage.directories import say
from benchmarks.stage.servers import Ours
from tests.support.processes import TrialError

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


@attrs.define
class Lists:
    """Runs `queue list --json` and counts what it says. `limit`: entries that are asked for; 0: all."""

    server: Ours
    limit: int = 0
    found: int = 0
    peak_bytes: int = 0

    def run(self) -> float:
        """One list; gives its seconds."""
        began_s, self.found = time.monotonic(), 0
        limit = ("--limit", str(self.limit)) if self.limit else ()
        with _command(self.server, "queue", "list", "--json", *limit) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.found += sum(len(at["recipients"]) for at in [json.loads(line)] if at["queue_name"] == "deferred")
            self.peak_bytes = _end(process)
        return time.monotonic() - began_s


def _command(server: Ours, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(server.command(*words), env=server.environment(), stdout=subprocess.PIPE)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end, and return how many bytes it had in memory at most. Raises: TrialError."""
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise TrialError(f"a queue command: exit code {process.returncode}")
    return used.ru_maxrss << 10
