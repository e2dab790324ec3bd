"""Servers under test behind one small class: ours, Postfix, and any other by its command line.

Rules: each start makes its own directories; a server is ready when it accepts mail; it may be started again on the same
queue after `stop` or `kill`. Everything a server starts belongs to its account. Not here: load, measurement.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import attrs

from benchmarks.measure.costs import Account, account
from benchmarks.stage.load import program
from benchmarks.stage.providers import CLUSTERED, ServedProvider
from tests.support.processes import Process, TrialError, free_port, start, tail, wait_until

HERE = Path(__file__).resolve().parent.parent
TREE = HERE.parent
READY = re.compile(rb"ready: .*?\bSMTP=127\.0\.0\.1:(\d+)")


@attrs.frozen
class Place:
    """Where one server lives: its own files, its queue (a file system with real barriers), its logs (tmpfs), its relay.

    `port`: the port to listen on, 0 for any free one; a fixed one survives restarts.
    """

    directory: Path
    queue: Path
    logs: Path
    sink_port: int
    port: int = 0


class Server(Protocol):
    """One server under test. `wrapper` of `start` is a command line put in front, for strace."""

    name: str
    account: Account

    def start(self, place: Place, wrapper: Sequence[str] = ()) -> int:
        """Starts it; gives the process id of its first process when it accepts mail. Raises: TrialError."""

    def launch(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        """Starts it and returns at once, ready or not. Raises: TrialError."""

    def await_ready(self) -> int:
        """Returns when it accepts mail, with the process id of its first process. Raises: TrialError."""

    def running(self) -> bool:
        """Whether its first process lives."""

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""

    @property
    def pid(self) -> int:
        """The process that does the work, for a profile."""

    def stop(self) -> None:
        """A clean stop, with everything it started."""

    def kill(self) -> None:
        """SIGKILL to all of it, at once; returns when it is gone."""

    def close(self) -> None:
        """Ends whatever is left; may be called at any time."""


def fill(template: Path, target: Path, **names: object) -> None:
    """Writes a template with its @NAMES@ filled in."""
    text = template.read_text()
    for name, value in names.items():
        text = text.replace(f"@{name}@", str(value))
    left = re.search(r"@[A-Z]+@", text)
    if left:
        raise TrialError(f"{template}: {left[0]} is not filled in")
    target.write_text(text)


def ready_port(log: bytes) -> int:
    """The port of the last `ready:` line in the log; 0 while there is none."""
    found = READY.findall(log)
    return int(found[-1]) if found else 0


def accepts(port: int) -> bool:
    """Whether somebody greets there with 220."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
            return s.recv(512).startswith(b"220")
    except OSError:
        return False


