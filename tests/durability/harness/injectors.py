"""Ten programs at a time put messages into a queue beside its server, all of them killed at random: what is promised holds.

    python -m tests.durability.harness.injectors --seconds 60                     # an ext4 of 2,000 inodes, then XFS
    python -m tests.durability.harness.injectors --seconds 60 --power-cut         # the power is cut at each kill
    python -m tests.durability.harness.injectors --seconds 60 --no-server         # none runs until the end
    python -m tests.durability.harness.injectors --seconds 60 --sendmail          # the command `sendmail`, not `inject`

The queue is of provider chunk, with `conf_split` 3. Two fifths of the programs are killed within a moment of their start,
the server every few seconds. In the end a server delivers into maildirs on another disk until the queue is empty. Must be:
each message whose program ended with 0 has arrived, whole and at each of its recipients; each other one so, or nowhere; no
spool id belongs to two messages; no file of a message is left. How often mail was doubled is told: a kill may do that. With
`--sendmail` and a server that is not killed nothing may be doubled.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from tests.durability.harness.ability import SMALLEST_MB
from tests.durability.harness.injecting import (
    DOMAIN,
    USERS,
    Arrivals,
    Program,
    call_inject,
    call_sendmail,
    recipients_of,
    start_program,
)
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import Process, TrialError, start, tail, wait_until

INODES = 2000
MOST_BYTES = 300_000
"""Of a message; most are much smaller."""
AT_A_TIME = 10
KILLED = 0.4
LIFE_S = 0.12
"""A killed program lives so long at most: about as long as one that is left alone, on a machine with two processors."""
DRAIN_S = 180.0
FILES = ("pid", "intd", "todo", "bounce", "mess", "info", "local", "remote")
CONFIG = """<mailserver><application><announcehost>mx.example.net</announcehost>
<dirpaths><root>{place}</root><var>{place}/var</var><logs>{logs}</logs></dirpaths></application>
<directory><domains>{domain}</domains><users>{logs}/users</users><postmaster>joe</postmaster></directory>
<message_store><userpath>{logs}/ms</userpath></message_store>
<mta><queue provider="chunk"><conf_split>3</conf_split><retry_delays>1s</retry_delays></queue>
<submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0"/></listeners><sendmail/></submit></mta></mailserver>
"""


@attrs.define
class Shown:
    """What a trial has shown."""

    acknowledged: set[int] = attrs.Factory(set)
    begun: int = 0
    ends: Counter[int] = attrs.Factory(Counter)
    """Exit codes of programs; negative: signals."""
    printed: dict[str, list[int]] = attrs.Factory(dict)
    server_kills: int = 0
    lost: list[int] = attrs.Factory(list)
    torn: list[int] = attrs.Factory(list)
    doubled: int = 0
    same_ids: list[str] = attrs.Factory(list)
    wrong: list[str] = attrs.Factory(list)
    left: list[str] = attrs.Factory(list)
    must_be_single: bool = False
    """Nothing may be doubled."""
    bad_ends: list[int] = attrs.Factory(list)
    """Exit codes that say something else than "try again"."""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept, and something was shown."""
        broken = (self.lost, self.torn, self.same_ids, self.wrong, self.left, self.bad_ends)
        return bool(self.acknowledged) and not any(broken) and not (self.must_be_single and self.doubled)


