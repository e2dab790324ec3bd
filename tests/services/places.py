"""The directory of the services: where it is, who owns it, and what an earlier keeper has left.

*Rules*: the keeper holds a lock on a file beside the directory for as long as it lives, and removes it then. A directory
without that lock belongs to nobody: the keeper was killed, and so were its services.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs

from tests.support.processes import wait_until

TRIES, LOOK_S = 10, 0.05
END_S = 60.0
WHY_LENGTH = 300
OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def default_directory() -> Path:
    """The directory where nothing else is asked for: that of `MAILISMUS_SERVICES`, or else one a user."""
    chosen = os.environ.get("MAILISMUS_SERVICES")
    if chosen:
        return Path(chosen)
    return Path(tempfile.gettempdir()) / f"mailismus-services-{os.getuid()}"


@attrs.frozen
class ServicesDirectory:
    """The files of the services below one directory."""

    path: Path

    @property
    def socket(self) -> Path:
        """Where the keeper listens."""
        return self.path / "control.sock"

    @property
    def facts(self) -> Path:
        """What clients need to know: ports and credentials of each service, as JSON."""
        return self.path / "services.json"

    @property
    def left_out(self) -> Path:
        """Why a service is not up that was asked for, by its name, as JSON."""
        return self.path / "left-out.json"

    @property
    def lock(self) -> Path:
        """The file that the keeper locks."""
        return self.path.with_name(self.path.name + ".lock")

    def read_facts(self) -> dict[str, dict[str, Any]] | None:
        """Facts of each service that was started; None: no keeper is ready here."""
        return self._read(self.facts)

    def why_left_out(self, name: str) -> str:
        """Why a service is not up that was asked for, on a line. Empty: not known."""
        return " ".join(str((self._read(self.left_out) or {}).get(name, "")).split())[:WHY_LENGTH]

    def _read(self, path: Path) -> dict[str, Any] | None:
        if not is_locked(self.lock):
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        return found

    def remove_leftovers(self) -> bool:
        """Remove what a killed keeper has left; whether there was something."""
        if is_locked(self.lock) or not self.path.exists():
            return False
        remove_tree(self.path)
        self.lock.unlink(missing_ok=True)
        return True


def is_locked(lock: Path) -> bool:
    """Whether a keeper lives."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def take_lock(lock: Path) -> int | None:
    """Lock it for the life of this process: the descriptor. None: another keeper has it."""
    descriptor = os.open(lock, OPEN, 0o600)
    for _ in range(TRIES):  # `is_locked` may hold it for a moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass  # of a keeper that ends, the file goes with it
        time.sleep(LOOK_S)
        os.close(descriptor)
        descriptor = os.open(lock, OPEN, 0o600)
    os.close(descriptor)
    return None


def wait_for_end(lock: Path) -> None:
    """Wait until no keeper lives. Raises `TrialError`."""
    wait_until(lambda: not is_locked(lock), END_S, f"the end of the keeper of {lock}", LOOK_S)


def remove_tree(path: Path) -> None:
    """Remove a directory, and unmount what is mounted in it."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted(mounts, reverse=True):
        if mount.startswith(f"{path}/"):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    shutil.rmtree(path, ignore_errors=True)
