"""The load: Postfix's smtp-source as generator and smtp-sink, or one with TLS, as the relay that takes everything.

Rules: each sink has a port of its own, and it is checked that nobody else listens there before and after its start,
because smtp-sink shares ports silently. The sink's counter must equal the number sent. Not here: servers (`servers`).
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import time
from pathlib import Path

import attrs

from benchmarks.results.workloads import Workload
from tests.fakes.certificates import make_certificate
from tests.support.processes import TrialError, free_port, listeners, start, wait_until

TREE = Path(__file__).resolve().parent.parent.parent
_HANDSHAKES = re.compile(r"full=(\d+) resumed=(\d+) mesg=\d+\r")
SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def program(name: str) -> str:
    """The path of a program of Postfix or the system. Raises: TrialError with the package that holds it."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        package = "strace" if name == "strace" else "py-spy (pip)" if name == "py-spy" else "postfix"
        raise TrialError(f"{name} is not installed (package {package})")
    return found


def last_count(text: str) -> int:
    """The number of messages in the last complete counter line of smtp-sink (`sess=1 quit=2 mesg=3`, ended by CR)."""
    for line in reversed(text.split("\r")[:-1]):
        _, found, number = line.rpartition("mesg=")
        if found and number.strip().isdigit():
            return int(number)
    return 0


class Sink:
    """A running smtp-sink that counts. Ended by `close`."""

    def __init__(self, directory: Path, port: int = 0) -> None:
        """`port`: the port to listen on, 0 for any free one."""
        self.port = port or free_port()
        if listeners(self.port):
            raise TrialError(f"somebody listens on the sink's port {self.port}")
        self.process = start(f"sink-{self.port}", self._command(directory), directory, cwd=TREE)
        try:
            wait_until(lambda: listeners(self.port) > 0 or not self.process.running(), 10, "smtp-sink to listen")
            if not self.process.running() or listeners(self.port) != 1:
                raise TrialError(f"smtp-sink does not listen alone: {self.process.complaint()}")
        except BaseException:
            self.process.kill()
            raise

    def _command(self, directory: Path) -> list[str]:
        """The command line."""
        argv = [program("smtp-sink"), "-4", "-c", "-m", "1000"]
        if os.geteuid() == 0:
            argv += ["-u", "nobody"]
        return [*argv, f"127.0.0.1:{self.port}", "1000"]

    def count(self) -> int:
        """Messages taken so far."""
        return last_count(self._last())

    def _last(self) -> str:
        """The end of its output."""
        size = self.process.output.stat().st_size
        with self.process.output.open("rb") as f:
            f.seek(max(0, size - 400))
            return f.read().decode("ascii", "replace")

    def wait_for(self, count: int, timeout_s: float) -> float:
        """The moment (epoch seconds) of the sink's last message, once it has `count`. Raises: TrialError."""
        wait_until(lambda: self.count() >= count, timeout_s, f"{count} messages at the sink (it has {self.count()})")
        return self.process.output.stat().st_mtime

    def close(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.output.unlink(missing_ok=True)


class TlsSink(Sink):
    """A running sink that offers STARTTLS, with a certificate of its own."""

    def _command(self, directory: Path) -> list[str]:
        pem = directory / f"sink-{self.port}.pem"
        made = make_certificate("sink.bench.example")
        pem.write_bytes(made.key_pem + made.pem)
        return [sys.executable, "-m", "benchmarks.sinks.encrypting", str(pem), str(self.port)]

    def handshakes(self) -> tuple[int, int]:
        """Whole and resumed handshakes so far."""
        found = _HANDSHAKES.findall(self._last())
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)


@attrs.frozen
class Sent:
    """A generator's run: epoch seconds of its start and end, and its processor seconds."""

    began_at: float
    ended_at: float
    cpu_s: float


def send(workload: Workload, messages: int, port: int, directory: Path, timeout_s: float) -> Sent:
    """Runs the generator to its end. Raises: TrialError if any message was refused or time ran out."""
    argv = [program("smtp-source"), *workload.source_arguments(messages), f"127.0.0.1:{port}"]
    before, began_at = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    with start("source", argv, directory) as process:
        code = process.wait(timeout_s)
        ended_at, after = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        if code:
            raise TrialError(f"the generator failed: {process.complaint()}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Sent(began_at, ended_at, cpu_s)
