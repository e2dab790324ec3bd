"""A file system that fills up under load, and empties again: `python -m tests.durability.harness.full_disk`.

By the mail itself: the next hop is down until the server answers 452, and for a while longer; then it comes up. Or by
others: a file takes all that is free while the next hop is up, or empty files take all inodes, and are removed in the end.
The load goes on all through.

Must hold: deliveries go on while it is full; all is refused by 452; mail is taken again by itself once there is room; in
the end all that was acknowledged has arrived, once. The server is never started again.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.results.report import table
from benchmarks.results.verdict import Verdict, judge
from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen, links
from benchmarks.stage.servers import Extras, Ours, Place
from benchmarks.stage.trial import VARIED, Follower, NextHop, Trial, administer, left_in_queue, trial
from tests.durability.harness.rounds import FLUSH_IDLE_S, MAX_FLUSHES, complaints
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import TrialError, wait_until

PIECE_BYTES = 1 << 20


class Filling(enum.Enum):
    """By whom it is filled."""

    MAIL = "by mail, next hop down"
    OTHERS = "by others, next hop up"
    INODES = "by empty files of others, next hop up"


@attrs.frozen
class Shown:
    """What a filling has shown; messages, but for the verdict."""

    verdict: Verdict
    before: int
    """Acknowledged until it was to be emptied."""
    undelivered_when_full: int
    """Entries acknowledged, but not delivered while it was full and the next hop up."""
    after: int
    """Acknowledged since."""
    left: dict[str, int]
    complaints: tuple[str, ...]

    @property
    def other_refusals(self) -> int:
        """Refusals by another reply than 452."""
        return sum(count for reply, count in self.verdict.refusals if not reply.startswith("452"))

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        is_clean = not (any(self.left.values()) or self.complaints or self.verdict.unanswered_messages)
        is_refused = self.verdict.refused_messages > 0 and not self.other_refusals
        return self.verdict.good and is_clean and is_refused and self.after > 0 and not self.undelivered_when_full


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.full_disk", description="Full and emptied again."
    )
    add_option(parser)
    parser.add_argument("--filling", action="append", choices=[way.name.lower() for way in Filling], help="(default: all)")
    parser.add_argument("--disk-mb", type=int, default=64)
    parser.add_argument("--rate", type=float, default=300.0, help="messages a second at most")
    parser.add_argument("--full", type=float, default=3.0, help="seconds that it stays full")
    parser.add_argument("--again", type=int, default=200, help="messages to be taken after it")
    parser.add_argument("--hardlinks", choices=["N", "Y"], default="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each wait")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the image lies")
    return parser


def fill(path: Path) -> None:
    """Writes a file until there is no room for a byte."""
    fd, size = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), PIECE_BYTES
    try:
        while size:
            try:
                os.write(fd, b"\1" * size)
                os.fsync(fd)
            except OSError:
                size //= 2
    finally:
        os.close(fd)


def fill_inodes(directory: Path) -> None:
    """Makes empty files until there is no inode left."""
    directory.mkdir()
    number = 0
    with contextlib.suppress(OSError):
        while True:
            os.close(os.open(directory / str(number), os.O_WRONLY | os.O_CREAT, 0o600))
            number += 1


def run(options: argparse.Namespace, filling: Filling) -> Shown:
    """One filling. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        disk = stack.enter_context(LoopDisk(at.root, options.disk_mb, FileSystem.EXT4))
        next_hop = NextHop.DOWN if filling is Filling.MAIL else NextHop.UP
        made = stack.enter_context(trial(at.root, VARIED, next_hop, options.seed))
        server = Ours(extras=Extras(spool=links(options)), provider=chosen(options))
        stack.callback(server.close)
        directory, ballast = at.root / "server", disk.mount_point / "ballast"
        directory.mkdir(mode=0o711)
        pid = server.start(Place(directory, disk.mount_point / "queue", at.logs, made.sink_port))
        generator = made.start_generator(server.port, 0, options.rate, options.seed)
        taken, refused = Follower(made.sent_path, b"A "), Follower(made.sent_path, b"U ")
        wait_until(lambda: taken.look() > 0, options.timeout, "the first message")
        if filling is Filling.OTHERS:
            fill(ballast)
        elif filling is Filling.INODES:
            fill_inodes(ballast)
        wait_until(lambda: refused.look() > 0, options.timeout, "the first refusal", 0.1)
        time.sleep(options.full)
        undelivered = made.drain(options.timeout, FLUSH_IDLE_S) if filling is not Filling.MAIL else 0
        before, refusals = taken.look(), refused.look()
        say(f"{filling.value}: {before} messages taken, {refusals} refused, {undelivered} entries undelivered; emptying")
        if filling is Filling.OTHERS:
            ballast.unlink()
        elif filling is Filling.INODES:
            shutil.rmtree(ballast)
        else:
            made.relieve()
            administer(server, "queue", "flush")
        wait_until(lambda: taken.look() >= before + options.again, options.timeout, "mail to be taken again", 0.1)
        made.end_load(generator, options.timeout)
        drain(server, made, options.timeout)
        left = left_in_queue(server)
        if not server.running() or server.process.pid != pid:
            raise TrialError(f"the server has ended: {server.process.complaint()}")
        server.stop()
        made.sink.stop()
        verdict = judge(*made.sent(), made.deliveries())
        return Shown(verdict, before, undelivered, taken.look() - before, left, complaints(at.logs))


def drain(server: Ours, made: Trial, timeout_s: float) -> None:
    """Waits until all has arrived; what was being tried when the next hop came up is flushed once more."""
    for _ in range(MAX_FLUSHES):
        if not made.drain(timeout_s, FLUSH_IDLE_S):
            return
        administer(server, "queue", "flush")


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when all held."""
    options = arguments().parse_args(argv)
    rows, good = [], True
    for name in options.filling or [way.name.lower() for way in Filling]:
        try:
            shown = run(options, Filling[name.upper()])
        except TrialError as e:
            say(f"stopped: {e}")
            return 1
        verdict = shown.verdict
        counts = [shown.before, shown.undelivered_when_full, verdict.refused_messages, shown.other_refusals, shown.after]
        counts += [verdict.acknowledged, len(verdict.lost), len(verdict.wrong), verdict.doubled, sum(shown.left.values())]
        rows.append([Filling[name.upper()].value, *map(str, counts), str(len(shown.complaints))])
        for reply, count in verdict.refusals[:5]:
            print(f"refused {count}: {reply}")
        for line in shown.complaints[:5]:
            print(line)
        good = good and shown.good
    header = [f"{options.disk_mb} MB, hardlinks {options.hardlinks}", "messages before", "entries undelivered when full"]
    header += ["refused", "by other than 452", "messages after", "entries", "lost", "wrong content", "doubled", "left"]
    print(table([*header, "own faults"], rows))
    print("good" if good else "**not good**", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
