"""What this machine can do for a harness, found by trying; a reason in words where it can't."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.stage.load import program
from tests.scenarios.dovecot_mailboxes import IS_HERE
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import TrialError

SMALLEST_MB = {FileSystem.EXT4: 16, FileSystem.XFS: 320}


def lacks_power_cuts(kind: FileSystem) -> str | None:
    """Why no loop-mounted file system of this kind can be cut off here; None: it can."""
    with tempfile.TemporaryDirectory(prefix="mailismus-ability-") as directory:
        try:
            with LoopDisk(Path(directory), SMALLEST_MB[kind], kind) as disk:
                disk.shut_down()
                disk.recover()
        except (TrialError, OSError) as e:
            return f"no loop mounts of {kind.value} to cut: {e}"
    return None


def lacks_tracing() -> str | None:
    """Why no process can be traced here; None: it can."""
    try:
        command = [program("strace"), "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (TrialError, OSError) as e:
        return f"no tracing: {e}"
    return f"no tracing: {done.stderr.strip()}" if done.returncode else None


def lacks_readers() -> str | None:
    """Why no IMAP client can read maildirs here; None: it can."""
    if not IS_HERE:
        return "needs root, and the packages dovecot-core and dovecot-imapd"
    try:
        program("setpriv")
    except TrialError as e:
        return f"no other user: {e}"
    return None
