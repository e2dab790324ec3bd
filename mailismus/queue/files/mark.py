"""The mark of a queue's directory: the file `provider`, which durably names the provider whose queue lies there.

One line of text: the provider's name and the number of its format, `clustered 1`. A start writes it under the lock of the
queue, before anything else: temporary file, sync, rename, sync of the directory. Only the start of a program with a higher
format of the provider changes it later, in the same way.

Legal states: no mark (a new directory, or a queue that is older than the marks); a whole mark. A crash may leave the
temporary file beside either; the next start that writes removes it. Everything else is damage.

Source: `docs/formats/mark.md`.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TextIO

import attrs

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.small_file import read_small_file, replace_small_file

MARK = "provider"
NEW_MARK = "provider.new"
"""The temporary file."""

_LONGEST = 100
"""Bytes; a longer file is no mark."""
ADVICE = "write that, or another <rootpath>"
"""What can be done about the queue of another provider, whichever the two are."""
_LINE = re.compile(rb"([a-z]{1,32}) ([1-9][0-9]{0,8})\n").fullmatch


@attrs.frozen
class Mark:
    """A provider's name and the number of the format of a queue."""

    name: str
    format: int


def encode_mark(mark: Mark) -> bytes:
    """Return the bytes of the file."""
    return b"%b %d\n" % (mark.name.encode("ascii"), mark.format)


def decode_mark(data: bytes) -> Mark | None:
    """Return the mark in these bytes; None: they are none."""
    found = _LINE(data)
    return Mark(found[1].decode("ascii"), int(found[2])) if found is not None else None


def read_mark(disk: IDisk, queue_path: str) -> Mark | None:
    """Return the mark of this directory; None: it has none, or does not exist. Raises `Corrupt` for a damaged one,
    `OSError`."""
    path = os.path.join(queue_path, MARK)
    data = read_small_file(disk, path, _LONGEST, "the mark of a queue")
    if data is None:
        return None
    mark = decode_mark(data)
    if mark is None:
        raise Corrupt(path, 0, "the mark of the queue is damaged: it names no provider and format")
    return mark


def write_mark(disk: IDisk, queue_path: str, mark: Mark) -> None:
    """Write the mark, replacing any other. It is durable afterwards; after a crash the directory has the former state or
    this one. Raises `OSError`."""
    replace_small_file(disk, os.path.join(queue_path, MARK), os.path.join(queue_path, NEW_MARK), encode_mark(mark))


def ensure_mark(disk: IDisk, queue_path: str, mark: Mark) -> None:
    """Mark a directory whose lock is held as that of this provider, if it is not marked yet, or with a lower format. The
    mark is durable afterwards. Raises `StartError` where another process has marked it meanwhile, or the mark is damaged;
    `OSError`."""
    try:
        found = read_mark(disk, queue_path)
    except Corrupt as error:
        raise damaged(error) from error
    if found is None:
        write_mark(disk, queue_path, mark)
        return
    refuse_other(found, mark.name, (*range(1, mark.format + 1),), queue_path)
    if found.format < mark.format:
        write_mark(disk, queue_path, mark)
        return
    disk.sync_directory(queue_path)  # the start that wrote it may have been killed before its sync


def conversion_advice(name: str) -> str:
    """What can be done where the configuration is all that a conversion needs. `name`: of the provider that is wanted."""
    return f"{ADVICE}, or convert it: mailismus queue convert --to {name}"


def refuse_other(found: Mark, name: str, formats: tuple[int, ...], queue_path: str, advice: str = ADVICE) -> None:
    """Raise `StartError` unless the mark is of this provider (78) and of one of these formats (65). `advice`: what can be
    done about another provider's queue, where more is known of the two."""
    if found.name != name:
        what = f'<queue provider> is "{name}", but {queue_path} holds a queue of provider {found.name}'
        raise StartError(os.EX_CONFIG, f"{what}: {advice}", "mta/queue/@provider")
    refuse_format(found, formats, queue_path)


def refuse_format(found: Mark, formats: tuple[int, ...], queue_path: str) -> None:
    """Raise `StartError` (65) unless the mark is of one of these formats."""
    if found.format in formats:
        return
    reads = " and ".join(map(str, formats))
    who = "a newer" if found.format > max(formats) else "an older"
    text = (
        f"queue {queue_path} is of format {found.format}, written by {who} Mailismus; this one reads {reads}: start that one"
    )
    raise StartError(os.EX_DATAERR, text)


def damaged(error: Corrupt) -> StartError:
    """Return the refusal (65) of a queue whose mark is damaged."""
    text = f"{error.path}: {error.text}; mailismus fsck --repair writes it again"
    return StartError(os.EX_DATAERR, text)


def dump_mark(path: str, out: TextIO) -> None:
    """Print the mark in this file readably. Raises `Corrupt`, `OSError`."""
    mark = read_mark(PosixDisk(Access.READ_ONLY), os.path.dirname(path))
    if mark is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    out.write(f"mark of a queue of provider {mark.name}, format {mark.format}\n")