class Single:
    """What servers of one process group have in common: the process, its account, its end."""

    name = "server"

    def __init__(self, label: str = "") -> None:
        self.name = label or self.name
        self.account: Account = account(self.name)
        self._process: Process | None = None
        self._port = 0
        self._wrapped = False

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self._port

    @property
    def process(self) -> Process:
        """The first process."""
        if self._process is None:
            raise TrialError(f"{self.name} was not started")
        return self._process

    @property
    def pid(self) -> int:
        """The process that does the work, for a profile."""
        return self.process.pid

    def running(self) -> bool:
        """Whether the first process lives."""
        return self._process is not None and self._process.running()

    def launch(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        """Starts it and returns at once."""
        raise NotImplementedError

    def await_ready(self) -> int:
        """Waits until it accepts mail; gives the process id of its first process. Raises: TrialError."""
        raise NotImplementedError

    def start(self, place: Place, wrapper: Sequence[str] = ()) -> int:
        """Both."""
        self.launch(place, wrapper)
        return self.await_ready()

    def _launch(
        self, place: Place, wrapper: Sequence[str], command: Sequence[str], environment: dict[str, str] | None = None
    ) -> Process:
        self._wrapped = bool(wrapper)
        argv = [*wrapper, *command]
        self._process = start(self.name, argv, place.logs, environment, place.directory, self.account.cgroup)
        self.account.begin(self._process.pid)
        return self._process

    def stop(self) -> None:
        """A clean stop. A wrapper is left to end by itself, when all that it wraps has gone."""
        if self._wrapped and (asked := self._to_be_asked()):  # none: the wrapper has become the server
            for pid in asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(TrialError):
                self.process.wait(45.0)
        self.process.stop(45.0)

    def _to_be_asked(self) -> list[int]:
        """The processes that a stop has to signal when the first one is only a wrapper."""
        return [pid for pid in self.account.pids() if pid != self.process.pid]

    def kill(self) -> None:
        """SIGKILL to the process group, and to what has left it."""
        pids = self.account.pids()
        self.process.kill()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends whatever is left."""
        if self._process is not None:
            self.kill()
        self.account.close()


@attrs.frozen
class Extras:
    """Elements put into our configuration, which is else all defaults: into `queue`, `deliver`, before the relay, into
    `spool`, `admin`, `report`."""

    queue: str = ""
    deliver: str = ""
    relays: str = ""
    spool: str = ""
    admin: str = ""
    report: str = ""


class Ours(Single):
    """Mailismus, from the tree given (default: the one this file is in), run by this interpreter."""

    name = "ours"

    def __init__(
        self,
        label: str = "",
        tree: Path = TREE,
        extras: Extras | None = None,
        provider: ServedProvider = CLUSTERED,
    ) -> None:
        super().__init__(label)
        self.tree, self.extras, self.provider = tree, extras or Extras(), provider
        self.config = Path()
        self._log, self._seen = Path(), 0

    def environment(self) -> dict[str, str]:
        """The environment in which this tree's package and plugin are the ones found."""
        return {**os.environ, "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "" if self.tree == TREE else "1"}

    def configure(self, place: Place) -> None:
        """Writes its configuration."""
        for name in ("etc", "var"):
            (place.directory / name).mkdir(parents=True, exist_ok=True)
        place.queue.mkdir(parents=True, exist_ok=True)
        self.config = place.directory / "etc" / "mailismus.xml"
        fill(
            HERE / "ours" / "mailismus.xml",
            self.config,
            DIR=place.directory,
            QUEUEELEMENT=self.provider.element(str(place.queue), self.extras.spool, self.extras.queue),
            LOG=place.logs,
            PORT=place.port,
            SINK=place.sink_port,
            DELIVER=self.extras.deliver,
            RELAYS=self.extras.relays,
            ADMINMORE=self.extras.admin,
            REPORT=f"<report>{self.extras.report}</report>" if self.extras.report else "",
        )

    def program(self, place: Place) -> list[str]:
        """What the interpreter is given to run: a program with the arguments of `twistd`."""
        return [*self.provider.twistd]

    def launch(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        """Starts it on the queue."""
        self.configure(place)
        twistd = [*self.program(place), "-n", "--pidfile=", "mailismus", "--config", str(self.config)]
        self._log = place.logs / f"{self.name}.out"
        self._seen = self._log.stat().st_size if self._log.exists() else 0
        self._launch(place, wrapper, [sys.executable, *twistd], self.environment())

    def await_ready(self) -> int:
        """Waits for its `ready:` line."""
        process = self.process

        def is_ready() -> bool:
            with self._log.open("rb") as f:
                f.seek(self._seen)
                self._port = ready_port(f.read())
            return self._port > 0 or not process.running()

        wait_until(is_ready, 120, f"{self.name} to be ready: {tail(self._log)}", 0.01)
        if not process.running():
            raise TrialError(f"{self.name} did not start: {process.complaint()}")
        return process.pid

    def command(self, *arguments: str) -> list[str]:
        """The command line of an administrator's command on this server."""
        return [sys.executable, *self.provider.command, "--config", str(self.config), *arguments]


class Other(Single):
    """Any server by its command line, where {port}, {relay}, {queue} and {directory} are filled in."""

    name = "other"

    def __init__(self, template: str, label: str = "") -> None:
        super().__init__(label)
        self._template = template

    def launch(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        """Starts it."""
        for path in (place.directory, place.queue):
            path.mkdir(parents=True, exist_ok=True)
        self._port = place.port or free_port()
        names = {"port": self._port, "relay": place.sink_port, "queue": place.queue, "directory": place.directory}
        argv = [part.format(**names) for part in shlex.split(self._template)]
        self._launch(place, wrapper, argv)

    def await_ready(self) -> int:
        """Waits until it greets."""
        process = self.process
        wait_until(lambda: not process.running() or accepts(self._port), 120, f"{self.name} to greet", 0.01)
        if not process.running():
            raise TrialError(f"{self.name} did not start: {process.complaint()}")
        return process.pid


class Postfix(Single):
    """A tuned Postfix with configuration, queue and data directories of its own. Needs root and the package's users."""

    name = "postfix"
    _pid_file = Path("/nonexistent")

    def __init__(self, label: str = "", extras: str = "") -> None:
        """`extras`: lines for the end of main.cf."""
        super().__init__(label)
        self._extras = extras
        self.etc = self._logs = Path()

    def launch(self, place: Place, wrapper: Sequence[str] = ()) -> None:
        """Starts its master in the foreground."""
        if os.geteuid():
            raise TrialError("Postfix can be started by root only (use --only ours)")
        if " " in str(place.directory):
            raise TrialError(f"{place.directory}: Postfix takes no blanks in a path")
        self.etc = etc = place.directory / "etc"
        queue, data = (place.directory / name for name in ("queue", "data"))
        for path in (etc, queue, data):
            path.mkdir(parents=True, exist_ok=True)
        for path in (place.directory, etc, queue):
            path.chmod(0o755)
        shutil.chown(data, "postfix")
        self._port, self._pid_file = place.port or free_port(), queue / "pid" / "master.pid"
        for name in ("main.cf", "master.cf"):
            fill(
                HERE / "postfix" / name,
                etc / name,
                DIR=place.directory,
                LOG=place.logs,
                PORT=self._port,
                SINK=place.sink_port,
                EXTRAS=self._extras,
            )
        self._logs = place.logs
        self._launch(place, wrapper, [program("postfix"), "-c", str(etc), "start-fg"])

    def await_ready(self) -> int:
        """Waits until it greets."""
        process = self.process
        wait_until(lambda: not process.running() or accepts(self._port), 60, "Postfix to greet", 0.05)
        if not process.running():
            raise TrialError(f"Postfix did not start: {process.complaint()} {tail(self._logs / 'mail.log')}")
        return process.pid

    def stop(self) -> None:
        """Through the master, which a shell waits for."""
        self._wrapped = True
        super().stop()

    def _to_be_asked(self) -> list[int]:
        return [self._master()] if self._master() else []

    def _master(self) -> int:
        """The master's process id; 0 when it does not run."""
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return 0
        return pid if pid in self.account.pids() else 0