class Trial:
    """One queue on one file system."""

    def __init__(self, logs: Path, disk: LoopDisk, options: argparse.Namespace) -> None:
        self._logs, self._disk, self._options = logs, disk, options
        self._chance = random.Random(options.seed)
        self._config = logs / "mailismus.xml"
        self._config.write_text(CONFIG.format(place=disk.mount_point, logs=logs, domain=DOMAIN))
        (logs / "users").write_text("".join(f"{user}\n" for user in USERS))
        (logs / "ms").mkdir()
        self._queue = disk.mount_point / "var" / "queue"
        self._programs: list[Program] = []
        self._server: Process | None = None
        self._is_cut = False
        self._call = call_sendmail if options.sendmail else call_inject
        self.shown = Shown(must_be_single=options.sendmail and (options.calm or options.no_server))

    def run(self) -> Shown:
        """All of it."""
        try:
            self._load()
            self._drain()
        finally:
            self._end_all()
        self._judge()
        return self.shown

    # the load

    def _load(self) -> None:
        if self._options.sendmail:
            self._make_drop_directory()
        deadline = time.monotonic() + self._options.seconds
        kill_at = self._begin_server() if not self._options.no_server else float("inf")
        if self._options.calm:
            kill_at = float("inf")
        while time.monotonic() < deadline:
            self._collect()
            while len(self._programs) < AT_A_TIME:
                self.shown.begun += 1
                dies_at = (
                    time.monotonic() + self._chance.uniform(0, LIFE_S) if self._chance.random() < KILLED else float("inf")
                )
                errors = self._logs / "inject.err"
                self._programs.append(start_program(self.shown.begun, self._config, errors, MOST_BYTES, dies_at, self._call))
            if time.monotonic() >= kill_at:
                kill_at = self._kill_server()
            time.sleep(0.002)
        for program in self._programs:
            program.dies_at = min(program.dies_at, time.monotonic() + 30)
        wait_until(lambda: not self._collect(), 60, "programs do not end")
        if self._server is not None and self._options.power_cut:
            self._kill_server()

    def _collect(self) -> int:
        """Note the programs that have ended; return how many run."""
        for program in list(self._programs):
            end = program.poll()
            if end is None:
                continue
            self._programs.remove(program)
            code, printed = end
            self.shown.ends[code] += 1
            if printed:
                # An id may be printed by a program that is killed behind its last act.
                self.shown.printed.setdefault(printed, []).append(program.number)
            if self._is_cut:
                continue
            if code == 0:
                self.shown.acknowledged.add(program.number)
            elif code not in (-9, os.EX_TEMPFAIL) and not (self._options.power_cut and code == os.EX_IOERR):
                self.shown.bad_ends.append(code)
        return len(self._programs)

    def _make_drop_directory(self) -> None:
        """The first start of a server makes it."""
        self._begin_server()
        assert self._server is not None
        server, self._server = self._server, None
        wait_until(lambda: not server.running() or "ready: " in server.output.read_text(), 60, "the server starts")
        server.stop()

    def _begin_server(self) -> float:
        """Begin it, and return when it is killed."""
        twistd = str(Path(sys.executable).parent / "twistd")
        command = [twistd, "-n", "--pidfile=", "mailismus", "--config", str(self._config)]
        self._server = start("server", command, self._logs, cwd=Path.cwd())
        return time.monotonic() + self._chance.uniform(1.5, 5)

    def _kill_server(self) -> float:
        assert self._server is not None
        if not self._server.running():
            raise TrialError(f"the server ended by itself: {self._server.complaint()}")
        if self._options.power_cut:
            self._cut()
        else:
            self._server.kill()
        self.shown.server_kills += 1
        return self._begin_server()

    def _cut(self) -> None:
        """The power fails: nobody writes any more, and all processes end. What a program says behind that moment nobody
        hears: a sync of a directory of XFS may return as if it were well once the file system is shut down."""
        assert self._server is not None
        self._collect()
        self._is_cut = True
        self._disk.shut_down()
        time.sleep(self._chance.uniform(0, 0.02))
        self._server.kill()
        for program in self._programs:
            program.kill()
        wait_until(lambda: not self._collect(), 20, "killed programs do not end")
        self._disk.recover()
        self._is_cut = False

    # the end

    def _drain(self) -> None:
        if self._server is None:
            self._begin_server()
        with suppress(TrialError):  # the judgement names what is left
            wait_until(lambda: not self._left(), DRAIN_S, "the queue is not empty", 0.2)
        assert self._server is not None
        if self._server.stop() not in (0, -15):
            raise TrialError(f"the server did not end cleanly: {self._server.complaint()}")
        self.shown.left = self._left()

    def _left(self) -> list[str]:
        files = [path for name in FILES for path in (self._queue / name).rglob("*")]
        # What a killed program left has a dot before its name: it lies there for a minute.
        files += (self._queue.parent / "sendmail" / "drop").glob("[!.]*")
        return [str(path.relative_to(self._queue.parent)) for path in files if path.is_file()]

    def _end_all(self) -> None:
        for program in self._programs:
            program.kill()
        with suppress(TrialError):
            wait_until(lambda: not self._collect(), 20, "killed programs do not end")
        if self._server is not None:
            self._server.kill()

    def _judge(self) -> None:
        shown, arrivals = self.shown, Arrivals()
        for user in USERS:
            arrivals.read(user, self._logs / "ms" / user / "Maildir" / "new", MOST_BYTES)
        for number in range(1, shown.begun + 1):
            users = arrivals.by_number.get(number, {})
            shown.doubled += sum(count - 1 for count in users.values())
            missing = set(recipients_of(number)) - set(users)
            if missing and number in shown.acknowledged:
                shown.lost.append(number)
            elif missing and users:
                shown.torn.append(number)
        for name, numbers in shown.printed.items():
            arrivals.ids.setdefault(name, set()).update(numbers)
        shown.same_ids = [name for name, found in arrivals.ids.items() if len(found) > 1]
        shown.wrong = arrivals.wrong


