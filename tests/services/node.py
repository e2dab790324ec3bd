"""One process of a service: started in a session of its own, signalled, and killed by the kernel when the keeper dies."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals

from tests.support.processes import tail

PR_SET_PDEATHSIG = 1
SHOWN_BYTES = 3000

_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, SIGKILL)


class Node:
    """A process that can be started again and again by the same command. Its output is appended to a file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self._command, self._log, self._environment, self._cwd = list(command), log, environment, cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._is_frozen = False

    def start(self) -> None:
        """Start it. To be called in the main thread: the kernel kills it when the thread that started it ends."""
        assert not self.is_running
        self._is_frozen = False
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if self._environment is None else dict(self._environment),
                cwd=self._cwd,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # the keeper has one thread
            )

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended. A frozen one runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_frozen(self) -> bool:
        """Whether it was stopped by `freeze`."""
        return self.is_running and self._is_frozen

    @property
    def pid(self) -> int:
        """Its process id; 0: it was never started."""
        return 0 if self._process is None else self._process.pid

    def send(self, number: Signals) -> None:
        """Send a signal to it alone, if it runs."""
        if self.is_running:
            os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop it where it is (SIGSTOP), with its children."""
        self._signal_group(SIGSTOP)
        self._is_frozen = self.is_running

    def thaw(self) -> None:
        """Let it go on."""
        self._signal_group(SIGCONT)
        self._is_frozen = False

    def kill(self) -> None:
        """Kill it with its children, and wait for its end."""
        self._signal_group(SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._is_frozen = False

    def _signal_group(self, number: Signals) -> None:
        if self.is_running:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass

    def complaint(self) -> str:
        """The end of its output, for an error message."""
        ended = "" if self.is_running or self._process is None else f" ended with {self._process.returncode}"
        return f"{self.name}{ended}: {tail(self._log, SHOWN_BYTES).strip()}"
