"""Dump: what lies in a file of the queue can be read, damage included."""

from __future__ import annotations

import io

import pytest

from mailismus.errors import Corrupt
from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.journal.segment import make_segment
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.cluster import DONE_MARK, ClusterId, Place, header_line
from mailismus.queue.providers.clustered.dump import dump
from mailismus.queue.providers.clustered.line import format_lines
from mailismus.queue.providers.clustered.record import (
    Checkpoint,
    checkpoint_record,
    lines_record,
    message_head,
    settled_record,
)
from mailismus.spool.message_file import MessageFileWriter
from tests.fakes.disk import MemoryDisk

SPID = SpoolId(0x1_0000_0001)
CLUSTER = ClusterId(Area.DEFERRED, "20261121T0800", 12, 3)
NONCE = b"secret of segment"[:16]


def lines_of(*recipients: bytes) -> bytes:
    message = Message(SPID, b"a@b.example", b"127.0.0.1", False, 1.7e9, 34, len(recipients), [])
    entries = [Entry(n, recipient, Area.DEFERRED, 1.7e9) for n, recipient in enumerate(recipients, 1)]
    return format_lines(message, entries)


def dumped(disk: MemoryDisk, path: str) -> str:
    out = io.StringIO()
    dump(path, out, disk)
    return out.getvalue()


def stored(data: bytes, path: str) -> MemoryDisk:
    disk = MemoryDisk()
    directory = ""
    for name in path.split("/")[1:-1]:
        directory += f"/{name}"
        disk.make_directory(directory)
    disk.create(path).write_at(0, [data])
    return disk


def cluster_on_disk(data: bytes) -> str:
    return dumped(stored(data, CLUSTER.path("/q")), CLUSTER.path("/q"))


def segment_on_disk(records: list[bytes]) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/j")
    segment = make_segment(disk, "/j", "00000007.mqj", 1 << 20)
    segment.begin(SegmentHeader(7, 41, 40, 3, 39, NONCE))
    segment.file.write_at(BLOCK, encode_batch(NONCE, 41, records, sum(map(len, records))))
    return disk


def test_a_cluster_shows_its_header_and_each_line_with_state_and_place() -> None:
    lines = lines_of(b"c@d.example", b"e@f.example")
    first, second = lines.splitlines(keepends=True)
    assert cluster_on_disk(header_line(CLUSTER) + first + DONE_MARK + second[1:]) == (
        f"cluster 12-3 of deferred, {20 + len(lines)} bytes\n"
        f"  live at 20: {first[1:-1].decode()}\n"
        f"  done at {20 + len(first)}: {second[1:-1].decode()}\n"
        "1 live, 1 done, 0 that do not check\n"
    )


def test_a_damaged_line_of_a_cluster_is_shown_as_such() -> None:
    lines = bytearray(lines_of(b"c@d.example", b"e@f.example"))
    lines[30] = 0x1B
    text = cluster_on_disk(header_line(CLUSTER) + bytes(lines))
    assert "  DOES NOT CHECK at 20:  A 0000000100000001 1/2 " in text
    assert "\x1b" not in text
    assert "e@f.example" in text
    assert text.endswith("1 live, 0 done, 1 that do not check\n")


def test_a_cluster_without_a_header_shows_its_lines() -> None:
    text = cluster_on_disk(b"MQC 9 what\n" + lines_of(b"c@d.example"))
    assert "  DOES NOT CHECK at 0: MQC 9 what\n" in text
    assert "  live at 11: A 0000000100000001 1/1 " in text


def test_a_segment_shows_batches_and_records_but_not_its_nonce() -> None:
    lines = lines_of(b"c@d.example", b"e@f.example")
    content = b"Subject: x\r\n\r\nthe content\r\n"
    records = [
        message_head(Area.INCOMING, SPID, lines, len(content)),
        content,
        lines_record(Area.BOUNCES, SPID, lines_of(b"c@d.example")),
        settled_record([(QueueId(SPID, 2), None), (QueueId(SPID, 1), Place(CLUSTER, 1041))]),
        checkpoint_record(Checkpoint(40, 3, 12, {CLUSTER: 4711})),
    ]
    text = dumped(segment_on_disk(records), "/j/00000007.mqj")
    first, second = lines.decode().splitlines()
    place = BLOCK + 36 + len(records[0])
    assert text == (
        "segment 7, 1048576 bytes: first batch 41, earlier batches count up to 40, epoch 3, horizon 39\n"
        f"batch 41 at 4096, {sum(map(len, records))} bytes\n"
        f"  message 0000000100000001 incoming, content of {len(content)} bytes at {place}\n"
        f"    {first}\n"
        f"    {second}\n"
        "  lines 0000000100000001 bounces\n"
        f"    {lines_of(b'c@d.example').decode()[:-1]}\n"
        "  settled\n"
        "    0000000100000001-2 -\n"
        "    0000000100000001-1 deferred/20261121T0800/12-3.mqc:1041\n"
        "  checkpoint\n"
        "    horizon 40 epoch 3 checkpoint 12\n"
        "    deferred/20261121T0800/12-3.mqc:4711\n"
    )
    assert NONCE.decode() not in text


def test_a_line_of_a_segment_that_does_not_check_is_shown_as_such() -> None:
    damaged = lines_of(b"c@d.example").replace(b"c@d", b"x@d")
    text = dumped(segment_on_disk([lines_record(Area.DEFERRED, SPID, damaged)]), "/j/00000007.mqj")
    assert f"    DOES NOT CHECK: {damaged.decode()[:-1]}\n" in text


def test_a_free_segment_is_said_to_be_free() -> None:
    disk = MemoryDisk()
    disk.make_directory("/j")
    make_segment(disk, "/j", "ready-1.mqj", 1 << 20)
    assert dumped(disk, "/j/ready-1.mqj") == "free segment, 1048576 bytes\n"


def test_a_segment_with_a_damaged_header_is_refused() -> None:
    disk = segment_on_disk([checkpoint_record(Checkpoint(40, 3, 12, {CLUSTER: 4711}))])
    disk.damage("/j/00000007.mqj", 20, b"\xff")
    with pytest.raises(Corrupt):
        dumped(disk, "/j/00000007.mqj")


def message_on_disk(content: bytes) -> tuple[MemoryDisk, str]:
    disk = MemoryDisk()
    disk.make_directory("/s")
    disk.make_directory("/s/01")
    writer = MessageFileWriter(disk, "/s", SPID)
    writer.append([content])
    writer.finish()
    return disk, "/s/01/0000000100000001.msg"


def test_a_whole_message_file_is_said_to_be_whole() -> None:
    disk, path = message_on_disk(b"x" * 100_000)
    assert dumped(disk, path) == "message 0000000100000001: content of 100000 bytes, whole\n"


def test_a_damaged_message_file_is_refused() -> None:
    disk, path = message_on_disk(b"x" * 100_000)
    disk.damage(path, 70_000, b"y")
    with pytest.raises(Corrupt):
        dumped(disk, path)


def test_what_is_none_of_ours_is_refused() -> None:
    disk = stored(b"x", "/s/note.txt")
    with pytest.raises(Corrupt, match=r"\.mqj.*\.mqc.*\.msg"):
        dumped(disk, "/s/note.txt")
    with pytest.raises(FileNotFoundError):
        dumped(disk, "/s/missing.mqc")
