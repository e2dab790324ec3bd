"""A reader at work while mail comes: `python -m tests.durability.harness.mailbox_reader --seconds 60`.

The server delivers 20 messages a second into the maildirs of three users, and an IMAP client of each reads, flags, moves and
expunges them through Dovecot at the same time, with quotas. In the end every message that got its 250 must have been seen by
its reader once, neither lost nor twice, and `maildirsize` must hold what the mail in the maildir comes to, as Dovecot
counts it.

Needs root, setpriv, and Debian's dovecot-core and dovecot-imapd.
"""

from __future__ import annotations

import argparse
import contextlib
import imaplib
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.servers import Place
from benchmarks.stage.trial import left_in_queue
from tests.durability.harness.mailbox_server import Load, MailboxServer, conclude
from tests.durability.harness.rounds import complaints
from tests.scenarios.dovecot import OWNER
from tests.scenarios.dovecot_mailboxes import DovecotMailboxes, as_owner, miscounted
from tests.support.processes import free_port, wait_until

USERS = ("ann", "ben", "cid")
LIMIT_BYTES = 50_000_000_000
ARCHIVE = "Archive"
_NUMBER = re.compile(rb"Subject: (\d+)")


@attrs.define
class Figures:
    """What was found. `accepted`: messages and users; `moved`, `expunged`, `flagged`: by the readers; `miscounted`: users
    whose `maildirsize` tells something else than their mail."""

    accepted: int = 0
    seen: int = 0
    moved: int = 0
    expunged: int = 0
    flagged: int = 0
    lost: int = 0
    doubled: int = 0
    broken: int = 0
    miscounted: int = 0
    left: int = 0
    faults: int = 0

    @property
    def good(self) -> bool:
        """Whether every promise was kept, by readers that did their work."""
        wrong = self.lost or self.doubled or self.broken or self.miscounted or self.left or self.faults
        return not wrong and min(self.moved, self.expunged, self.flagged) > 0


class Reader:
    """An IMAP client of one user, in a thread. `seen`: how often each number came to it in INBOX, by UIDs of their own."""

    def __init__(self, dovecot: DovecotMailboxes, user: str, seed: int) -> None:
        self._dovecot, self._user, self._chance = dovecot, user, random.Random(seed)
        self.seen: Counter[int] = Counter()
        self.moved = self.expunged = self.flagged = 0
        self._known: set[int] = set()
        self._ends = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Read what is left and return. Raises what went wrong in the thread."""
        self._ends.set()
        self._thread.join(120)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with self._dovecot.session(self._user) as session:
                wait_until(lambda: session.select("INBOX")[0] == "OK", 30, "Dovecot to open the mailbox")
                session.create(ARCHIVE)
                while not self._ends.is_set():
                    self._read(session)
                    self._ends.wait(self._chance.uniform(0.0, 0.2))
                self._read(session)
        except BaseException as e:
            self._error = e

    def _read(self, session: imaplib.IMAP4) -> None:
        """Look at what has come; flag some, move some, remove some."""
        session.noop()
        _, [found] = session.uid("SEARCH", "ALL")
        uids = [int(uid) for uid in found.split()]
        for uid in uids:
            if uid not in self._known:
                self._known.add(uid)
                self._fetch(session, uid)
        for uid in self._chance.sample(uids, min(len(uids), 3)):
            self._act(session, str(uid))

    def _fetch(self, session: imaplib.IMAP4, uid: int) -> None:
        _, parts = session.uid("FETCH", str(uid), "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
        number = next((_NUMBER.search(part[1]) for part in parts if isinstance(part, tuple)), None)
        self.seen[int(number[1]) if number is not None else 0] += 1

    def _act(self, session: imaplib.IMAP4, uid: str) -> None:
        what = self._chance.choice(("flag", "flag", "move", "expunge"))
        if what == "flag":
            session.uid("STORE", uid, "+FLAGS", r"(\Seen \Flagged)")
            self.flagged += 1
        elif what == "move":
            status, _ = session.uid("MOVE", uid, ARCHIVE)
            self.moved += status == "OK"
        else:
            session.uid("STORE", uid, "+FLAGS", r"(\Deleted)")
            session.expunge()
            self.expunged += 1


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.mailbox_reader", description="Readers at work in maildirs while mail comes."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=20.0, help="messages a second (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where queue and maildirs lie")
    return parser


def run(options: argparse.Namespace) -> Figures:
    """Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        home, place = at.root / "home", Place(at.root / "server", at.root / "home" / "queue", at.logs, 0, free_port())
        mail = home / "mail"
        own = Path(tempfile.mkdtemp(prefix="dovecot-", dir="/tmp"))
        stack.callback(shutil.rmtree, own, ignore_errors=True)
        for path in (home, place.directory, mail, *(mail / user for user in USERS)):
            path.mkdir(mode=0o711, parents=True, exist_ok=True)
        for user in USERS:
            (mail / user / "Maildir").mkdir(mode=0o700)
            (mail / user / "Maildir" / "maildirsize").write_text(f"{LIMIT_BYTES}S\n")
        server = MailboxServer(USERS, mail, "MPQ")
        server.configure(place)
        for path in (at.logs, place.directory, *place.directory.rglob("*"), *home.rglob("*"), home):
            os.chown(path, OWNER, OWNER)
        dovecot = DovecotMailboxes(own, mail, LIMIT_BYTES)
        stack.callback(dovecot.stop)
        stack.callback(server.close)
        dovecot.start()
        server.launch(place, as_owner())
        server.await_ready()
        return play(options, server, place, dovecot)


def play(options: argparse.Namespace, server: MailboxServer, place: Place, dovecot: DovecotMailboxes) -> Figures:
    """Load and readers, then the judgement."""
    load = Load(place.port, USERS, options.rate, options.seed)
    readers = {user: Reader(dovecot, user, options.seed + index) for index, user in enumerate(USERS)}
    time.sleep(options.seconds)
    load.end()
    wait_until(lambda: not any(left_in_queue(server).values()), 120, "the queue to be empty", 0.2)
    figures = Figures(left=sum(left_in_queue(server).values()), accepted=len(load.accepted))
    for user, reader in readers.items():
        reader.end()
        accepted = {number for number, to in load.accepted if to == user}
        figures.seen += len(reader.seen)
        figures.lost += len(accepted - set(reader.seen))
        figures.doubled += sum(count - 1 for count in reader.seen.values())
        figures.broken += reader.seen[0]
        figures.moved, figures.expunged = figures.moved + reader.moved, figures.expunged + reader.expunged
        figures.flagged += reader.flagged
        wrong = miscounted(server.mail / user / "Maildir", dovecot.quota_kib(user))
        if wrong:
            say(wrong)
            figures.miscounted += 1
    server.stop()
    figures.faults = len(complaints(place.logs))
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every promise was kept."""
    options = arguments().parse_args(argv)
    return conclude(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
