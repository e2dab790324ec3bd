"""A start takes and delivers mail before it has read what is there; nothing is taken or reported twice, or lost, by that."""

from __future__ import annotations

import errno

import pytest

import mailismus.queue.providers.chunk.recovery.scan as scan_module
from mailismus.chunks.generator import NameGenerator
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.mess import MessWriters
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import CONTENT, NO_REPLY, Bench, addresses, ids


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> ChunkHarness:
    monkeypatch.setattr(scan_module, "SLICE", 1)
    return ChunkHarness()


def start_without_scan(harness: ChunkHarness, bench: Bench) -> ChunkQueue:
    """A kill and a start whose scan has not begun."""
    harness.clock.calls.clear()
    harness.disk.kill()
    harness.waits_for_scan = False
    harness.open()
    assert harness.queue is not None
    bench.queue = harness.queue
    return harness.queue


def scan_some(harness: ChunkHarness, calls: int) -> None:
    """So many steps of the clock: a slice takes a few."""
    for _ in range(calls):
        harness.clock.advance(0.0001)


def preprocess(harness: ChunkHarness) -> None:
    assert harness.queue is not None
    harness.queue.parts.upkeep.run()
    harness.settle_down()


def test_new_mail_is_delivered_before_the_old_one_is_read(harness: ChunkHarness, bench: Bench) -> None:
    old = [bench.put() for _ in range(40)]
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    fresh = bench.put()
    taken = bench.take_ids()
    assert QueueId(fresh, 1) in taken
    assert not queue.parts.scanning.is_over, "the scan is still at work"
    assert bench.read(fresh) == CONTENT
    bench.remove([QueueId(fresh, 1)])
    harness.wait(queue.parts.scanning.wait())
    taken = [one for one in taken if one.spool_id != fresh] + bench.take_ids()
    assert sorted(one.spool_id for one in taken) == old
    assert bench.take() == []


def test_the_first_old_ones_are_delivered_early(harness: ChunkHarness, bench: Bench) -> None:
    for _ in range(40):
        bench.put()
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    harness.wait(queue.ready(Area.INCOMING))
    assert bench.take()
    assert not queue.parts.scanning.is_over


@pytest.mark.parametrize("pause", [0, 1, 3, 7, 15, 31, 60, 90, 140])
@pytest.mark.parametrize("is_preprocessed", [False, True])
def test_numbers_that_come_back_while_it_reads(
    harness: ChunkHarness, bench: Bench, pause: int, *, is_preprocessed: bool
) -> None:
    """Messages come, go, and give their numbers to others, at every moment of the scan."""
    old = [bench.put() for _ in range(12)]
    if is_preprocessed:
        preprocess(harness)
    queue = start_without_scan(harness, bench)
    scan_some(harness, pause)
    delivered: list[QueueId] = []
    put: list[SpoolId] = []
    for turn in range(30):
        put += [bench.put(), bench.put(addresses(2))]
        some = bench.take_ids(limit=4)
        delivered += some
        bench.commit((), [Settlement(one, None) for one in some])
        if turn % 5 == 0:
            preprocess(harness)
    harness.wait(queue.parts.scanning.wait())
    while some := bench.take_ids():
        delivered += some
        bench.remove(some)
    wanted = [QueueId(one, 1) for one in old + put] + [QueueId(one, 2) for one in put[1::2]]
    assert sorted(delivered) == sorted(wanted)
    harness.settle_down()
    assert bench.entry_count() == 0
    left = [path for path in harness.disk.names if path.count("/") > 2 and path.split("/")[2] in ("mess", "todo", "info")]
    assert left == []


def cut_report(harness: ChunkHarness, bench: Bench, *, is_durable: bool = True) -> tuple[SpoolId, list[QueueId]]:
    """Two of three bounces of one message are reported, and the disk fails between the link of the report and the lines of
    those bounces; `is_durable`: the link is synced. Returns the report's id, and the bounces."""
    bench.put(addresses(3))
    preprocess(harness)
    taken = bench.take_ids()
    bench.commit((), [Settlement(one, Area.BOUNCES, bench.now(), 1, NO_REPLY) for one in taken])
    harness.settle_down()
    bench.take_ids(Area.BOUNCES)
    report = bench.submission([b"a@b.example"])
    is_linked: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if act == "link" and "/todo/" in path:
            is_linked.append(path)
            return None
        fails = (act == "write" and "/bounce" in path) or not is_durable
        return OSError(errno.EIO, "EIO") if is_linked and fails else None

    harness.disk.fault = fault
    bench.queue.commit([report], [Settlement(one, None) for one in taken[:2]])
    for _ in range(60):
        harness.clock.advance(0.001)
    assert is_linked
    harness.disk.fault = None
    return report.draft.spool_id, taken


def test_a_report_and_its_bounces_over_a_kill(harness: ChunkHarness, bench: Bench) -> None:
    """The link of a report is the end of its bounces, though their own lines do not say so yet. None of them is taken again,
    and the report comes when that is durable."""
    report, taken = cut_report(harness, bench)
    queue = start_without_scan(harness, bench)
    seen: list[QueueId] = []
    bounces: list[QueueId] = []
    for _ in range(400):
        harness.clock.advance(0.0001)
        seen += bench.take_ids()
        bounces += bench.take_ids(Area.BOUNCES)
    assert queue.parts.scanning.is_over
    assert [one.spool_id for one in seen] == [report]
    assert bounces == [taken[2]]


