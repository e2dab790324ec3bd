"""The server with local users, mail for them, and what their maildirs hold: for `mailboxes` and `mailbox_reader`.

Each message is told by the number in its Subject; its body ends with a digest of the rest, so that a half one is seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import re
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import attrs

from benchmarks.stage.progress import say
from benchmarks.stage.servers import Ours, Place
from tests.support.processes import TrialError

DOMAIN = "home.example"
CONFIG = """<mailserver>
  <application><announcehost>mx.home.example</announcehost>
    <dirpaths><root>{place.directory}</root><logs>{place.logs}</logs></dirpaths></application>
  <directory><domains>{domain}</domains><users>{users}</users><postmaster>{postmaster}</postmaster></directory>
  <message_store><userpath>{mail}</userpath><names>{names}</names></message_store>
  <mta>{queue}<submit><listeners><listener name="SMTP" interface="127.0.0.1" port="{place.port}"/></listeners></submit></mta>
  <admin><socket>{place.directory}/admin.sock</socket></admin>
</mailserver>
"""
SENT = re.compile(rb"\b([0-9A-F]{16}): to=<(\w+)@home\.example>,.* status=sent")
_ID = re.compile(rb"\bid ([0-9A-F]{16});")
_NUMBER = re.compile(rb"^Subject: (\d+)\r?$", re.MULTILINE)
PER_SESSION = 20


class MailboxServer(Ours):
    """Ours, with users whose mail lies below `mail`."""

    def __init__(self, users: Iterable[str], mail: Path, names: str) -> None:
        super().__init__()
        self.users, self.mail, self.names = tuple(users), mail, names

    def configure(self, place: Place) -> None:
        (place.directory / "etc").mkdir(parents=True, exist_ok=True)
        for path in (place.queue, self.mail):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.config = place.directory / "etc" / "mailismus.xml"
        queue = self.provider.element(str(place.queue), "", "<minfree>0</minfree><retry_delays>1s</retry_delays>")
        fields = {"domain": DOMAIN, "users": " | ".join(self.users), "postmaster": self.users[0], "mail": self.mail}
        self.config.write_text(CONFIG.format(place=place, queue=queue, names=self.names, **fields))


def content(number: int, size_bytes: int) -> bytes:
    """A message that can be told from its parts."""
    body = b"Subject: %d\r\n\r\n" % number + (b"%d " % number * (size_bytes // 2))[:size_bytes] + b"\r\n"
    return body + b"digest " + hashlib.sha256(body).hexdigest().encode() + b"\r\n"


class Mail:
    """What lies in a maildir: `spool_id`, by its trace field; `number`, 0 where it is not whole."""

    def __init__(self, data: bytes) -> None:
        found = _ID.search(data)
        self.spool_id = found[1] if found else b""
        at = data.find(b"Subject: ")
        body, word, digest = data[at:].replace(b"\r\n", b"\n").rpartition(b"digest ")
        number = _NUMBER.search(body)
        is_whole = word and hashlib.sha256(body.replace(b"\n", b"\r\n")).hexdigest().encode() == digest.rstrip()
        self.number = int(number[1]) if number is not None and is_whole else 0


class Load:
    """Sends numbered messages to users by turns until it is ended. `accepted`: number and user of what got its 250."""

    def __init__(self, port: int, users: Iterable[str], rate: float, seed: int, sessions: int = 4) -> None:
        self._port, self._users, self._pause_s = port, tuple(users), sessions / rate
        self.accepted: list[tuple[int, str]] = []
        self._number, self._lock, self._ends = 0, threading.Lock(), threading.Event()
        chances = [random.Random(seed * sessions + one) for one in range(sessions)]
        self._threads = [threading.Thread(target=self._send, args=(one,), daemon=True) for one in chances]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """No more messages; returns when those under way are over."""
        self._ends.set()
        for thread in self._threads:
            thread.join(120)

    def _send(self, chance: random.Random) -> None:
        while not self._ends.is_set():
            with contextlib.suppress(OSError, smtplib.SMTPException), smtplib.SMTP("127.0.0.1", self._port, timeout=60) as s:
                for _ in range(PER_SESSION):
                    self._one(s, chance)
                    if self._ends.wait(chance.uniform(0.0, 2 * self._pause_s)):
                        break
            time.sleep(0.02)

    def _one(self, session: smtplib.SMTP, chance: random.Random) -> None:
        with self._lock:
            self._number += 1
            number = self._number
        users = chance.sample(self._users, chance.choice((1, 1, 1, 2)))
        message = content(number, chance.choice((50, 2_000, 30_000, 300_000)))
        session.sendmail("s@far.example", [f"{user}@{DOMAIN}" for user in users], message)
        with self._lock:
            self.accepted += [(number, user) for user in users]


class Mailboxes:
    """Counts what the maildirs of users hold, in `new` and `cur`; each file is read once."""

    def __init__(self, mail: Path, users: Iterable[str]) -> None:
        self._mail, self._users = mail, tuple(users)
        self._known: dict[str, tuple[str, Mail]] = {}
        self.broken: list[str] = []

    def look(self) -> None:
        """Read what is there now; what a power cut took away is forgotten."""
        known, self._known = self._known, {}
        for user in self._users:
            for path in self._mail.glob(f"{user}/Maildir/[nc][eu][wr]/*"):
                name = str(path)
                mail = known[name][1] if name in known else Mail(path.read_bytes())
                self._known[name] = (user, mail)
                if not mail.number:
                    self.broken.append(name)

    def by_id(self) -> set[tuple[bytes, str]]:
        """Spool id and user of every message."""
        return {(mail.spool_id, user) for user, mail in self._known.values()}

    def by_number(self) -> Counter[tuple[int, str]]:
        """How often each number lies with each user."""
        return Counter((mail.number, user) for user, mail in self._known.values())


def told_sent(log: bytes) -> set[tuple[bytes, str]]:
    """Spool id and user of every `status=sent` in a log."""
    return {(spool_id, user.decode()) for spool_id, user in SENT.findall(log)}


class Judged(Protocol):
    """Figures, an attrs value, that tell whether every promise was kept."""

    __attrs_attrs__: ClassVar[Any]

    @property
    def good(self) -> bool: ...


def conclude(run: Callable[[], Judged]) -> int:
    """Run it, and print what was found. Gives the exit code: 0 when every promise was kept."""
    try:
        figures = run()
    except TrialError as e:
        say(f"stopped: {e}")
        return 1
    print(", ".join(f"{name} {value}" for name, value in attrs.asdict(figures).items()))
    print("good" if figures.good else "**not good**", flush=True)
    return 0 if figures.good else 1
