"""Programs that inject numbered messages, and what of these has arrived: for the harness of injectors.

Each message says its number, and its body follows from the number: so whatever arrives is compared byte by byte. A program
is a process of its own, forked from this one, which has imported all it needs: so its life is that of the injection.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

import mailismus.inject.run
import mailismus.queue.providers.chunk.beside  # noqa: F401  # what a program needs is imported before it is forked
from mailismus.__main__ import main as run_command
from mailismus.config.read.load import load_for_program
from mailismus.providers import PROVIDERS
from mailismus.sendmail.command import run_sendmail

USERS = ("joe", "sue")
DOMAIN = "our.example"
SENDER = "prog@other.example"
_NUMBER = re.compile(rb"^X-Number: ([0-9]+)\r?$", re.MULTILINE).search
_ID = re.compile(rb"with LOCAL id ([0-9A-F]{16});").search


def body_of(number: int, most_bytes: int) -> bytes:
    """The body of a message, lines with LF; some begin with a dot."""
    chance = random.Random(number)
    size = int(most_bytes * chance.random() ** 8)
    lines = [
        b".%x" % chance.getrandbits(250) if at % 7 == 0 else b"%x" % chance.getrandbits(250) for at in range(size // 63)
    ]
    return b"".join(line + b"\n" for line in lines)


def recipients_of(number: int) -> tuple[str, ...]:
    """Every third message goes to both users."""
    return USERS if number % 3 == 0 else (USERS[number % 2],)


@attrs.define
class Program:
    """One process that injects one message."""

    number: int
    pid: int
    output: int
    dies_at: float
    """When it is killed, monotonic seconds; infinite: never."""

    def poll(self) -> tuple[int, str] | None:
        """Exit code (negative: a signal) and what it printed; None: it runs. It is killed when its time has come."""
        if time.monotonic() >= self.dies_at:
            self.kill()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        printed = os.read(self.output, 4096).decode("ascii", "replace").strip()
        os.close(self.output)
        return os.waitstatus_to_exitcode(status), printed

    def kill(self) -> None:
        """End it at once."""
        self.dies_at = float("inf")
        os.kill(self.pid, signal.SIGKILL)


def call_inject(config: Path, recipients: Sequence[str]) -> int:
    """The command `mailismus inject`."""
    return run_command(["--config", str(config), "inject", "-f", SENDER, *recipients], PROVIDERS)


def call_sendmail(config: Path, recipients: Sequence[str]) -> int:
    """The command `sendmail`, which finds the recipients in the message."""
    return run_sendmail("sendmail", ["-C", str(config), "-t", "-i", "-f", SENDER], load_for_program, run_command)


def start_program(
    number: int, config: Path, errors: Path, most_bytes: int, dies_at: float, call: Callable[[Path, Sequence[str]], int]
) -> Program:
    """Begin the injection of a message."""
    recipients = [f"{user}@{DOMAIN}" for user in recipients_of(number)]
    header = f"Subject: {number}\nX-Number: {number}\nTo: {', '.join(recipients)}\n\n"
    message = header.encode("ascii") + body_of(number, most_bytes)
    path = errors.parent / f"message-{number}"
    path.write_bytes(message)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return Program(number, pid, read_end, dies_at)
    status = 70
    try:
        os.dup2(os.open(path, os.O_RDONLY), 0)
        os.dup2(write_end, 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        path.unlink()
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")  # whatever they were here
        status = call(config, recipients)
    finally:
        os._exit(status)
    raise AssertionError("not reached")


@attrs.define
class Arrivals:
    """What lies in the maildirs."""

    by_number: dict[int, dict[str, int]] = attrs.Factory(dict)
    """How often each message arrived, by user."""
    ids: dict[str, set[int]] = attrs.Factory(dict)
    """The numbers of the messages that have an id."""
    wrong: list[str] = attrs.Factory(list)
    """Files that are no message as it was injected."""

    def read(self, user: str, new: Path, most_bytes: int) -> None:
        """Look at all files of a maildir's `new/`."""
        for path in sorted(new.iterdir()) if new.exists() else ():
            content = path.read_bytes()
            header, _, body = content.replace(b"\r\n", b"\n").partition(b"\n\n")
            number, spool_id = _NUMBER(header), _ID(header)
            if number is None or spool_id is None or body != body_of(int(number[1]), most_bytes):
                self.wrong.append(str(path))
                continue
            users = self.by_number.setdefault(int(number[1]), {})
            users[user] = users.get(user, 0) + 1
            self.ids.setdefault(spool_id[1].decode(), set()).add(int(number[1]))
