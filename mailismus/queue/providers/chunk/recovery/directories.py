"""The directories of a queue: made or checked, and the number of parts that they have.

The file `conf-split` says it, as in qmail's source. It is written when all directories are durable, like the mark: temporary
file, sync, rename, sync of the directory.

*Rules*: another number on a queue that holds messages is refused: its files would not be found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.directories import check_safe, make_directories
from mailismus.queue.files.small_file import read_small_file, replace_small_file
from mailismus.queue.files.writers import lock_out_writers, make_writers_lock
from mailismus.queue.providers.chunk.format.version import (
    BOUNCE,
    INTD,
    PID,
    PLAIN_DIRECTORIES,
    SPLIT_DIRECTORIES,
    SPLIT_FILE,
    TODO,
)

_LONGEST = 20
MOST_PARTS = 1000
"""As of `<conf_split>`."""


def ensure_directories(disk: IDisk, root: str, split: int) -> None:
    """Make the directories of a queue where they are missing, durably. The lock of the queue is held. Raises `StartError`
    (78) for a queue with messages and another number of parts, `OSError`."""
    before = read_split(disk, root)
    if before is not None and before != split and not is_empty(disk, root, before):
        text = f"<conf_split> is {split}, but the queue in {root} has messages in {before} parts"
        ways = f"write {before}, or convert it: mailismus queue convert --to chunk"
        raise StartError(os.EX_CONFIG, f"{text}: {ways}", "mta/queue/conf_split")
    if before is not None:
        _refuse_missing(disk, root, before)
    if before in (None, split):
        _make_all(disk, root, split)
    else:
        with _without_writers(disk, root):
            if not is_empty(disk, root, before or split):
                raise StartError(os.EX_TEMPFAIL, f"a message came into {root} while <conf_split> was changed: start again")
            _make_all(disk, root, split)
            write_split(disk, root, split)
    if before is None:
        write_split(disk, root, split)
    make_writers_lock(disk, root)


@contextmanager
def _without_writers(disk: IDisk, root: str) -> Iterator[None]:
    """No program puts messages into the queue by itself meanwhile: it would do so by the old number of parts."""
    lock = lock_out_writers(disk, root, time.sleep)
    try:
        yield
    finally:
        lock.release()


def _make_all(disk: IDisk, root: str, split: int) -> None:
    make_directories(disk, root, PLAIN_DIRECTORIES)
    for name in SPLIT_DIRECTORIES:
        make_directories(disk, os.path.join(root, name), [str(part) for part in range(split)])


def directories_of(split: int) -> list[str]:
    """The names of all directories with files of messages, below the queue's."""
    parts = [os.path.join(name, str(part)) for name in SPLIT_DIRECTORIES for part in range(split)]
    return [PID, INTD, TODO, BOUNCE, *SPLIT_DIRECTORIES, *parts]


def _refuse_missing(disk: IDisk, root: str, split: int) -> None:
    """All were there when the number of parts was written: without one of them messages would look as if they were over."""
    for name in directories_of(split):
        path = os.path.join(root, name)
        if not disk.exists(path):
            raise StartError(
                os.EX_DATAERR, f"{path} is not there: put it back; mailismus fsck tells which others are missing"
            )


def read_split(disk: IDisk, root: str) -> int | None:
    """The number of parts; None: the queue is new. Raises `StartError` (65) for a damaged file, `OSError`."""
    path = os.path.join(root, SPLIT_FILE)
    try:
        data = read_small_file(disk, path, _LONGEST, "the number of directories")
    except Corrupt as error:
        raise StartError(os.EX_DATAERR, str(error)) from error
    if data is None:
        return None
    text = data.removesuffix(b"\n")
    if data == text or not text.isdigit() or not 0 < int(text) <= MOST_PARTS:
        raise StartError(
            os.EX_DATAERR, f"{path} is damaged: write the number of directories in mess into it, and a line end"
        )
    return int(text)


def write_split(disk: IDisk, root: str, split: int) -> None:
    """Say durably how many parts there are. Raises `OSError`."""
    path = os.path.join(root, SPLIT_FILE)
    replace_small_file(disk, path, f"{path}.new", b"%d\n" % split)


def is_empty(disk: IDisk, root: str, split: int) -> bool:
    """Whether no file of a message is in the directories with parts. Raises `OSError`."""
    return not any(
        disk.list_directory(path)
        for name in SPLIT_DIRECTORIES
        for part in range(split)
        if disk.exists(path := os.path.join(root, name, str(part)))
    )


def check_directories(disk: IDisk, root: str) -> None:
    """Refuse an unsafe root. Raises `StartError` (77), `OSError`."""
    if disk.exists(root):
        check_safe(disk, root)
