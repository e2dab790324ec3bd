"""Exceptions of our own, for unexpected failures.

Expected results are values, never exceptions: refusals, 4xx and 5xx replies of peers, expiry (`mail.reply`, `mail.outcome`).

*Rules*: catch narrowly. For each failure return, raise *or* log, one of the three.
"""

from __future__ import annotations

import attrs


class MailismusError(Exception):
    """Base of all errors of our own."""


@attrs.frozen
class ConfigError(MailismusError):
    """The configuration can't be used; the program does not start (exit 78).

    `text` names the error and its correction. `file` and `line` (from 1; 0: no line) are where the element begins.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@attrs.frozen
class StartError(MailismusError):
    """The program can't start here and now: `status` is the exit code (sysexits), `text` the one line on stderr.

    `setting`: path of the setting that caused it, such as `mta/queue/spool/hardlinks`; then the line says where that is set.
    """

    status: int
    text: str
    setting: str = ""

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class ProtocolError(MailismusError):
    """A violation of SMTP, by a peer or prevented on our side."""

    text: str

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class MailboxFull(MailismusError):
    """A mailbox has no room for a message. `is_too_large`: it never has."""

    is_too_large: bool

    def __str__(self) -> str:
        return "the mailbox is full"


@attrs.frozen
class SecretError(MailismusError):
    """The secret in a file can't be had. `why`: what is wrong with the file; `remedy`: what to do about it; `is_missing`:
    there is no file of that name."""

    why: str
    remedy: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


class StorageError(MailismusError):
    """Base of the errors about stored bytes."""


@attrs.frozen
class Unavailable(StorageError):
    """The queue can't take a message now: the client gets a 4xx and keeps its mail.

    `full`: there is no space (452 4.3.1); otherwise there is another local failure (451 4.3.0).
    """

    text: str
    full: bool = False

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class NewerFormat(Unavailable):
    """A file of the queue is of a format that this program does not read yet (exit 65). Nothing is changed: its bytes are
    not damaged, and a newer program needs them."""


def newer_format(path: str, found: int, newest: int) -> NewerFormat:
    """The error for a file of format `found`, where `newest` is the highest format that this program reads."""
    match newest:
        case 1:
            reads = "1"
        case 2:
            reads = "1 and 2"
        case _:
            reads = f"1 to {newest}"
    return NewerFormat(f"{path} is of format {found}, written by a newer Mailismus; this one reads {reads}: start that one")


@attrs.frozen
class Corrupt(StorageError):
    """Stored bytes are damaged. They are put into quarantine, never skipped in silence."""

    path: str
    offset: int
    text: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.text}"