def run_on(kind: FileSystem, options: argparse.Namespace) -> Shown:
    """One trial on a file system of its own."""
    with TemporaryDirectory(dir=options.directory, prefix="injectors-") as made:
        logs = Path(made) / "logs"
        logs.mkdir()
        with LoopDisk(Path(made), max(SMALLEST_MB[kind], 64), kind, INODES) as disk:
            shown = Trial(logs, disk, options).run()
        if not shown.is_good:
            print(tail(logs / "inject.err"), tail(logs / "server.out"), sep="\n")
            _tell_lost(shown, (logs / "server.out").read_text(errors="replace"))
        return shown


def _tell_lost(shown: Shown, log: str) -> None:
    """Print what the server's log says of lost messages."""
    names = {number: name for name, numbers in shown.printed.items() for number in numbers}
    for number in shown.lost:
        lines = [line for line in log.splitlines() if names[number] in line]
        print(f"lost {number}, {names[number]}:", *lines, sep="\n  ")
    print(
        "what the server complained of:",
        *[line for line in log.splitlines() if "#error]" in line or "#warn]" in line],
        sep="\n  ",
    )


def describe(kind: FileSystem, shown: Shown) -> str:
    """The line of a trial."""
    ends = ", ".join(f"{code}: {count}" for code, count in sorted(shown.ends.items()))
    return (
        f"{kind.value}: {shown.begun} programs (ends {ends}), {shown.server_kills} kills of the server; "
        f"acknowledged {len(shown.acknowledged)}: lost {len(shown.lost)}, in part {len(shown.torn)}, "
        f"wrong {len(shown.wrong)}, ids twice {len(shown.same_ids)}, files left {len(shown.left)}, "
        f"other ends {len(shown.bad_ends)}; doubled {shown.doubled}: {'good' if shown.is_good else 'BAD'}"
    )


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.harness.injectors")
    parser.add_argument("--seconds", type=float, default=60.0, help="of load, on each file system")
    parser.add_argument("--file-system", choices=[kind.value for kind in FileSystem], help="this one alone")
    parser.add_argument("--power-cut", action="store_true", help="cut the power where else the server is killed")
    parser.add_argument("--no-server", action="store_true", help="no server runs until the end")
    parser.add_argument("--sendmail", action="store_true", help="the programs are sendmail, not mailismus inject")
    parser.add_argument("--calm", action="store_true", help="the server is not killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default="/var/tmp")
    return parser


def main(given: Sequence[str] | None = None) -> int:
    """Run it. Return the exit code: 0 if every promise was kept."""
    options = arguments().parse_args(given)
    kinds = [FileSystem(options.file_system)] if options.file_system else list(FileSystem)
    status = 0
    for kind in kinds:
        shown = run_on(kind, options)
        print(describe(kind, shown), flush=True)
        status = status if shown.is_good else 1
    return status


if __name__ == "__main__":
    raise SystemExit(main())
