"""The history of the last day: samples, their file, and plots."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Sequence
from typing import cast

import attrs
import pytest
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailismus.disk.interface import IDisk
from mailismus.observe.figures import compare
from mailismus.observe.overview import Overview
from mailismus.queue.files.state_file import HISTORY, encode_state, read_state
from mailismus.web.history.recorder import WRITE_EVERY, Recorder
from mailismus.web.history.samples import (
    EVERY_S,
    FORMAT,
    KEPT,
    SPAN_S,
    Sample,
    believed,
    format_sample,
    parse_sample,
    sample_of,
)
from mailismus.web.pages.day import day_values, last_hour
from mailismus.web.pages.plot import BOTTOM, HEIGHT, LEFT, POINT_W, RIGHT, TOP, WIDTH, Plot, nice_above, plot
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker
from tests.top.samples import NOW, busy

STATE, PATH = "/q/state", "/q/state/history"


def sample(at: float = NOW, came: float | None = 10.0) -> Sample:
    return attrs.evolve(sample_of(compare(busy(1), busy(5))), at=int(at), came=came)


class Run:
    """One run of a recorder."""

    def __init__(self, disk: MemoryDisk, now: float = NOW, directory: str | None = STATE) -> None:
        self.disk, self.clock, self.worker, self.step = disk, Clock(), MemoryWorker(is_prompt=True), 0
        self.clock.rightNow = now
        self.recorder = Recorder(self.take, directory, cast(IDisk, disk), self.worker, self.clock)
        self.recorder.load()

    def take(self) -> Overview:
        self.step += 60
        return attrs.evolve(busy(self.step), now=self.clock.seconds())

    def minutes(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(EVERY_S)


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    for path in ("/q", STATE):
        disk.make_directory(path)
    return disk


def warnings_of(events: Sequence[LogEvent]) -> list[str]:
    return [formatEvent(event) for event in events if event["log_level"].name != "info"]


def test_a_sample_is_of_a_minute() -> None:
    run = Run(new_disk())
    run.recorder.start()
    assert run.recorder.samples == []
    run.minutes(1)
    (found,) = run.recorder.samples
    assert (found.came, found.sent, found.deferred, found.waiting, found.at) == (10.0, 8.0, 1.0, 4310, int(NOW + 60))
    assert found.free_share == pytest.approx(0.4)


def test_a_sample_survives_as_a_line() -> None:
    for one in (sample(), sample(came=None), attrs.evolve(sample(), barrier_s=None, free_share=None)):
        again = parse_sample(format_sample(one))
        assert again is not None
        assert attrs.astuple(again) == pytest.approx(attrs.astuple(one), abs=0.001)


def test_a_newer_version_may_tell_more() -> None:
    assert parse_sample(format_sample(sample()) + b" 7 -") == parse_sample(format_sample(sample()))


WIDE = format_sample(sample()).replace(b" ", b"  ")


@pytest.mark.parametrize("line", [b"", b"1", b"- " * 14, b"x" * 50, WIDE, b"-1 " * 14])
def test_a_line_that_breaks_the_form_is_no_sample(line: bytes) -> None:
    assert parse_sample(line) is None


def test_any_bytes_are_a_sample_or_none() -> None:
    chance = random.Random(7)
    good = format_sample(sample())
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice(b"0123456789 -.x\xff")
        found = parse_sample(bytes(data))
        if found is not None:
            day_values([found], NOW)


def test_what_is_believed_is_the_last_day_in_order() -> None:
    ages = [SPAN_S + 1, SPAN_S - 1, 100, 100, 50, 70, 0, -61]
    assert [NOW - one.at for one in believed([sample(NOW - age) for age in ages], NOW)] == [SPAN_S - 1, 100, 50, 0]


def test_the_history_survives_a_clean_stop_and_is_bounded() -> None:
    disk = new_disk()
    run = Run(disk)
    run.recorder.start()
    run.minutes(KEPT + 100)
    done: list[None] = []
    run.recorder.stop().addCallback(done.append)
    assert done == [None]
    assert run.worker.is_stopped
    assert run.clock.getDelayedCalls() == []
    found = read_state(cast(IDisk, disk), PATH)
    assert found is not None
    assert (found.name, found.format, len(found.lines), found.bad) == (HISTORY, FORMAT, KEPT, 0)
    later = Run(disk, run.clock.seconds() + 3600)
    assert len(later.recorder.samples) == KEPT - 59
    assert len(b"\n".join(found.lines)) < 300_000


def test_it_is_written_every_few_minutes() -> None:
    run = Run(new_disk())
    run.recorder.start()
    run.minutes(3 * WRITE_EVERY - 1)
    assert run.disk.acts.count(("rename", f"{PATH}.new")) == 2


def test_a_file_that_does_not_check_is_told_and_replaced() -> None:
    disk = new_disk()
    for data in (b"what", encode_state("hosts", 1, []), encode_state(HISTORY, FORMAT + 1, [])):
        file = disk.create(PATH)
        file.write_at(0, [data])
        file.close()
        with capturedLogs() as events:
            run = Run(disk)
        assert len(warnings_of(events)) == 1
        assert run.recorder.samples == []
        disk.unlink(PATH)


def test_a_disk_that_is_full_is_told_once() -> None:
    disk = new_disk()
    run = Run(disk)
    run.recorder.start()
    disk.fault = lambda act, path: OSError(errno.ENOSPC, "full", path) if act == "write" else None
    with capturedLogs() as events:
        run.minutes(3 * WRITE_EVERY)
    assert len(warnings_of(events)) == 1
    disk.fault = None
    run.minutes(WRITE_EVERY)
    assert disk.exists(PATH)


def test_a_queue_that_keeps_nothing_has_the_history_in_memory() -> None:
    run = Run(new_disk(), directory=None)
    run.recorder.start()
    run.minutes(10)
    assert len(run.recorder.samples) == 10
    done: list[None] = []
    run.recorder.stop().addCallback(done.append)
    assert done == [None]


def test_a_clock_that_is_set_back_hides_what_is_of_the_future() -> None:
    run = Run(new_disk())
    run.recorder.start()
    run.minutes(5)
    run.clock.rightNow -= 3600
    assert run.recorder.samples == []


def numbers_in(found: Plot) -> list[tuple[float, float]]:
    pairs = [re.findall(r"[ML]([\d.]+) ([\d.]+)", line.path) for line in found.lines]
    return [(float(x), float(y)) for line in pairs for x, y in line]


def test_a_plot_stays_within_its_picture_whatever_the_values() -> None:
    values = [0.0, 1e300, float("inf"), float("nan"), -5.0, None, 3.0]
    points = [(NOW + 60 * number, value) for number, value in enumerate(values)]
    found = plot("x", [("a", "a", points)], NOW, NOW + 300, str)
    assert numbers_in(found)
    for x, y in numbers_in(found):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP <= y <= HEIGHT - BOTTOM
    assert "nan" not in found.lines[0].path


def test_a_gap_breaks_the_line() -> None:
    points = [(NOW, 1.0), (NOW + 60, 1.0), (NOW + 1000, 1.0), (NOW + 1060, None), (NOW + 1120, 1.0)]
    path = plot("x", [("a", "a", points)], NOW, NOW + 1120, str).lines[0].path
    assert path.count("M") == 3
    begin, end = re.findall(r"[ML]([\d.]+)", path)[-2:]
    assert float(end) - float(begin) == POINT_W


LEVELS = [(0, 1), (0.03, 0.05), (1, 1), (1.1, 2), (4310, 5000), (9.9, 10), (float("nan"), 1)]


@pytest.mark.parametrize(("value", "level"), LEVELS)
def test_levels_are_round(value: float, level: float) -> None:
    assert nice_above(value) == pytest.approx(level)


def test_the_pages_of_the_day_have_their_plots() -> None:
    samples = [sample(NOW - 60 * number) for number in range(500, 0, -1)]
    plots = cast(list[Plot], day_values(samples, NOW)["plots"])
    assert [one.title for one in plots][:2] == ["Messages a second", "Attempts that failed, a second"]
    assert not any(one.is_empty for one in plots)
    assert plots[0].lines[0].latest == "10"
    assert plots[-1].lines[0].latest == "40%"
    hour = last_hour(samples, NOW)[0]
    assert hour.lines[0].path.count("L") == 60
    assert len(hour.times) == 4
