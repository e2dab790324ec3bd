"""Dump of files that every provider on local files has: segments, message files, files of `corrupt/`, the lock.

A segment: its header, then each batch; its records are the provider's. A message file: its size, and whether it checks. A
file of `corrupt/`: where it is from, and its bytes as lines. The nonce of a segment is never printed.

Bytes that do not check are reported in their place, and the dump goes on; a segment whose header does not check, and a
message file that is not whole, are refused.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from mailismus.disk.interface import IDisk, NameKind
from mailismus.errors import Corrupt, StartError
from mailismus.journal.batch import BLOCK, OLDEST_FORMAT, Batch, looks_torn
from mailismus.journal.replay import SUFFIX, look_at, read_batches
from mailismus.observe.text import shown
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.interface import Area
from mailismus.spool.message_file import PIECE_SIZE, MessageFileReader
from mailismus.spool.silo import parse_message_name

_NOTE = re.compile(rb"from (a record of the journal|/.*?)(?: at ([0-9]{1,18}))?").fullmatch
_NOTE_BYTES = 8192
"""A path is not longer."""

DumpRecords = Callable[[Batch, TextIO], None]
"""Prints the records of a batch. Raises `Corrupt`, its offset from the first record."""

DumpFile = Callable[[str, TextIO, IDisk], None]


def dump_file(
    path: str, out: TextIO, disk: IDisk, dump_records: DumpRecords, others: Mapping[str, DumpFile], names: str
) -> None:
    """Print the file. `others`: the provider's own files, by the endings of their names; `names`: what it can print, for the
    refusal. Raises `StartError` (65) where it is no file of a queue, `Corrupt` where it does not check, `NewerFormat`,
    `OSError`."""
    if not disk.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if disk.describe(path).kind is not NameKind.FILE:
        raise StartError(os.EX_DATAERR, f"{path} is no regular file: name a file of a queue or a spool")
    own = next((one for ending, one in others.items() if os.path.basename(path).endswith(ending)), None)
    if path.endswith(SUFFIX):
        _dump_segment(path, out, disk, dump_records)
    elif own is not None:
        own(path, out, disk)
    elif path.endswith(".msg"):
        _dump_message(path, out, disk)
    elif os.path.basename(path) == "lock":
        out.write("lock of a queue or a spool: empty, held by the server that runs\n")
    elif not _dump_set_aside(path, out, disk):
        text = (
            f"{path} is no file of a queue: dump prints {names}, message files (.msg), "
            "files of corrupt/, state/hosts and history, and the files provider and lock"
        )
        raise StartError(os.EX_DATAERR, text)


def dump_lines(text: bytes, area: Area | None, out: TextIO) -> None:
    """Print the lines of a record; those of an area are recipient lines."""
    for line in text.split(b"\n")[:-1]:
        is_bad = area is not None and parse_line(line, area) is None
        out.write(f"    {'DOES NOT CHECK: ' if is_bad else ''}{shown(line)}\n")


def _dump_set_aside(path: str, out: TextIO, disk: IDisk) -> bool:
    """Print a file of `corrupt/`; False: it has no first line that says where it is from."""
    file = disk.open(path)
    try:
        head = file.read_at(0, _NOTE_BYTES).partition(b"\n")[0]
        found = _NOTE(head)
        if found is None:
            return False
        start = len(head) + 1
        at = f" at {int(found[2])}" if found[2] else ""
        out.write(f"set aside from {shown(found[1])}{at}, {file.size() - start} bytes\n")
        held = b""
        while piece := file.read_at(start, PIECE_SIZE):
            start += len(piece)
            *lines, held = (held + piece).split(b"\n")
            while len(held) > PIECE_SIZE:
                lines.append(held[:PIECE_SIZE])
                held = held[PIECE_SIZE:]
            _write_lines(lines, out)
        _write_lines([held], out)
    finally:
        file.close()
    return True


def _write_lines(lines: Sequence[bytes], out: TextIO) -> None:
    """Write lines without the zeros that fill blocks."""
    for line in lines:
        text = line.strip(b"\0")
        if text:
            out.write(f"  {shown(text)}\n")


def _dump_segment(path: str, out: TextIO, disk: IDisk, dump_records: DumpRecords) -> None:
    found = look_at(path, disk)
    try:
        header = found.header
        if header is None:
            if found.is_unreadable:
                raise Corrupt(path, 0, "the segment's header does not check")
            out.write(f"free segment, {found.size_bytes} bytes\n")
            return
        out.write(
            f"segment {header.number}{format_text(header.format)}, {found.size_bytes} bytes: "
            f"first batch {header.first_sequence}, "
            f"earlier batches count up to {header.last_good}, epoch {header.epoch}, horizon {header.horizon}\n"
        )
        data = found.file.read_at(0, found.size_bytes)
        end = BLOCK
        for batch in read_batches(data, header):
            if batch.offset > end:
                out.write(f"DOES NOT CHECK: {batch.offset - end} bytes at {end}\n")
            _dump_batch(batch, out, dump_records)
            end = batch.end
        if looks_torn(data, end, header.nonce):
            out.write(f"DOES NOT CHECK: a batch at {end}, cut short or damaged\n")
    finally:
        found.file.close()


def format_text(of_format: int) -> str:
    """How the output names a format: format 1 is not named."""
    return f", format {of_format}" if of_format > OLDEST_FORMAT else ""


def _dump_batch(batch: Batch, out: TextIO, dump_records: DumpRecords) -> None:
    out.write(f"batch {batch.sequence} at {batch.offset}, {len(batch.records)} bytes\n")
    try:
        dump_records(batch, out)
    except Corrupt as error:
        out.write(f"  DOES NOT CHECK at {batch.records_offset + error.offset}: {error.text}\n")


def _dump_message(path: str, out: TextIO, disk: IDisk) -> None:
    name = parse_message_name(os.path.basename(path))
    if name is None:
        raise Corrupt(path, 0, "the name is not that of a message file")
    reader = MessageFileReader(disk, path)
    try:
        while reader.read():
            pass
    finally:
        reader.close()
    spool_id, number = name
    whose = f", the name of recipient {number}" if number else ""
    out.write(f"message {spool_id:016X}{whose}: content of {reader.size_bytes} bytes, whole\n")