@pytest.fixture
def each_file_is_synced(harness: ChunkHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier makes durable what it is over, and nothing else."""
    monkeypatch.setattr(harness.disk, "open_file_system", lambda paths: None)


@pytest.mark.usefixtures("each_file_is_synced")
def test_reported_bounces_do_not_come_back_behind_their_report(harness: ChunkHarness, bench: Bench) -> None:
    """The envelope that ended them goes when the report is delivered: before that, their own lines are durable."""
    report, taken = cut_report(harness, bench)
    queue = start_without_scan(harness, bench)
    harness.wait(queue.parts.scanning.wait())
    assert [one.spool_id for one in bench.take_ids()] == [report]
    bench.remove([QueueId(report, 1)])
    harness.settle_down()

    harness.waits_for_scan = True
    bench.queue = harness.crash(queue)

    assert bench.take_ids() == []
    assert bench.take_ids(Area.BOUNCES) == [taken[2]]


def test_a_report_that_a_kill_left_is_durable_before_its_bounces_are_done(harness: ChunkHarness, bench: Bench) -> None:
    report, taken = cut_report(harness, bench, is_durable=False)
    queue = start_without_scan(harness, bench)
    harness.wait(queue.parts.scanning.wait())

    harness.waits_for_scan = True
    bench.queue = harness.crash(queue)

    assert [one.spool_id for one in bench.take_ids()] == [report]
    assert bench.take_ids(Area.BOUNCES) == [taken[2]]


@pytest.mark.usefixtures("each_file_is_synced")
def test_what_a_crash_left_beside_an_envelope_does_not_outlive_its_message(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    harness.clock.calls.clear()
    harness.disk.kill()
    (number,) = (path.rpartition("/")[2] for path in harness.disk.names if path.startswith("/q/todo/"))
    harness.disk.create(f"/q/local/{int(number) % SPLIT}/{number}").close()
    queue = start_without_scan(harness, bench)
    harness.wait(queue.parts.scanning.wait())
    bench.remove(bench.take_ids())
    harness.settle_down()

    harness.clock.calls.clear()
    harness.disk.power_cut()

    assert [path for path in harness.disk.names if path.startswith("/q/local/")] == []


def test_what_another_writer_commits_meanwhile_is_left_alone(harness: ChunkHarness, bench: Bench) -> None:
    """Its content and envelope were there when names were read; its lock is free, for it has committed."""
    bench.put()
    harness.clock.calls.clear()
    harness.disk.kill()
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    writer = MessWriters(directories, NameGenerator(lambda: 7), harness.now).begin()
    writer.append((CONTENT,))
    writer.finish()
    number = str(writer.number)
    directories.of("intd").create(number).close()
    committed: list[str] = []

    def commit_now(act: str, path: str) -> OSError | None:
        if act == "open" and path.endswith(f"/{number}") and not committed:
            committed.append(path)
            directories.of("intd").link(number, directories.of("todo"), number)
            writer.keep()
        return None

    queue = start_without_scan(harness, bench)
    harness.disk.fault = commit_now
    harness.wait(queue.parts.scanning.wait())
    harness.disk.fault = None
    assert committed
    assert f"/q/todo/{number}" in harness.disk.names
    assert f"/q/mess/{writer.number % SPLIT}/{number}" in harness.disk.names


def test_what_can_not_be_listed_is_a_gap_and_is_tried_again(harness: ChunkHarness, bench: Bench) -> None:
    spool_ids = [bench.put() for _ in range(5)]
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    harness.disk.fault = lambda act, path: OSError(errno.EIO, "EIO") if act == "list" and "/mess" in path else None
    for _ in range(100):
        harness.clock.advance(0.001)
    assert not queue.parts.scanning.is_over
    summary = harness.wait(queue.summary())
    assert not summary.exact
    assert "can't be read" in summary.gaps[0].reason
    harness.disk.fault = None
    harness.advance(3)
    harness.settle_down()
    assert sorted(one.spool_id for one in bench.take_ids()) == spool_ids
    assert bench.summary().exact


def test_a_close_in_the_middle_of_it_loses_nothing(harness: ChunkHarness, bench: Bench) -> None:
    spool_ids = [bench.put() for _ in range(20)]
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    scan_some(harness, 20)
    assert not queue.parts.scanning.is_over
    harness.waits_for_scan = True
    bench.queue = harness.restart(queue)
    assert sorted(one.spool_id for one in ids(bench.take())) == spool_ids


def test_ids_that_were_lost_are_not_given_again(harness: ChunkHarness, bench: Bench) -> None:
    old = bench.put()
    harness.clock.calls.clear()
    harness.disk.kill()
    for path in [path for path in harness.disk.names if path.startswith("/q/ids/")]:
        harness.disk.unlink(path)
    bench.queue = harness.open()
    assert bench.put() >> 32 > old >> 32
