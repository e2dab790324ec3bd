"""No outcome `sent` without its message: `python -m tests.durability.harness.mailboxes [--power-cut ext4|xfs]`.

The server delivers to maildirs and is killed again and again under load, with `--power-cut` by taking from its file system
what was not durable. After each kill every message that the log calls sent must lie in `new` or `cur`, whole; in the end
every message that got its 250 must be there. How many are there twice is told: a kill between the link and its outcome does
that. With `--no-barriers` the power cuts must show a loss.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import Place
from benchmarks.stage.trial import left_in_queue
from tests.durability.harness.mailbox_server import Load, Mailboxes, MailboxServer, conclude, told_sent
from tests.durability.harness.rounds import complaints, without_barriers
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import TrialError, free_port, wait_until

USERS = tuple(f"user{number}" for number in range(20))
NAMES = ("MPQ", "#X", "R", "MPQI")
"""The names of the files of each further life."""
DYING_S = 0.02


@attrs.define
class Figures:
    """What was found. `sent`: outcomes in the log; `missing`: those without their message; `lost`: accepted, not there."""

    kills: int = 0
    accepted: int = 0
    sent: int = 0
    missing: int = 0
    broken: int = 0
    lost: int = 0
    doubled: int = 0
    left: int = 0
    faults: int = 0

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.missing or self.broken or self.lost or self.left or self.faults)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.mailboxes", description="What the log calls sent lies in its maildir."
    )
    add_option(parser)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--power-cut", choices=[kind.value for kind in FileSystem], help="cut the power at each kill (root)")
    parser.add_argument("--no-barriers", action="store_true", help="make the server's barriers do nothing (strace)")
    parser.add_argument("--rate", type=float, default=200.0, help="messages a second at most (default: %(default)s)")
    parser.add_argument("--longest", type=float, default=2.0, help="seconds of load between two kills at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disk-mb", type=int, default=4000, help="size of the file system for --power-cut (a sparse file)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where queue and maildirs lie")
    return parser


class Trial:
    """One server and its mailboxes."""

    def __init__(self, options: argparse.Namespace, server: MailboxServer, place: Place, disk: LoopDisk | None) -> None:
        self._options, self._server, self._place, self._disk = options, server, place, disk
        self._chance = random.Random(options.seed)
        self._boxes = Mailboxes(server.mail, USERS)
        self.figures = Figures()

    def run(self) -> Figures:
        """Raises: TrialError."""
        load = Load(self._place.port, USERS, self._options.rate, self._options.seed)
        try:
            for number in range(self._options.kills):
                self._live(NAMES[number % len(NAMES)])
                time.sleep(self._chance.uniform(0.1, self._options.longest))
                self._die()
                self._judge()
            self._live(NAMES[0])
            time.sleep(0.5)
        finally:
            load.end()
        self._end(load)
        return self.figures

    def _live(self, names: str) -> None:
        self._server.names = names
        self._server.launch(self._place, without_barriers() if self._options.no_barriers else ())
        self._server.await_ready()

    def _die(self) -> None:
        if not self._server.running():
            raise TrialError(f"the server has ended by itself: {self._server.process.complaint()}")
        if self._disk is not None:
            self._disk.shut_down()
            time.sleep(self._chance.uniform(0.0, DYING_S))
        self._server.kill()
        if self._disk is not None:
            self._disk.recover()
        self.figures.kills += 1

    def _judge(self) -> None:
        """Compare the log with the maildirs."""
        log = b"".join(path.read_bytes() for path in self._place.logs.glob("*.out"))
        sent = told_sent(log)
        self._boxes.look()
        missing = sent - self._boxes.by_id()
        self.figures.sent, self.figures.missing = len(sent), len(missing)
        self.figures.broken = len(set(self._boxes.broken))
        for spool_id, user in sorted(missing)[:5]:
            say(f"called sent and not there: {spool_id.decode()} of {user}")

    def _end(self, load: Load) -> None:
        server = self._server
        with contextlib.suppress(TrialError):
            wait_until(lambda: not any(left_in_queue(server).values()), 120, "the queue to be empty", 0.5)
        self.figures.left = sum(left_in_queue(server).values())
        server.stop()
        self._judge()
        there = self._boxes.by_number()
        self.figures.accepted = len(load.accepted)
        self.figures.lost = sum(one not in there for one in load.accepted)
        self.figures.doubled = sum(count - 1 for count in there.values())
        self.figures.faults = len(complaints(self._place.logs))


def run(options: argparse.Namespace) -> Figures:
    """Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        disk = None
        if options.power_cut:
            disk = stack.enter_context(LoopDisk(at.root, options.disk_mb, FileSystem(options.power_cut)))
        home = (disk.mount_point if disk else at.root) / "home"
        home.mkdir(mode=0o700)
        place = Place(at.root / "server", home / "queue", at.logs, 0, free_port())
        place.directory.mkdir(mode=0o711)
        server = MailboxServer(USERS, home / "mail", NAMES[0])
        server.provider = chosen(options)
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        stack.callback(server.close)
        return Trial(options, server, place, disk).run()


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every promise was kept."""
    options = arguments().parse_args(argv)
    return conclude(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
