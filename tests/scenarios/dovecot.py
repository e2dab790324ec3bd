"""A Dovecot of a test's own: its process, its directories, its end.

Needs root, and the package dovecot-core.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
OWNER = 65534
"""The user whose files the mailboxes are."""
_CONFIG = """listen = 127.0.0.1
ssl = no
base_dir = {dir}/run
state_dir = {dir}/state
log_path = {dir}/dovecot.log
info_log_path = {dir}/dovecot.log
first_valid_uid = 1
first_valid_gid = 1
auth_username_format = %Ln
passdb {{
  driver = static
  args = nopassword=y
}}
service stats {{
  chroot =
}}
service anvil {{
  chroot =
}}
"""


def has_dovecot(*services: str) -> bool:
    """Whether it can be started here, with these of its services."""
    is_here = os.geteuid() == 0 and shutil.which("dovecot", path=PATH) is not None
    return is_here and all(Path("/usr/lib/dovecot", service).exists() for service in services)


class Dovecot:
    """One that can be started and stopped again and again. `port`: where it is reached; `greeting`: what it says there."""

    greeting = b""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        directory.chmod(0o755)
        for name in ("run", "state"):
            (directory / name).mkdir(mode=0o755)

    def configure(self, more: str) -> None:
        """Write the configuration: what all have, and this."""
        (self.directory / "dovecot.conf").write_text(_CONFIG.format(dir=self.directory) + more)

    def start(self) -> None:
        """Start it, and wait until it greets."""
        words = [shutil.which("dovecot", path=PATH) or "dovecot", "-F", "-c", f"{self.directory}/dovecot.conf"]
        with (self.directory / "dovecot.out").open("ab") as output:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as trial:
                    assert trial.recv(100).startswith(self.greeting)
                    return
            except (OSError, AssertionError):
                assert time.monotonic() < deadline, (self.directory / "dovecot.out").read_text()
                assert self._process.poll() is None, (self.directory / "dovecot.out").read_text()
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to all its processes: nothing is written or said any more."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
