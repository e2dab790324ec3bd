"""Each check of what is read stands by itself: bytes that pass all others are refused by it."""

from __future__ import annotations

import zlib

import pytest

from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import LIVE, format_lines, parse_line
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import scan_lines
from mailismus.queue.providers.clustered.format.record import (
    HEAD,
    lines_record,
    message_head,
    parse_checkpoint,
    read_records,
)
from mailismus.spool.quarantine import keep_corrupt
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import moments

MESSAGE = Message(SpoolId(0x100000001), b"a@b.example", b"192.0.2.1", False, 1.7e9, 4711, 2, [])
LINE = format_lines(MESSAGE, [Entry(2, b"c@d.example", Area.INCOMING, 1.7e9)])[:-1]
FIELDS = LINE[1:].split(b" ")[:-1]


def line_of(fields: list[bytes], state: bytes = LIVE) -> bytes:
    """A line of these fields, its CRC right."""
    body = b" ".join(fields)
    return b"%b%b %08x" % (state, body, zlib.crc32(body))


def changed(at: int, field: bytes) -> bytes:
    return line_of([*FIELDS[:at], field, *FIELDS[at + 1 :]])


def test_the_line_made_here_is_right() -> None:
    assert line_of(FIELDS) == LINE
    assert parse_line(LINE, Area.INCOMING) is not None


@pytest.mark.parametrize(
    "line",
    [
        line_of([*FIELDS, b"-"]),
        line_of(FIELDS[:-1]),
        line_of(FIELDS, b"y"),
        changed(0, b"B"),
        changed(1, b"1" + b"0" * 16),
        changed(2, b"0/2"),
        changed(2, b"2/0"),
        changed(5, b"-1"),
        changed(5, b"%d" % (1 << 40)),
        changed(3, b"%d" % (1 << 48)),
        changed(3, b"-1"),
        changed(4, b"%d" % (1 << 48)),
        changed(4, b"-1"),
        changed(6, b"%d" % (1 << 50)),
        changed(6, b"-1"),
        LINE[:-8] + b"0" + LINE[-8:],
    ],
    ids=[
        "a field more",
        "one less",
        "state",
        "format",
        "spool id",
        "no recipient",
        "of none",
        "tried less than never",
        "tried too often",
        "received",
        "before",
        "due",
        "before it",
        "size",
        "less than none",
        "crc",
    ],
)
def test_a_line_that_says_something_else_is_none(line: bytes) -> None:
    assert parse_line(line, Area.INCOMING) is None


def test_a_line_of_another_format_is_passed_over_by_the_quick_reader_too() -> None:
    assert list(scan_lines(LINE + b"\n", None))
    assert not list(scan_lines(changed(0, b"B") + b"\n", None))


@pytest.mark.parametrize("kept", [HEAD.size - 1, HEAD.size + 4])
def test_a_record_longer_than_its_batch_is_corrupt(kept: int) -> None:
    whole = lines_record(Area.INCOMING, SpoolId(1), LINE + b"\n")
    with pytest.raises(Corrupt):
        list(read_records(whole + whole[:kept]))


def test_a_content_longer_than_its_batch_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        list(read_records(message_head(Area.INCOMING, SpoolId(1), LINE + b"\n", 10) + b"123456789"))


@pytest.mark.parametrize(
    "text",
    [b"horizon 1 epoch 2 checkpoint\n", b"horizon 1 epoch 2 checkpoint 3 more 4\n", b"horizon 1 epoch two checkpoint 3\n"],
)
def test_a_checkpoint_that_says_something_else_is_none(text: bytes) -> None:
    assert parse_checkpoint(text) is None


def test_a_line_in_the_record_of_another_message_is_set_aside() -> None:
    harness = ClusteredHarness()
    bench = Bench(harness, harness.make())
    spool_id = bench.put()
    record = lines_record(Area.DEFERRED, SpoolId(spool_id + 1), LINE + b"\n")
    harness.opened.writer.append([record], len(record))  # type: ignore[union-attr]  # it is open
    harness.clock.calls.clear()
    harness.disk.power_cut()
    again = Bench(harness, harness.open())
    assert [message.spool_id for message, _ in again.search()] == [spool_id]
    assert [name for name in harness.disk.names if name.startswith("/q/corrupt/")]


def test_what_is_set_aside_is_durable_before_the_start_goes_on() -> None:
    harness = ClusteredHarness()
    bench = Bench(harness, harness.make())
    bench.put(content=b"message 1")
    bench.put(content=b"message 2")
    path = "/q/journal/00000001.mqj"
    harness.disk.damage(path, harness.disk.content_of(path).index(b"message 1"), b"MESSAGE")
    harness.clock.calls.clear()
    harness.disk.power_cut()
    harness.open()
    harness.disk.power_cut()
    (kept,) = [name for name in harness.disk.names if name.startswith("/q/corrupt/")]
    assert b"MESSAGE 1" in harness.disk.content_of(kept)


def test_a_copy_of_what_does_not_check_is_whole_and_durable() -> None:
    for tree, is_over in moments(
        lambda disk: disk.make_directory("/c"), lambda disk: keep_corrupt(disk, "/c", "a", b"from b at 7\n", b"damaged")
    ):
        assert ("/c/a" in tree.names.files) >= is_over
        if "/c/a" in tree.names.files:
            assert tree.data_of("/c/a") == b"from b at 7\ndamaged"


def test_a_copy_that_was_made_by_one_who_was_killed_is_durable_too() -> None:
    def act(disk: TreeDisk) -> None:
        disk.create("/c/a")
        assert not keep_corrupt(disk, "/c", "a", b"", b"")

    for tree, is_over in moments(lambda disk: disk.make_directory("/c"), act):
        assert ("/c/a" in tree.names.files) >= is_over
