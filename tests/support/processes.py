"""Processes of a benchmark: started in a session of their own, waited for with a bound, ended by their id, whatever happens.

Rules: everything started here is ended by `ExitStack` or `with`; nothing is looked for by name. Not here: what the
processes cost (`measure`), and which they are (`servers`, `load`).
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import attrs


class TrialError(Exception):
    """A benchmark could not be carried out: what was waited for, and what the process concerned said last."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses and that no outgoing connection will get: below the ephemeral ones.

    (A client that keeps trying an ephemeral port where nobody listens at last connects to itself and holds the port.)
    """
    try:
        end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        end = 32768
    for _ in range(1000):
        port = random.randrange(10000, end) if end > 12000 else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise TrialError("no free port on 127.0.0.1")


def listeners(port: int) -> int:
    """How many sockets listen on the port: two would share its connections silently (SO_REUSEPORT)."""
    wanted, count = f"{port:04X}", 0
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for row in rows:
            _, local, _, state = row.split(maxsplit=4)[:4]
            count += state == "0A" and local.rsplit(":", 1)[1] == wanted
    return count


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, interval_s: float = 0.02) -> None:
    """Looks again and again until the condition holds. Raises: TrialError after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TrialError(f"waited {timeout_s:.0f} s in vain: {what}")
        time.sleep(interval_s)


def tail(path: Path, size_bytes: int = 2000) -> str:
    """The end of a text file, for error messages; empty where there is none."""
    try:
        with path.open("rb") as f:
            f.seek(max(0, path.stat().st_size - size_bytes))
            return f.read().decode("utf-8", "replace")
    except OSError:
        return ""


@attrs.define
class Process:
    """A running child with its output in files. `output` holds what it wrote to stdout and, if asked, stderr."""

    name: str
    popen: subprocess.Popen[bytes]
    output: Path
    errors: Path

    @property
    def pid(self) -> int:
        """Its process id, and that of its process group."""
        return self.popen.pid

    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def complaint(self) -> str:
        """What it said last, for error messages."""
        return f"{self.name} (exit code {self.popen.poll()}): {tail(self.errors)}{tail(self.output, 800)}".strip()

    def wait(self, timeout_s: float) -> int:
        """Its exit code. Raises: TrialError when it has not ended in time."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TrialError(f"{self.name} did not end within {timeout_s:.0f} s: {self.complaint()}") from None

    def stop(self, timeout_s: float = 20.0) -> int:
        """Asks it to end (SIGTERM), then makes it; gives the exit code, negative for a signal."""
        if self.running():
            self.popen.terminate()
            try:
                return self.popen.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.popen.wait()

    def kill(self) -> None:
        """Ends its whole process group at once and waits for it."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.stop()
        self.kill()


def start(
    name: str,
    command: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    cgroup: Path | None = None,
) -> Process:
    """Starts a command in a session of its own; its output goes to `directory/NAME.out` and `.err` (appended).

    With a `cgroup` the command is in that control group from its first instruction on, and so are all its children.
    """
    output, errors = directory / f"{name}.out", directory / f"{name}.err"
    argv = list(command)
    if cgroup is not None:
        argv = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(cgroup / "cgroup.procs"), *argv]
    with output.open("ab") as out, errors.open("ab") as err:
        popen = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    return Process(name, popen, output, errors)
