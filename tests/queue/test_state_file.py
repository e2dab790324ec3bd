"""State files: their frame, cut, garbled or foreign, and how they are printed."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.__main__ import main
from mailismus.disk.posix import PosixDisk
from mailismus.errors import Corrupt
from mailismus.queue.files import state_file
from mailismus.queue.files.state_file import (
    MAX_BYTES,
    MAX_LINE,
    MAX_LINES,
    StateFile,
    decode_state,
    dump_state,
    encode_state,
    is_state_path,
    read_state,
)

LINES = [b"one line", b"", b"a third - with blanks "]
TEXTS = st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=8)


@given(TEXTS, st.integers(1, 999_999_999))
def test_what_was_written_is_read(lines: list[bytes], of_format: int) -> None:
    assert decode_state(encode_state("hosts", of_format, lines)) == StateFile("hosts", of_format, lines, 0)


def test_wherever_it_is_cut_the_lines_before_are_read_and_the_others_are_counted() -> None:
    data = encode_state("hosts", 1, LINES)
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for size in range(len(data)):
        found = decode_state(data[:size])
        whole = sum(end <= size for end in ends)
        assert found == (StateFile("hosts", 1, LINES[: whole - 1], len(LINES) - whole + 1) if whole else None)


def test_a_changed_byte_costs_its_line_or_with_the_first_line_all() -> None:
    data = encode_state("hosts", 1, LINES)
    first = data.index(b"\n")
    for at in range(len(data)):
        for other in {0, ord("\n"), ord(" "), ord("0"), data[at] ^ 1, data[at] ^ 0x80} - {data[at]}:
            found = decode_state(data[:at] + bytes((other,)) + data[at + 1 :])
            if at <= first:
                assert found is None or found.bad
            else:
                assert found is not None
                assert found.bad
                assert set(found.lines) < set(LINES) or len(found.lines) < len(LINES)


@given(st.binary(max_size=300), st.integers(0, 60))
def test_no_bytes_are_too_strange(junk: bytes, size: int) -> None:
    for data in (junk, b"MQS " + junk, encode_state("hosts", 1, LINES)[:size] + junk):
        found = decode_state(data)
        assert found is None or found.lines == [line for line in LINES if line in found.lines]


def test_zeros_in_the_middle_cost_what_they_cover() -> None:
    data = encode_state("hosts", 1, [b"line %d" % number for number in range(100)])
    found = decode_state(data[:200] + bytes(100) + data[300:])
    assert found is not None
    assert (len(found.lines) + found.bad, found.bad < 10) == (100, True)


def test_lines_that_are_too_long_or_too_many_are_left_out() -> None:
    long = b"x" * (MAX_LINE + 1)
    assert decode_state(encode_state("hosts", 1, [long, long[1:]])) == StateFile("hosts", 1, [long[1:]], 0)
    found = decode_state(encode_state("hosts", 1, [b""] * (MAX_LINES + 7)))
    assert found is not None
    assert (len(found.lines), found.bad) == (MAX_LINES, 0)
    data = encode_state("hosts", 1, [b"x"])
    more = decode_state(data + data.partition(b"\n")[2] * (MAX_LINES + 7))
    assert more is not None
    assert (len(more.lines), more.bad) == (MAX_LINES, 8)


def test_more_bytes_than_a_file_may_have_tell_nothing() -> None:
    data = encode_state("hosts", 1, LINES)
    assert decode_state(data + bytes(MAX_BYTES - len(data))) is not None
    assert decode_state(data + bytes(MAX_BYTES - len(data) + 1)) is None


def test_what_is_no_file_of_ours_is_refused(tmp_path: Path) -> None:
    disk, path = PosixDisk(), str(tmp_path / "hosts")
    assert read_state(disk, path) is None
    with open(path, "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(Corrupt, match="too many"):
        read_state(disk, path)
    os.unlink(path)
    os.mkfifo(path)
    with pytest.raises(Corrupt, match="a pipe"):
        read_state(disk, path)
    os.unlink(path)
    os.symlink("/etc/passwd", path)
    with pytest.raises(Corrupt, match="symbolic link"):
        read_state(disk, path)
    os.unlink(path)
    Path(path).write_bytes(b"\x7fELF" * 100)
    with pytest.raises(Corrupt, match="first line"):
        read_state(disk, path)


def test_it_is_printed_and_what_does_not_check_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q" / "state" / "hosts"
    path.parent.mkdir(parents=True)
    path.write_bytes(encode_state("hosts", 2, [b"192.0.2.1 25", b"odd \x1b[2J"]) + b"junk")
    assert main(["dump", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "state file hosts, format 2, 2 lines"
    assert lines[1] == "  192.0.2.1 25"
    assert "\x1b" not in lines[2]
    assert lines[3] == "DOES NOT CHECK: 1 lines"
    path.write_bytes(b"")
    assert main(["dump", str(path)]) == 65
    assert "first line" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError):
        dump_state(str(tmp_path / "none"), io.StringIO())


def test_a_state_file_is_known_by_its_place() -> None:
    assert is_state_path("/var/q/state/hosts")
    assert is_state_path("/var/q/state/hosts.new")
    for path in ("/etc/hosts", "/var/q/state/others", "/var/q/state", "hosts"):
        assert not is_state_path(path)
    assert state_file.DIRECTORY == "state"
