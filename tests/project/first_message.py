"""Start an installed server, send one message to it, and see that it arrives whole in a maildir.

python -m tests.project.first_message BIN      `BIN`: the directory with `twistd`, for example `.venv/bin`

It needs the standard library alone, so any Python runs it.
"""

from __future__ import annotations

import re
import signal
import smtplib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.project.runners import PATIENCE_S, await_text, clean_environment

CONFIG = """\
<mailserver>
  <application><dirpaths><root>.</root></dirpaths></application>
  <directory><domains>example.net</domains><users>alice</users><postmaster>alice</postmaster></directory>
  <message_store/>
  <mta><queue><minfree>0</minfree></queue>
    <submit><listeners><listener interface="127.0.0.1" port="0"/></listeners></submit></mta>
</mailserver>
"""
MESSAGE = b"Subject: hello\r\n\r\nThe first message.\r\n.A line that begins with a dot.\r\n"


def deliver_one(binaries: Path, directory: Path) -> str:
    """Run `twistd -n mailismus` of `binaries` in `directory` until it has delivered one message; return its log.

    Raises `AssertionError` if the server does not get ready, deliver or stop.
    """
    (directory / "mailismus.xml").write_text(CONFIG)
    log = directory / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(binaries / "twistd"), "-n", "--pidfile=", "mailismus", "--config", "mailismus.xml"],
            cwd=directory,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        ready = re.search(r"ready: SMTP=127\.0\.0\.1:(\d+)", await_text(log, "ready: SMTP=127.0.0.1:"))
        assert ready is not None
        with smtplib.SMTP("127.0.0.1", int(ready[1]), timeout=PATIENCE_S) as client:
            client.sendmail("bob@example.org", ["alice@example.net"], MESSAGE)
        found = _await_file(directory, "**/Maildir/new/*")
        assert found.read_bytes().replace(b"\r\n", b"\n").endswith(MESSAGE.replace(b"\r\n", b"\n")), found.read_bytes()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return log.read_text()


def _await_file(directory: Path, pattern: str) -> Path:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for found in directory.glob(pattern):
            return found
        time.sleep(0.02)
    raise AssertionError(f"no file {pattern} came to {directory}: {(directory / 'log').read_text()}")


def main() -> None:
    """Run it in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        log = deliver_one(Path(sys.argv[1]).absolute(), Path(directory))
    assert "Traceback" not in log, log
    print("one message was accepted and delivered")


if __name__ == "__main__":
    main()
