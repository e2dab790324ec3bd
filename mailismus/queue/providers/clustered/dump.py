"""Dump: a file of the queue, printed readably.

A journal segment: its header, then each batch with its records; recipient lines as they stand, contents as their size and
place (the bytes themselves are in the file: `tail -c +OFFSET | head -c SIZE`). A cluster: its header, then each line with
its state and offset (what of it counts, checkpoints know). A message file: its trailer, and whether it checks. The nonce of
a segment is shown to nobody.
"""

from __future__ import annotations

import errno
import os
from typing import TextIO

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.replay import SUFFIX, look_at, read_batches
from mailismus.observe.text import shown
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.cluster import SUFFIX as CLUSTER_SUFFIX
from mailismus.queue.providers.clustered.cluster import BadLine, parse_header, read_lines
from mailismus.queue.providers.clustered.line import format_lines, parse_line
from mailismus.queue.providers.clustered.record import RecordKind, read_records
from mailismus.spool.message_file import MessageFileReader
from mailismus.spool.silo import parse_message_name


def dump(path: str, out: TextIO, disk: IDisk | None = None) -> None:
    """Print the file. Raises `Corrupt` for what is none of ours or does not check, `OSError`."""
    disk = disk or PosixDisk(Access.READ_ONLY)
    if not disk.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if path.endswith(SUFFIX):
        _dump_segment(path, out, disk)
    elif path.endswith(CLUSTER_SUFFIX):
        _dump_cluster(path, out, disk)
    elif path.endswith(".msg"):
        _dump_message(path, out, disk)
    else:
        raise Corrupt(path, 0, "neither a journal segment (.mqj) nor a cluster (.mqc) nor a message file (.msg)")


def _dump_segment(path: str, out: TextIO, disk: IDisk) -> None:
    found = look_at(path, disk)
    try:
        header = found.header
        if header is None:
            if found.is_unreadable:
                raise Corrupt(path, 0, "the segment's header does not check")
            out.write(f"free segment, {found.size_bytes} bytes\n")
            return
        out.write(
            f"segment {header.number}, {found.size_bytes} bytes: first batch {header.first_sequence}, "
            f"earlier batches count up to {header.last_good}, epoch {header.epoch}, horizon {header.horizon}\n"
        )
        for batch in read_batches(found.file.read_at(0, found.size_bytes), header):
            _dump_batch(batch, out)
    finally:
        found.file.close()


def _dump_batch(batch: Batch, out: TextIO) -> None:
    out.write(f"batch {batch.sequence} at {batch.offset}, {len(batch.records)} bytes\n")
    for record in read_records(batch.records):
        kind = record.kind.name.lower()
        if record.area is not None:
            content = ""
            if record.kind is RecordKind.MESSAGE:
                content = f", content of {record.content_size} bytes at {batch.records_offset + record.content_offset}"
            out.write(f"  {kind} {record.spool_id:016X} {record.area.value}{content}\n")
        else:
            out.write(f"  {kind}\n")
        for line in record.text.split(b"\n")[:-1]:
            is_bad = record.area is not None and parse_line(line, record.area or Area.INCOMING) is None
            out.write(f"    {'DOES NOT CHECK: ' if is_bad else ''}{shown(line)}\n")


def _dump_cluster(path: str, out: TextIO, disk: IDisk) -> None:
    file = disk.open(path)
    try:
        data = file.read_at(0, file.size())
    finally:
        file.close()
    header = parse_header(data.partition(b"\n")[0])
    area = Area.INCOMING if header is None else header[0]
    name = "" if header is None else f" {header[1]}-{header[2]} of {area.value}"
    out.write(f"cluster{name}, {len(data)} bytes\n")
    live = done = bad = 0
    for found in read_lines(data, area, None):
        if isinstance(found, BadLine):
            bad += 1
            out.write(f"  DOES NOT CHECK at {found.offset}: {shown(found.data)}\n")
            continue
        line = format_lines(found.message, [found.entry])[1:-1]  # as it stands: it has checked
        out.write(f"  {'done' if found.is_done else 'live'} at {found.offset}: {shown(line)}\n")
        live += not found.is_done
        done += found.is_done
    out.write(f"{live} live, {done} done, {bad} that do not check\n")


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
