"""Dump: prints a file of the queue readably.

A journal segment: its header, then each batch with its records; recipient lines as they are, contents by size and offset
(for the bytes: `tail -c +OFFSET | head -c SIZE`). A cluster: its header, then each line with state and offset; which of them
count, only checkpoint records say. All else: `queue.files.dump`.
"""

from __future__ import annotations

from typing import TextIO

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.journal.batch import Batch
from mailismus.observe.text import shown
from mailismus.queue.files.dump import dump_file, dump_lines, format_text
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import SUFFIX as CLUSTER_SUFFIX
from mailismus.queue.providers.clustered.format.cluster import BadLine, parse_header, read_lines, refuse_newer_cluster
from mailismus.queue.providers.clustered.format.record import RecordKind, read_records


def dump(path: str, out: TextIO, disk: IDisk | None = None) -> None:
    """Print the file. Raises `StartError` (65) where it is no file of a queue, `Corrupt` where it does not check,
    `NewerFormat`, `OSError`."""
    names = "journal segments (.mqj), clusters (.mqc)"
    dump_file(path, out, disk or PosixDisk(Access.READ_ONLY), _dump_records, {CLUSTER_SUFFIX: _dump_cluster}, names)


def _dump_records(batch: Batch, out: TextIO) -> None:
    for record in read_records(batch.records):
        kind = record.kind.name.lower()
        if record.area is not None:
            content = ""
            if record.kind is RecordKind.MESSAGE:
                content = f", content of {record.content_size} bytes at {batch.records_offset + record.content_offset}"
            out.write(f"  {kind} {record.spool_id:016X} {record.area.value}{content}\n")
        else:
            out.write(f"  {kind}\n")
        dump_lines(record.text, record.area, out)


def _dump_cluster(path: str, out: TextIO, disk: IDisk) -> None:
    file = disk.open(path)
    try:
        data = file.read_at(0, file.size())
    finally:
        file.close()
    of_format = refuse_newer_cluster(path, data)
    header = parse_header(data.partition(b"\n")[0])
    area = Area.INCOMING if header is None else header[0]
    name = "" if header is None else f" {header[1]}-{header[2]} of {area.value}"
    out.write(f"cluster{name}{format_text(of_format)}, {len(data)} bytes\n")
    live = done = bad = 0
    for found in read_lines(data, area, None):
        if isinstance(found, BadLine):
            bad += 1
            out.write(f"  DOES NOT CHECK at {found.offset}: {shown(found.data)}\n")
            continue
        line = format_lines(found.message, [found.entry])[1:-1]  # the bytes of the file, since the line checks
        out.write(f"  {'done' if found.is_done else 'live'} at {found.offset}: {shown(line)}\n")
        live += not found.is_done
        done += found.is_done
    out.write(f"{live} live, {done} done, {bad} that do not check\n")
