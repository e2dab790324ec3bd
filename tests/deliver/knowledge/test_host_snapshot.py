"""The snapshot of hosts: when it is written, what a start makes of it, and what trouble with it costs."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator

import pytest
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock
from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailismus.deliver.knowledge.host_records import MAX_RECORDS, HostRecord, format_line
from mailismus.deliver.knowledge.host_snapshot import STEP, STOP_S, HostsCopy, HostSnapshot, read_snapshot, write_snapshot
from mailismus.deliver.schedule.destdb import Deaths, HostFailure
from mailismus.disk.interface import IDisk
from mailismus.mail.reply import Reply
from mailismus.queue.files.state_file import MAX_BYTES, encode_state
from tests.deliver.harness import World
from tests.deliver.known_hosts import destdb, fail, succeed
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import moments
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import ClockWorker, MemoryWorker
from tests.fsck.worlds import disk_of

STATE, PATH = "/q/state", "/q/state/hosts"
REFUSED = Reply(451, b"4.4.1", b"connection refused")
NO_CONNECTION = HostFailure.NO_CONNECTION


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    for path in ("/q", STATE):
        disk.make_directory(path)
    return disk


class Run:
    """One run of a server, as far as its hosts go."""

    def __init__(
        self, world: World, disk: IDisk, hosts: HostsCopy | None = None, worker: MemoryWorker | None = None
    ) -> None:
        self.world = world
        self.hosts = destdb(Deaths(300.0, 7200.0))
        self.worker = worker or ClockWorker(world.clock)
        copy = hosts if hosts is not None else self.hosts
        self.snapshot = HostSnapshot(copy, STATE, disk, self.worker, world.clock, world.monotonic)

    def start(self) -> Run:
        """Read what there is, then begin."""
        self.snapshot.load()
        self.snapshot.start()
        pass_s(self.world.clock, 1.0)
        return self

    def kill(self) -> None:
        """kill -9."""
        self.world.clock.calls.clear()

    def stop(self) -> None:
        """A clean stop."""
        done: list[None] = []
        self.snapshot.stop().addCallback(done.append)
        pass_s(self.world.clock, 1.0)
        assert done

    def die(self, address: str = "192.0.2.1") -> None:
        """A host dies."""
        fail(self.hosts, address, REFUSED, NO_CONNECTION, self.world.monotonic())

    def dead_for_s(self, address: str = "192.0.2.1") -> float:
        """For how long a host is dead."""
        return max(0.0, self.hosts.find(address, 25).dead_until - self.world.monotonic())


def pass_s(clock: Clock, seconds: float) -> None:
    """Let time pass, in turns."""
    for _ in range(round(seconds / 0.05)):
        clock.advance(0.05)
        for _ in range(4):
            clock.advance(0)


def writes(disk: MemoryDisk) -> int:
    return disk.acts.count(("rename", f"{PATH}.new"))


def lines_of(events: list[LogEvent]) -> list[str]:
    return [formatEvent(event) for event in events]


# ---------------------------------------------------------------------- what survives


@pytest.mark.parametrize("phase_s", [0.0, 0.7, 1.3, 1.95])
def test_a_host_that_died_ten_seconds_before_a_kill_is_left_alone(phase_s: float) -> None:
    world, disk = World(), new_disk()
    first = Run(world, disk).start()
    pass_s(world.clock, 20 + phase_s)
    first.die()
    pass_s(world.clock, 10)
    first.kill()
    pass_s(world.clock, 30)
    second = Run(world, disk).start()
    assert second.dead_for_s() == pytest.approx(300 - 10 - 30 - 1, abs=0.2)
    assert second.dead_for_s("192.0.2.2") == 0
    host = second.hosts.find("192.0.2.1", 25)
    assert (host.reply, host.failures) == (REFUSED, 1)
    assert host.died_at == pytest.approx(world.monotonic() - 41, abs=0.2)


def test_the_next_death_after_a_restart_is_twice_as_long() -> None:
    world, disk = World(), new_disk()
    first = Run(world, disk).start()
    first.die()
    first.stop()
    second = Run(world, disk).start()
    pass_s(world.clock, 300)
    assert second.dead_for_s() == 0
    second.die()
    assert second.dead_for_s() == 600


@pytest.mark.parametrize("how", ["recovered", "flushed"])
def test_what_is_over_is_over_after_a_kill_ten_seconds_later(how: str) -> None:
    world, disk = World(), new_disk()
    first = Run(world, disk).start()
    first.die()
    pass_s(world.clock, 10)
    if how == "flushed":
        first.hosts.forget_deaths()
    else:
        succeed(first.hosts, "192.0.2.1", world.monotonic())
    pass_s(world.clock, 10)
    first.kill()
    assert Run(world, disk).start().hosts.remembered == 0


def test_deaths_that_follow_each_other_are_all_there_ten_seconds_later() -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    for number in range(60):
        run.die(f"192.0.2.{number}")
        pass_s(world.clock, 1)
        found = {record.address for record in read_snapshot(disk, PATH, world.clock.seconds()).records}
        assert found >= {f"192.0.2.{early}" for early in range(number - 8)}
    assert 6 <= writes(disk) <= 12


def test_a_clean_stop_writes_what_changed_and_nothing_else() -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    run.die()
    run.stop()
    assert writes(disk) == 1
    Run(world, disk).start().stop()
    assert writes(disk) == 1
    pass_s(world.clock, 60)
    assert writes(disk) == 1


def test_a_stop_waits_for_a_write_and_writes_what_came_behind_it() -> None:
    world, disk = World(), new_disk()
    worker = ClockWorker(world.clock)
    run = Run(world, disk, worker=worker).start()
    worker.slow_s = 0.5
    run.die()
    while not any(call for call in worker.calls) and run.snapshot._saving is None:
        pass_s(world.clock, 0.05)
    run.die("192.0.2.2")
    done: list[None] = []
    run.snapshot.stop().addCallback(done.append)
    assert not done
    pass_s(world.clock, 1.2)
    assert done
    assert writes(disk) == 2
    assert len(read_snapshot(disk, PATH, world.clock.seconds()).records) == 2


def test_nothing_is_written_while_nothing_changes() -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    pass_s(world.clock, 100)
    assert writes(disk) == 0
    run.die()
    pass_s(world.clock, 100)
    assert writes(disk) == 1


def test_a_queue_that_keeps_nothing_costs_nothing() -> None:
    world, disk = World(), new_disk()
    worker = MemoryWorker()
    snapshot = HostSnapshot(destdb(), None, disk, worker, world.clock, world.monotonic)
    done: list[None] = []
    snapshot.load()
    snapshot.start()
    snapshot.stop().addCallback(done.append)
    assert done
    assert (worker.is_started, worker.calls, disk.acts, world.clock.calls) == (
        False,
        [],
        [("mkdir", "/q"), ("mkdir", STATE)],
        [],
    )


# ---------------------------------------------------------------------- steps, and what is less urgent


class Many:
    """A `HostsCopy` with as many records as there may be."""

    def __init__(self, count: int) -> None:
        self.changes = self.urgent_changes = 0
        self.count = count
        self.steps: dict[int, int] = {}
        self.adopted: list[int] = []
        self.turn = 0

    def records(self, offset_s: float) -> Iterator[HostRecord]:
        for number in range(self.count):
            self.steps[self.turn] = self.steps.get(self.turn, 0) + 1
            yield HostRecord(f"10.0.{number >> 8}.{number & 255}", 25, made_at=1_700_000_000.0 + number / 1000)

    def adopt(self, records: Iterable[HostRecord], now: float, offset_s: float) -> None:
        self.adopted.append(len(list(records)))


def test_no_turn_works_on_more_than_a_step() -> None:
    world, disk, many = World(), new_disk(), Many(MAX_RECORDS)
    call_later = world.clock.callLater

    def in_a_turn(delay: float, act: Callable[..., object], *args: object) -> IDelayedCall:
        def turn() -> None:
            many.turn += 1
            act(*args)

        return call_later(delay, turn)

    world.clock.callLater = in_a_turn  # type: ignore[method-assign, assignment]  # the clock runs in one call what are turns of a reactor
    run = Run(world, disk, many).start()
    many.changes += 1
    pass_s(world.clock, 30)
    assert max(many.steps.values()) == STEP
    assert sum(many.steps.values()) == MAX_RECORDS
    assert writes(disk) == 1
    run.kill()
    Run(world, disk, many).start()
    assert many.adopted == [0, MAX_RECORDS]


def test_all_that_changed_is_there_thirty_seconds_later_and_not_more_often_than_needed() -> None:
    world, disk, many = World(), new_disk(), Many(3)
    Run(world, disk, many).start()
    for second in range(240):
        many.changes += 1
        before = writes(disk)
        pass_s(world.clock, 1)
        assert second < 30 or writes(disk) > 0
        assert writes(disk) - before <= 1
    assert 8 <= writes(disk) <= 11


# ---------------------------------------------------------------------- clocks


def test_the_clock_may_be_set_between_two_runs() -> None:
    for jump_s, left_s in ((-3600.0, 0.0), (600.0, 0.0), (100.0, 199.0), (10 * 7200.0, 0.0)):
        world, disk = World(), new_disk()
        first = Run(world, disk).start()
        first.die()
        first.stop()
        first.kill()
        world.jump(jump_s)
        with capturedLogs() as events:
            second = Run(world, disk).start()
        assert second.dead_for_s() == pytest.approx(left_s, abs=2.5)
        assert lines_of(list(events)) == [
            f"{PATH} does not tell all that was known of hosts: 1 lines are of the future" for _ in range(jump_s < 0)
        ]


def test_a_host_is_dead_no_longer_than_the_settings_of_now_have_it() -> None:
    world, disk = World(), new_disk()
    first = Run(world, disk).start()
    first.die()
    first.stop()
    second = Run(world, disk)
    second.hosts.use_deaths(Deaths(1.0, 4.0))
    second.start()
    assert 2.0 < second.dead_for_s() < 4.0


# ---------------------------------------------------------------------- trouble


def test_a_disk_that_takes_nothing_is_told_once_and_once_when_it_does_again() -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    run.die()
    pass_s(world.clock, 10)
    before = disk.content_of(PATH)
    disk.fault = lambda act, path: OSError(errno.ENOSPC, "No space left on device") if act == "write" else None
    with capturedLogs() as events:
        for number in range(2, 9):
            run.die(f"192.0.2.{number}")
            pass_s(world.clock, 30)
            assert disk.list_directory(STATE) == ["hosts"]
        disk.fault = None
        pass_s(world.clock, 30)
    assert lines_of(list(events)) == [
        f"What is known of hosts can't be written to {PATH}: No space left on device; a restart would try dead hosts again",
        "What is known of hosts is written again",
    ]
    assert disk.list_directory(STATE) == ["hosts"]
    assert disk.content_of(PATH) != before
    assert len(read_snapshot(disk, PATH, world.clock.seconds()).records) == 8


@pytest.mark.parametrize("act", ["create", "write", "rename", "unlink"])
def test_whatever_fails_the_file_is_as_it_was(act: str) -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    run.die()
    pass_s(world.clock, 10)
    before = disk.content_of(PATH)
    disk.fault = lambda found, path: OSError(errno.EIO, "Input/output error") if found == act and STATE in path else None
    run.die("192.0.2.2")
    pass_s(world.clock, 30)
    disk.fault = None
    assert disk.content_of(PATH) == before
    run.stop()
    assert disk.list_directory(STATE) == ["hosts"]
    assert len(read_snapshot(disk, PATH, world.clock.seconds()).records) == 2


def test_a_directory_that_was_removed_is_no_trouble_for_anybody_else() -> None:
    world, disk = World(), new_disk()
    run = Run(world, disk).start()
    disk.remove_tree(STATE)
    with capturedLogs() as events:
        for number in range(5):
            run.die(f"192.0.2.{number}")
            pass_s(world.clock, 30)
        disk.make_directory(STATE)
        pass_s(world.clock, 30)
        run.stop()
        assert Run(world, disk).start().hosts.remembered == 5
    assert len(events) == 2


def test_a_disk_that_hangs_keeps_no_stop_for_long() -> None:
    world, disk, hanging = World(), new_disk(), MemoryWorker()
    run = Run(world, disk, worker=hanging).start()
    for number in range(3):
        run.die(f"192.0.2.{number}")
        pass_s(world.clock, 60)
    assert len(hanging.calls) == 1
    done: list[None] = []
    run.snapshot.stop().addCallback(done.append)
    pass_s(world.clock, STOP_S - 0.5)
    assert not done
    pass_s(world.clock, 1)
    assert done
    assert hanging.is_stopped
    hanging.work()  # it harms nothing any more


def test_a_bug_in_reading_refuses_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("mailismus.deliver.knowledge.host_snapshot.read_snapshot", fail)
    with capturedLogs() as events:
        Run(World(), new_disk()).start()
    assert lines_of(list(events)) == ["What was known of hosts can't be read"]


NOW = 1_700_000_000.0
RECORDS = [HostRecord(f"192.0.2.{number}", 25, NOW - 9 + number, NOW + 300, 1, REFUSED) for number in range(5)]
LINES = [format_line(record) or b"" for record in RECORDS]
FUTURE = format_line(RECORDS[0]._replace(noted_at=NOW + 86400, retry_at=NOW + 90000)) or b""


@pytest.mark.parametrize(
    ("data", "known", "words"),
    [
        (b"", 0, "its first line is not that of a state file"),
        (bytes(4096), 0, "its first line is not that of a state file"),
        (b"\x7fELF" * 5000, 0, "its first line is not that of a state file"),
        (bytes(MAX_BYTES + 1), 0, f"{MAX_BYTES + 1} bytes are too many for a state file"),
        (encode_state("others", 1, LINES), 0, "it holds others"),
        (encode_state("hosts", 2, LINES), 0, "it is of format 2, written by a newer Mailismus; this one reads 1"),
        (encode_state("hosts", 1, [*LINES, b"no host", b""]), 5, "2 lines do not check"),
        (encode_state("hosts", 1, LINES)[:-1], 4, "1 lines do not check"),
        (encode_state("hosts", 1, [*LINES, FUTURE]), 5, "1 lines are of the future"),
        (encode_state("hosts", 1, [b"x", *LINES, FUTURE]), 5, "1 lines do not check, 1 lines are of the future"),
        (encode_state("hosts", 1, LINES * 3), 5, ""),
        (encode_state("hosts", 1, []), 0, ""),
        (encode_state("hosts", 1, LINES), 5, ""),
    ],
)
def test_what_can_not_be_believed_is_told_in_one_line_and_the_rest_counts(data: bytes, known: int, words: str) -> None:
    world, disk = World(), new_disk()
    disk.create(PATH).write_at(0, [data])
    with capturedLogs() as events:
        run = Run(world, disk).start()
    assert run.hosts.remembered == known
    assert lines_of(list(events)) == [f"{PATH} does not tell all that was known of hosts: {words}"] * bool(words)
    run.die("192.0.2.99")
    run.stop()
    assert Run(world, disk).start().hosts.remembered == known + 1


@pytest.mark.parametrize("what", ["a directory", "a disk error"])
def test_what_can_not_be_read_is_told_in_one_line(what: str) -> None:
    world, disk = World(), new_disk()
    if what == "a directory":
        disk.make_directory(PATH)
    else:
        disk.create(PATH).write_at(0, [encode_state("hosts", 1, LINES)])
        disk.fault = lambda act, path: OSError(errno.EIO, "Input/output error") if act == "read" else None
    with capturedLogs() as events:
        Run(world, disk).start()
    words = "it is a directory, not a state file" if what == "a directory" else "Input/output error"
    assert lines_of(list(events)) == [f"{PATH} does not tell all that was known of hosts: {words}"]


def test_lines_of_the_future_take_no_room_from_others() -> None:
    disk = new_disk()
    disk.create(PATH).write_at(0, [encode_state("hosts", 1, [*LINES, FUTURE])])
    assert read_snapshot(disk, PATH, NOW).records == RECORDS


def test_a_file_that_was_cut_anywhere_is_worth_what_is_left_of_it() -> None:
    disk, data = new_disk(), encode_state("hosts", 1, LINES)
    file = disk.create(PATH)
    for size in range(len(data) + 1):
        file.truncate(0)
        file.write_at(0, [data[:size]])
        found = read_snapshot(disk, PATH, NOW)
        assert found.records == RECORDS[: len(found.records)]
        assert bool(found.problem) == (size < len(data))


def test_a_power_cut_at_any_moment_leaves_the_former_file_or_a_part_of_a_new_one() -> None:
    before, after = RECORDS[:2], RECORDS

    def make(disk: TreeDisk) -> None:
        disk.make_directory("/q")
        disk.make_directory(STATE)
        write_snapshot(disk, STATE, before)
        disk.sync_file_system("/q")

    count = 0
    for tree, _ in moments(make, lambda disk: write_snapshot(disk, STATE, after)):
        disk = disk_of(tree)
        found = read_snapshot(disk, PATH, NOW)
        assert found.records in (before, *(after[:size] for size in range(len(after) + 1)))
        write_snapshot(disk, STATE, after)
        assert read_snapshot(disk, PATH, NOW) == (after, "")
        assert disk.list_directory(STATE) == ["hosts"]
        count += 1
    assert count > 10
