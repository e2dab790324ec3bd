"""The log's destination: order, stamps, and what a log that can't be written costs."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from twisted.internet.task import Clock
from twisted.logger import Logger, LogPublisher

from mailismus.start.logfile import FLUSH_BYTES, FLUSH_DELAY_S, MAX_BACKLOG, LogDestination, format_stamp
from mailismus.start.output import FileOutput, Output
from mailismus.start.server import Reactor

NOW = 1_795_000_000.9


class SlowOutput(Output):
    """Takes as many bytes as a test allows."""

    def __init__(self) -> None:
        self.taken = b""
        self.room = 0
        self.error: OSError | None = None

    def write(self, data: memoryview) -> int:
        if self.error is not None:
            raise self.error
        count = min(self.room, len(data))
        self.taken += data[:count]
        self.room -= count
        return count

    def wait(self, timeout_s: float) -> bool:
        return self.room > 0


def make(output: Output) -> tuple[LogDestination, Clock]:
    clock = Clock()
    return LogDestination(output, cast(Reactor, clock), lambda: NOW + clock.seconds()), clock


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


def test_a_line_is_stamped_and_written_within_the_delay(tmp_path: Path) -> None:
    destination, clock = make(FileOutput(str(tmp_path / "log")))
    destination.write(b"one")
    assert (tmp_path / "log").read_bytes() == b""
    clock.advance(FLUSH_DELAY_S)
    destination.write(b"two")
    clock.advance(1)
    first, second = (tmp_path / "log").read_bytes().splitlines()
    assert first == format_stamp(NOW) + b" [mail] one"
    assert second == format_stamp(NOW + FLUSH_DELAY_S) + b" [mail] two"
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", format_stamp(NOW))


def test_an_event_is_written_at_once_behind_what_came_before(tmp_path: Path) -> None:
    destination, _clock = make(FileOutput(str(tmp_path / "log")))
    destination.write(b"before")
    Logger("space", observer=destination).info("an {adjective} event", adjective="\x1b[2J")
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].endswith("[mail] before")
    assert lines[1].endswith(r"[space#info] an \x1b[2J event")


def test_a_plugin_cache_that_cannot_be_written_is_not_logged(tmp_path: Path) -> None:
    destination, _clock = make(FileOutput(str(tmp_path / "log")))
    LogPublisher(destination)({"format": "Unable to write to plugin cache %(path)s", "path": "x", "log_time": 0.0})
    assert (tmp_path / "log").read_bytes() == b""


def test_a_signal_may_log_in_the_midst_of_a_write() -> None:
    output, clock = SlowOutput(), Clock()
    log = LogDestination(output, cast(Reactor, clock), lambda: NOW)
    output.room = 1 << 20
    write = output.write

    def interrupted(data: memoryview) -> int:
        output.write = write  # type: ignore[method-assign]  # once
        log.write(b"the signal")
        log.flush()
        return write(data)

    output.write = interrupted  # type: ignore[method-assign]  # a signal comes
    log.write(b"one")
    log.flush()
    clock.advance(FLUSH_DELAY_S)
    assert [line.split(b"] ")[1] for line in output.taken.splitlines()] == [b"one", b"the signal"]


def test_many_bytes_do_not_wait_for_the_delay() -> None:
    output = SlowOutput()
    output.room = MAX_BACKLOG
    destination, _clock = make(output)
    destination.write(b"x" * FLUSH_BYTES)
    assert len(output.taken) > FLUSH_BYTES


def test_what_cannot_be_written_is_kept_then_dropped_and_counted() -> None:
    output = SlowOutput()
    destination, clock = make(output)
    count = 2 * MAX_BACKLOG // 1024
    for number in range(count):
        destination.write(b"%06d" % number + b"." * 1024)
    clock.advance(1)
    output.room = 3 * MAX_BACKLOG
    clock.advance(FLUSH_DELAY_S)
    clock.advance(FLUSH_DELAY_S)
    *kept, last = output.taken.splitlines()
    lost = count - len(kept)
    assert 0 < lost < count
    assert [line.partition(b"[mail] ")[2][:6] for line in kept] == [b"%06d" % number for number in range(len(kept))]
    assert last.endswith(b"%d log lines were lost: the log could not be written" % lost)


def test_a_line_cut_by_a_full_pipe_goes_on_where_it_was_cut() -> None:
    output = SlowOutput()
    destination, clock = make(output)
    destination.write(b"abcdefgh")
    while not output.taken.endswith(b"\n"):
        output.room = 7
        clock.advance(FLUSH_DELAY_S)
    assert output.taken == format_stamp(NOW) + b" [mail] abcdefgh\n"


def test_an_error_is_survived_and_nothing_is_lost_below_the_bound() -> None:
    output = SlowOutput()
    output.error = OSError(28, "No space left on device")
    destination, clock = make(output)
    destination.write(b"one")
    clock.advance(1)
    output.error, output.room = None, 1000
    clock.advance(FLUSH_DELAY_S)
    assert output.taken.endswith(b"one\n")


def test_a_pipe_nobody_reads_never_blocks_and_is_written_out_when_read(pipe: tuple[int, int]) -> None:
    destination, clock = make(Output(pipe[1]))
    for number in range(4000):
        destination.write(b"%04d" % number + b"." * 100)
        clock.advance(0.001)
    taken = b""
    while not taken.endswith(b"3999" + b"." * 100 + b"\n"):
        taken += os.read(pipe[0], 1 << 16)
        clock.advance(FLUSH_DELAY_S)
    assert len(taken.splitlines()) == 4000


def test_a_socket_nobody_reads_never_blocks() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        destination, clock = make(Output(ours.fileno()))
        for _ in range(10_000):
            destination.write(b"." * 100)
            clock.advance(0.001)
        assert theirs.recv(64).startswith(format_stamp(NOW))


def test_a_reader_that_is_gone_is_survived(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    destination, clock = make(Output(pipe[1]))
    destination.write(b"x")
    clock.advance(1)
    destination.close()


def test_closing_waits_for_a_reader_no_longer_than_told(pipe: tuple[int, int]) -> None:
    destination, _clock = make(Output(pipe[1]))
    destination.write(b"." * (1 << 20))
    destination.close(patience_s=0.01)
    assert os.read(pipe[0], 10) == format_stamp(NOW)[:10]


def test_a_renamed_log_is_left_and_a_new_one_begun(tmp_path: Path) -> None:
    destination, clock = make(FileOutput(str(tmp_path / "log")))
    destination.write(b"old")
    (tmp_path / "log").rename(tmp_path / "log.1")
    destination.reopen()
    destination.write(b"new")
    clock.advance(1)
    assert (tmp_path / "log.1").read_bytes().endswith(b"old\n")
    assert (tmp_path / "log").read_bytes().endswith(b"new\n")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_reopened_goes_on_in_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    destination, clock = make(FileOutput(str(tmp_path / "d/log")))
    (tmp_path / "d").rename(tmp_path / "e")
    with pytest.raises(FileNotFoundError):
        destination.reopen()
    destination.write(b"on")
    clock.advance(1)
    assert (tmp_path / "e/log").read_bytes().endswith(b"on\n")


def test_a_fifo_that_nobody_reads_is_no_log_and_is_not_waited_for(tmp_path: Path) -> None:
    destination, clock = make(FileOutput(str(tmp_path / "log")))
    (tmp_path / "log").rename(tmp_path / "old")
    os.mkfifo(tmp_path / "log")
    with pytest.raises(OSError, match="nobody reads"):
        FileOutput(str(tmp_path / "log"))
    with pytest.raises(OSError, match="nobody reads"):
        destination.reopen()
    destination.write(b"on")
    clock.advance(1)
    assert (tmp_path / "old").read_bytes().endswith(b"on\n")


def test_a_fifo_with_a_reader_is_a_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    destination, clock = make(FileOutput(str(tmp_path / "log")))
    destination.write(b"on")
    clock.advance(1)
    assert os.read(reader, 1000).endswith(b"on\n")
    os.close(reader)
