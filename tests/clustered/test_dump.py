"""Dump: what lies in a file of the queue can be read, damage included."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.errors import Corrupt, StartError
from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.journal.segment import make_segment
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.dump import dump
from mailismus.queue.providers.clustered.format.cluster import DONE_MARK, ClusterId, Place, header_line
from mailismus.queue.providers.clustered.format.record import (
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


def test_what_does_not_check_of_a_segment_is_said_and_the_rest_goes_on() -> None:
    disk = segment_on_disk([lines_record(Area.DEFERRED, SPID, lines_of(b"c@d.example"))])
    file = disk.open("/j/00000007.mqj")
    settled = settled_record([(QueueId(SPID, 2), None)])
    file.write_at(3 * BLOCK, encode_batch(NONCE, 43, [settled], len(settled)))
    file.write_at(4 * BLOCK, [b"".join(encode_batch(NONCE, 44, [settled], len(settled)))[:50]])
    text = dumped(disk, "/j/00000007.mqj")
    assert f"\nDOES NOT CHECK: {BLOCK} bytes at {2 * BLOCK}\nbatch 43 at {3 * BLOCK}" in text
    assert text.endswith(f"DOES NOT CHECK: a batch at {4 * BLOCK}, cut short or damaged\n")


def test_records_that_do_not_fit_their_batch_are_said_and_the_rest_goes_on() -> None:
    good = settled_record([(QueueId(SPID, 2), None)])
    text = dumped(segment_on_disk([good, b"Z" * 40]), "/j/00000007.mqj")
    assert f"  DOES NOT CHECK at {BLOCK + 36 + len(good)}: " in text
    assert "0000000100000001-2 -" in text


def test_what_was_set_aside_shows_where_it_is_from_and_its_bytes_as_lines() -> None:
    note = b"from /q/incoming/1-1.mqc at 20\n"
    disk = stored(note + b" A 00000\x1b[2J\n\0\0\0tail\0\0", "/q/corrupt/incoming-1-1.mqc-20")
    assert dumped(disk, "/q/corrupt/incoming-1-1.mqc-20") == (
        "set aside from /q/incoming/1-1.mqc at 20, 22 bytes\n   A 00000\\x1b[2J\n  tail\n"
    )
    disk = stored(b"from a record of the journal\nA 0", "/q/corrupt/record-01234567")
    assert dumped(disk, "/q/corrupt/record-01234567").startswith("set aside from a record of the journal, 3 bytes\n")


def test_a_lock_is_said_to_be_one() -> None:
    assert dumped(stored(b"", "/q/lock"), "/q/lock").startswith("lock of a queue")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["/q/00000007.mqj", "/q/1-1.mqc", "/s/0000000100000001.msg", "/q/other"]), st.data())
def test_no_bytes_trip_it(path: str, data: st.DataObject) -> None:
    header = SegmentHeader(7, 41, 40, 3, 39, NONCE).encode()
    batch = b"".join(encode_batch(NONCE, 41, [lines_of(b"c@d.example")], len(lines_of(b"c@d.example"))))
    whole = bytearray(
        data.draw(st.sampled_from([header + batch, header_line(CLUSTER) + lines_of(b"c@d"), b"from /x at 1\n", b""]))
    )
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 255)), max_size=6)):
        if at < len(whole):
            whole[at] = value
    whole += data.draw(st.binary(max_size=60))
    try:
        text = dumped(stored(bytes(whole), path), path)
    except (Corrupt, StartError):
        return
    assert text.isascii() or text.replace("\n", "").isprintable()


def test_what_is_no_file_is_refused() -> None:
    disk = stored(b"x", "/s/01/x.msg")
    with pytest.raises(StartError, match=r"^/s/01 is no regular file: ") as raised:
        dumped(disk, "/s/01")
    assert raised.value.status == 65


def test_what_is_none_of_ours_is_refused() -> None:
    disk = stored(b"x", "/s/note.txt")
    with pytest.raises(StartError, match=r"^/s/note.txt is no file .*\.mqj.*\.mqc.*\.msg.*provider and lock") as raised:
        dumped(disk, "/s/note.txt")
    assert raised.value.status == 65
    with pytest.raises(FileNotFoundError):
        dumped(disk, "/s/missing.mqc")
