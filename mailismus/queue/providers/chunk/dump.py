"""Dump: prints a file of the queue readably.

A file of recipients or an envelope: each line, live or done, with its offset. An info file: what it says. A content: its
size and whether it checks. All else: `queue.files.dump`.
"""

from __future__ import annotations

import os
from typing import TextIO

from mailismus.disk.interface import IDisk, IFile, close_read
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.recipient_line import DONE
from mailismus.queue.providers.chunk.format.files import parse_info, read_lines
from mailismus.queue.providers.chunk.format.line import checked_body
from mailismus.queue.providers.chunk.format.version import (
    BOUNCE,
    IDS,
    INFO,
    INTD,
    LOCAL,
    MESS,
    REMOTE,
    SPLIT_FILE,
    TODO,
    parse_number,
)
from mailismus.queue.providers.chunk.write.epochs import parse_epoch, parse_single_id
from mailismus.spool.message_file import MessageFileReader

_LINES = {INTD: "envelope", TODO: "envelope", LOCAL: "recipients", REMOTE: "recipients", BOUNCE: "notes"}
_LONGEST_INFO = 1 << 16


def dump(path: str, out: TextIO, disk: IDisk | None = None) -> None:
    """Print the file. Raises `StartError` (65) where it is no file of a queue, `Corrupt` where it does not check,
    `OSError`."""
    disk = disk or PosixDisk(Access.READ_ONLY)
    parts = os.path.abspath(path).split(os.sep)
    if parts[-1] == SPLIT_FILE:
        out.write(f"parts of the directories: {_read(disk, path).decode('latin-1')}")
        return
    if parts[-2] == IDS and (epoch := parse_epoch(parts[-1])) is not None:
        out.write(f"epoch of spool ids {epoch:08X}: the first eight digits of ids that were given out since it was taken\n")
        return
    if parts[-2] == IDS and (spool_id := parse_single_id(parts[-1])) is not None:
        out.write(f"spool id {spool_id:016X}, taken by a program for one message\n")
        return
    number = parse_number(parts[-1])
    home = next((name for name in parts[-2:-4:-1] if name in (*_LINES, INFO, MESS)), None) if number is not None else None
    if home is None:
        names = ", ".join((*_LINES, INFO, MESS, IDS, SPLIT_FILE))
        raise StartError(os.EX_DATAERR, f"{path} is no file of a queue of this provider: those lie in {names}")
    if home == MESS:
        _dump_content(path, number, out, disk)
    elif home == INFO:
        _dump_info(path, number, out, disk)
    else:
        _dump_lines(path, f"{_LINES[home]} of {number}", _read(disk, path), out)


def _read(disk: IDisk, path: str) -> bytes:
    file: IFile = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        close_read(file)


def _dump_lines(path: str, what: str, data: bytes, out: TextIO) -> None:
    out.write(f"{what}, {len(data)} bytes\n")
    counts = {"live": 0, "done": 0, "DOES NOT CHECK": 0}
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        line = data[offset:end]
        body = checked_body(line)
        word = "DOES NOT CHECK" if body is None else "done" if line[:1] == DONE else "live"
        counts[word] += 1
        out.write(f"  {word} at {offset}: {line[1:].decode('ascii', 'backslashreplace')}\n")
        offset = end + 1
    out.write(f"{counts['live']} live, {counts['done']} done, {counts['DOES NOT CHECK']} that do not check\n")
    torn = len(data) - offset
    if torn:
        out.write(f"{torn} bytes behind the last line: torn\n")
    if read_lines(data).bad:
        raise Corrupt(path, read_lines(data).bad[0][0], "a line does not check")


def _dump_info(path: str, number: int | None, out: TextIO, disk: IDisk) -> None:
    found = parse_info(_read(disk, path)[:_LONGEST_INFO])
    if found is None:
        raise Corrupt(path, 0, "the info file does not check")
    spool_id, recipients, sender = found
    shown = sender.decode("ascii", "backslashreplace")
    out.write(f"info of {number}: message {spool_id:016X} from <{shown}> to {recipients} recipients\n")


def _dump_content(path: str, number: int | None, out: TextIO, disk: IDisk) -> None:
    reader = MessageFileReader(disk, path)
    try:
        while reader.read():
            pass
        out.write(f"content of {number}: {reader.size_bytes} bytes, which check\n")
    finally:
        reader.close()
