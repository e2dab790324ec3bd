"""Audit logs: gathered, written by another thread, to the file of the day."""

from __future__ import annotations

import calendar
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from twisted.internet.task import Clock
from twisted.logger import LogEvent, formatEvent

from mailismus.config.values.names import DATE_TOKENS
from mailismus.observe.audit_log import (
    CLOSE_S,
    DATES,
    FLUSH_BYTES,
    FLUSH_S,
    HANGS_AFTER_S,
    JSON,
    LINES,
    MAX_BACKLOG,
    METRICS,
    RETRY_S,
    AuditLog,
    Audits,
    Layout,
)
from tests.fakes.events import Events
from tests.fakes.worker import MemoryWorker
from tests.observe.test_audit import RELAYED

T = TypeVar("T")
NOON = calendar.timegm((2026, 11, 20, 12, 0, 0))


class House:
    """An audit log in a directory."""

    def __init__(self, directory: Path, template: str = "audit.log", layout: Layout = LINES) -> None:
        self.directory = directory
        self.clock, self.worker = Clock(), MemoryWorker()
        self.clock.advance(NOON)
        self.log = AuditLog(str(directory / template), layout, self.worker, self.clock, self.clock.seconds)
        self.events: list[LogEvent] = []

    def write(self, number: int = 1) -> None:
        for _ in range(number):
            self.log.write(RELAYED)

    def pass_time(self, seconds: float = FLUSH_S) -> None:
        self.clock.advance(seconds)
        self.worker.work_all()

    def lines(self, name: str = "audit.log") -> list[str]:
        path = self.directory / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    with Events() as made.events:
        yield made


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_line_is_written_within_a_second_and_not_by_the_reactors_thread(house: House) -> None:
    house.write(2)
    assert house.worker.calls == []
    house.clock.advance(FLUSH_S)
    assert house.lines() == []
    house.worker.work_all()
    assert len(house.lines()) == 2
    assert " Relayed id=0000000100000002-1; " in house.lines()[0]
    assert house.clock.getDelayedCalls() == []


def test_many_lines_do_not_wait(house: House) -> None:
    while not house.worker.calls:
        house.write()
    house.worker.work_all()
    assert sum(len(line) + 1 for line in house.lines()) >= FLUSH_BYTES
    assert house.log.line_count == len(house.lines())


def test_lines_that_come_while_a_write_is_under_way_come_behind_it(house: House) -> None:
    house.write()
    house.clock.advance(FLUSH_S)
    (first,) = house.worker.calls
    house.write(3)
    house.clock.advance(FLUSH_S)
    assert house.worker.calls == [first]
    house.worker.work_all()
    assert len(house.lines()) == 4


def test_the_file_is_for_its_owner_alone_and_so_is_its_directory(tmp_path: Path) -> None:
    house = House(tmp_path, "a/b/audit.log")
    house.log.probe()
    assert stat.S_IMODE((tmp_path / "a/b/audit.log").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700


def test_a_probe_says_what_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        House(tmp_path, "file/audit.log").log.probe()
    (tmp_path / "link.log").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="symbolic links"):
        House(tmp_path, "link.log").log.probe()
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(OSError, match="No such device"):
        House(tmp_path, "pipe.log").log.probe()


@pytest.mark.usefixtures("in_utc")
def test_a_line_goes_to_the_file_of_its_own_day_and_hour(tmp_path: Path) -> None:
    house = House(tmp_path, "Y%Y%/%M%-%D%/audit-%DT%-%h%.log")
    house.clock.advance(12 * 3600 - 0.5)
    house.write()
    house.clock.advance(0.6)  # before the first was written
    house.write()
    house.pass_time()
    assert [len(house.lines(f"Y2026/11-{day}/audit-202611{name}.log")) for day, name in ((20, "20-23"), (21, "21-00"))] == [
        1,
        1,
    ]


