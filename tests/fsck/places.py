"""A stopped queue on files of the system, with a configuration and a command line."""

from __future__ import annotations

from pathlib import Path

from mailismus.__main__ import main
from tests.fsck.worlds import Stopped

CONFIG = """<mailserver><application><announcehost>mx.example.net</announcehost></application><mta><queue>
<rootpath>{0}/queue</rootpath><journal><segmentsize>1Mi</segmentsize><largemsgsize>3000</largemsgsize></journal>
<spool><rootpath>{0}/spool</rootpath></spool></queue></mta></mailserver>"""


class Place:
    """A queue on the disk, as a `Stopped` one in memory is."""

    def __init__(self, path: Path, stopped: Stopped) -> None:
        self.path = path
        self.stopped = stopped
        self.config = str(path / "mailismus.xml")
        (path / "mailismus.xml").write_text(CONFIG.format(path))
        for directory in sorted(stopped.disk.directories - {"/"}):
            (self.real(directory)).mkdir(0o700)
        for name, inode in stopped.disk.names.items():
            self.real(name).touch(0o600)
            self.real(name).write_bytes(inode.data)
        for root in ("queue", "spool"):
            (path / root / "lock").touch(0o600)

    def real(self, path: str) -> Path:
        _, root, *names = path.split("/")
        return self.path.joinpath({"q": "queue", "s": "spool"}[root], *names)

    def snapshot(self) -> dict[str, tuple[int, int, int, int]]:
        found = {}
        for path in (self.path / "queue", self.path / "spool", *self.path.rglob("*")):
            facts = path.lstat()
            found[str(path)] = (facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns)
        return found

    def run(self, *words: str) -> int:
        return main(["--config", self.config, "fsck", *words])

    def copy_words(self) -> tuple[str, ...]:
        return ("--queue", str(self.path / "queue"), "--spool", str(self.path / "spool"))
