"""A directory with a configuration, a server in it, and the commands `sendmail` and `mailq` there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import Process, start, wait_until

CONFIG = """<mailserver><application><announcehost>mx.example.net</announcehost></application>
<directory><domains>our.example</domains><users>{path}/users</users><postmaster>joe</postmaster></directory>
<mta><queue provider="{provider}"><minfree>0</minfree></queue>
<submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0"><server><maxmsgsize>100K</maxmsgsize>
<maxrecips>3</maxrecips></server></listener></listeners>
<sendmail><rootpath>{path}/sendmail</rootpath>{more}</sendmail></submit>
<deliver><relays><relay address="127.0.0.1:1"/></relays></deliver></mta></mailserver>
"""
ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; sys.argv[0] = '{name}'; from mailismus.programs import main; raise SystemExit(main())"


class Place:
    """A directory for one server."""

    def __init__(self, path: Path, provider: str = "clustered", more: str = "") -> None:
        self.path = path
        (path / "config").mkdir(parents=True, exist_ok=True)
        (path / "users").write_text("joe\nroot\n")
        self.config = path / "config" / "mailismus.xml"
        self.config.write_text(CONFIG.format(path=path, provider=provider, more=more))
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "MAILISMUS_CONFIG": str(self.config)}

    def words(self, name: str, *words: str) -> list[str]:
        """The command of that name, for a process."""
        return [sys.executable, "-c", PROGRAM.format(name=name), *words]

    def run(self, name: str, *words: str, message: bytes = b"Subject: x\n\nbody\n") -> subprocess.CompletedProcess[bytes]:
        """Run the command."""
        return subprocess.run(
            self.words(name, *words), input=message, capture_output=True, env=self.environment, timeout=60, cwd="/"
        )

    @contextmanager
    def server(self) -> Iterator[Process]:
        """A running server of this place."""
        twistd = "import sys; sys.argv[0] = 'twistd'; from twisted.scripts.twistd import run; run()"
        command = [sys.executable, "-c", twistd, "-n", "--pidfile=", "mailismus", "--config", str(self.config)]
        with start("server", command, self.path, self.environment, cwd=ROOT) as running:
            wait_until(lambda: not running.running() or "ready: " in running.output.read_text(), 60, "the server starts")
            assert running.running(), running.complaint()
            yield running

    def mail(self, user: str = "joe") -> list[bytes]:
        """What has arrived."""
        return [path.read_bytes() for path in (self.path / "var" / "ms" / user / "Maildir" / "new").glob("*")]

    def wait_for_mail(self, number: int, user: str = "joe") -> list[bytes]:
        """Wait until so many messages have arrived."""
        wait_until(lambda: len(self.mail(user)) >= number, 60, f"{number} messages arrive")
        return self.mail(user)

    def dropped(self) -> list[str]:
        """Files in the drop directory."""
        return os.listdir(self.path / "sendmail" / "drop")