@pytest.mark.usefixtures("in_utc")
def test_times_are_those_of_the_event(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.clock.advance(0.25)
    house.write()
    house.pass_time()
    assert house.lines()[0].startswith("2026-11-20 12:00:00.250 Relayed ")
    house = House(tmp_path, "audit.json", JSON)
    house.clock.advance(0.25)
    house.write()
    house.pass_time()
    record = json.loads(house.lines("audit.json")[0])
    assert (record["time"], record["event_time"]) == (NOON, "2026-11-20T12:00:00.250Z")


def test_after_a_rotation_the_next_lines_are_in_a_new_file(house: House) -> None:
    house.write()
    house.pass_time()
    (house.directory / "audit.log").rename(house.directory / "old.log")
    house.write()
    house.log.reopen()
    house.worker.work_all()
    assert (len(house.lines("old.log")), (house.directory / "audit.log").exists()) == (2, True)
    house.write()
    house.pass_time()
    assert (len(house.lines("old.log")), len(house.lines())) == (2, 1)


def test_what_can_not_be_written_is_kept_and_said_and_written_later(house: House) -> None:
    house.worker.fault = OSError(28, "No space left on device")
    house.write(2)
    house.pass_time()
    house.write()
    for _ in range(5):
        house.pass_time(RETRY_S)
    assert house.lines() == []
    house.worker.fault = None
    house.pass_time(RETRY_S)
    assert len(house.lines()) == 3
    assert house.log.lost == 0
    levels = [event["log_level"].name for event in house.events]
    assert levels == ["error", "info"]


def test_what_is_too_much_is_dropped_and_counted(house: House) -> None:
    house.worker.fault = OSError(28, "No space left on device")
    house.write()
    line_bytes = house.log._backlog_bytes
    room = MAX_BACKLOG // line_bytes - 1
    house.write(room + 7)
    assert (house.log.lost, house.log.line_count) == (7, room + 1)
    assert len(house.worker.calls) == 1
    house.worker.work_all()
    house.write(3)
    house.pass_time(RETRY_S)
    assert house.log.lost == 10
    house.worker.fault = None
    house.pass_time(RETRY_S)
    assert len(house.lines()) == room + 1
    assert house.events[-1]["lost"] == 3  # those of before trouble was noticed are in the counter
    metrics = {metric.name: metric.read(Audits(house.log)) for metric in METRICS}
    assert metrics["mailismus_audit_lost_lines_total"] == {("delivered",): 10}


def test_a_write_that_is_cut_short_goes_on_where_it_was(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[:100]))
    house.write(5)
    house.pass_time()
    assert len(house.lines()) == 5
    assert len(set(house.lines())) == 1
    assert house.log._backlog_bytes == 0


def test_a_stop_waits_for_the_last_lines_but_not_for_ever(house: House) -> None:
    house.write()
    over: list[None] = []
    house.log.close().addCallback(over.append)
    assert over == []
    house.worker.work_all()
    assert (over, len(house.lines()), house.clock.getDelayedCalls()) == ([None], 1, [])
    house.write()
    house.log.close().addCallback(over.append)
    house.clock.advance(CLOSE_S)
    assert over == [None, None]


def test_a_stop_does_not_wait_for_a_log_that_can_not_be_written(house: House) -> None:
    house.worker.fault = OSError(28, "No space left on device")
    house.write(2)
    over: list[None] = []
    house.log.close().addCallback(over.append)
    house.worker.work_all()
    assert (over, house.clock.getDelayedCalls()) == ([None], [])
    assert [event["log_level"].name for event in house.events] == ["error", "error"]
    assert formatEvent(house.events[-1]).endswith("is closed without its last 2 lines")


def test_a_stop_is_silent_when_all_was_written(house: House) -> None:
    house.write(3)
    house.log.close()
    house.worker.work_all()
    assert (len(house.lines()), house.events) == (3, [])


def test_the_configuration_takes_the_tokens_that_are_replaced() -> None:
    assert set(DATE_TOKENS) == set(DATES)


def test_a_write_that_hangs_is_told_of_once_and_mail_goes_on(house: House) -> None:
    house.write()
    house.clock.advance(FLUSH_S)
    house.clock.advance(HANGS_AFTER_S - 1)
    assert house.events == []
    for _ in range(5):
        house.write()
        house.clock.advance(HANGS_AFTER_S)
    (event,) = house.events
    assert f"{house.directory}/audit.log has not taken a line for 60 s" in formatEvent(event)
    house.worker.work_all()
    house.pass_time(HANGS_AFTER_S)
    assert len(house.lines()) == 6
    assert len(house.events) == 1
