"""Dump: segments of the log and positions can be read, damage included."""

from __future__ import annotations

import io

import pytest

from mailismus.errors import Corrupt, StartError
from mailismus.queue.providers.log.dump import dump
from tests.fakes.disk import MemoryDisk
from tests.log.test_stopped import Filled


def dumped(disk: MemoryDisk, path: str) -> str:
    out = io.StringIO()
    dump(path, out, disk)
    return out.getvalue()


@pytest.fixture
def filled() -> Filled:
    filled = Filled()
    filled.harness.round(filled.queue)
    return filled


def segments(filled: Filled) -> list[str]:
    return sorted(name for name in filled.harness.disk.names if name.endswith(".mqj") and "ready" not in name)


def test_a_segment_shows_each_record_with_its_place_and_mark(filled: Filled) -> None:
    (path,) = segments(filled)
    lines = dumped(filled.harness.disk, path).splitlines()
    assert lines[0].startswith("segment 1, 1048576 bytes: first batch 1, ")
    assert lines[1:4] == ["batch 1 at 4096, 28 bytes", "  epoch", "    epoch 1"]
    (message,) = [line for line in lines if line.startswith("  message 2+0 ")]
    stated, _, offset = message.rpartition(" at ")
    assert stated.startswith("  message 2+0 0000000100000001 incoming, not marked, content of ")
    assert filled.harness.disk.content_of(path)[int(offset) :].startswith(b"Subject: 0\r\n")
    assert any(line.startswith("  file ") and line.endswith(", content in its message file") for line in lines)
    assert any("  delivery 0000000100000004 of " in line and line.endswith(": recipients 4") for line in lines)
    assert any(line.startswith("  replacement ") and ", content in segment 1 at " in line for line in lines)
    assert any(line.startswith("  finish ") for line in lines)
    assert not any("DOES NOT CHECK" in line for line in lines)


def test_bytes_that_do_not_check_are_told_in_their_place(filled: Filled) -> None:
    (path,) = segments(filled)
    filled.harness.disk.damage(path, 8352, b"\0")
    assert "DOES NOT CHECK: 4096 bytes at 8192" in dumped(filled.harness.disk, path)


def test_positions_show_both_blocks(filled: Filled) -> None:
    disk = filled.harness.disk
    lines = dumped(disk, "/q/positions").splitlines()
    assert lines[0].startswith("block 1: positions 1: the working suffix begins at batch ")
    assert lines[1].startswith("  nothing that waits lies before ")
    assert any(line.startswith("  runner of deferred, due 3") for line in lines) is bool(lines[2:-1])
    assert lines[-1] == "block 2: the same"
    disk.damage("/q/positions", 40, b"\xff")
    assert dumped(disk, "/q/positions").startswith("block 1: DOES NOT CHECK\nblock 2: positions ")
    disk.damage("/q/positions", 4096 + 40, b"\xff")
    with pytest.raises(Corrupt, match="neither block"):
        dumped(disk, "/q/positions")


def test_other_files_are_those_of_every_provider(filled: Filled) -> None:
    disk = filled.harness.disk
    (message,) = [name for name in disk.names if name.endswith(".msg")]
    assert dumped(disk, message).endswith("bytes, whole\n")
    assert dumped(disk, "/q/log/ready-0001.mqj" if "/q/log/ready-0001.mqj" in disk.names else message)
    file = disk.create("/q/other")
    file.write_at(0, [b"x"])
    with pytest.raises(StartError, match=r"dump prints segments of the log \(.mqj\), positions, message files"):
        dumped(disk, "/q/other")
