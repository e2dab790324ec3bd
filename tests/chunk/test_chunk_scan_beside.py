"""The scan of a start and messages of other programs: each is taken once, by the scan or by the look, at whatever moment it
comes, and the numbers that it leaves come back meanwhile."""

from __future__ import annotations

import os

import pytest

import mailismus.queue.providers.chunk.control.ledger as ledger_module
import mailismus.queue.providers.chunk.recovery.scan as scan_module
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.beside import ChunkBesideWriter
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.recovery.abandoned import remove_unfinished
from mailismus.queue.providers.chunk.recovery.scan import ChunkScan
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.chunk.test_chunk_beside import Ends, begin, open_other, put
from tests.chunk.test_chunk_scan import cut_report, preprocess, scan_some, start_without_scan
from tests.chunk.test_chunk_start import files_of
from tests.contracts.bench import Bench, addresses


@pytest.fixture(autouse=True)
def the_owner_is_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> ChunkHarness:
    monkeypatch.setattr(scan_module, "SLICE", 1)
    return ChunkHarness()


def deliver(bench: Bench) -> list[QueueId]:
    """Take all that can be taken, and have it over."""
    taken = bench.take_ids()
    bench.remove(taken)
    return taken


def look(harness: ChunkHarness, queue: ChunkQueue) -> None:
    queue.parts.adoption.look()
    scan_some(harness, 5)


def scan_until_todo_is_read(harness: ChunkHarness, queue: ChunkQueue) -> None:
    for _ in range(1000):
        if queue.parts.scanning.has_read_todo:
            break
        scan_some(harness, 1)
    assert queue.parts.scanning.has_read_todo
    assert not queue.parts.scanning.is_over


def test_a_message_of_a_program_waits_for_the_scan_of_todo_alone(harness: ChunkHarness, bench: Bench) -> None:
    old = [bench.put() for _ in range(40)]
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    writer = open_other(harness)
    scan_until_todo_is_read(harness, queue)
    spool_id = put(writer)
    look(harness, queue)
    assert queue.parts.adoption.adopted == 1
    assert not queue.parts.scanning.is_over
    assert all(known.number in queue.parts.scanning.born for known in queue.parts.ledger.index.messages.values())
    delivered = bench.take_ids()
    assert QueueId(spool_id, 1) in delivered
    harness.wait(queue.parts.scanning.wait())
    delivered += bench.take_ids()
    assert sorted(one.spool_id for one in delivered) == sorted([*old, spool_id])
    assert queue.parts.adoption.adopted == 1
    writer.close()


def test_what_a_program_put_before_the_start_is_the_scans(harness: ChunkHarness, bench: Bench) -> None:
    writer = open_other(harness)
    bench.wait(bench.queue.close())
    spool_ids = [put(writer) for _ in range(5)]
    writer.close()
    queue = start_without_scan(harness, bench)
    for _ in range(60):
        look(harness, queue)
    assert queue.parts.scanning.is_over
    assert queue.parts.adoption.adopted == 0
    assert sorted(one.spool_id for one in deliver(bench)) == sorted(spool_ids)
    harness.settle_down()
    assert files_of(harness.disk) == []


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_a_living_writer_holds_is_left_to_the_look(harness: ChunkHarness, bench: Bench, *, is_refused: bool) -> None:
    """Its name is in todo while the scan reads that, and not durable; it becomes so later, or goes."""
    bench.put()
    preprocess(harness)
    queue = start_without_scan(harness, bench)
    writer = open_other(harness)
    draft, ends = begin(writer), Ends()
    draft.writer.finish()
    seen: list[int] = []

    def at_barrier(act: str, path: str) -> OSError | None:
        if act == "sync directory" and path == "/q/todo" and not seen:
            seen.append(1)
            for _ in range(60):
                look(harness, queue)
            assert queue.parts.scanning.is_over
            assert queue.parts.adoption.adopted == 0
            assert queue.parts.ledger.message_count == 1, "the old one"
            return OSError(5, "Input/output error") if is_refused else None
        return None

    harness.disk.fault = at_barrier
    writer.accept(draft, Envelope(b"joe@b.example", (b"sue@a.example",)), ends, None)
    harness.disk.fault = None
    assert seen
    assert ends.durable == (0 if is_refused else 1)
    look(harness, queue)
    delivered = [one.spool_id for one in deliver(bench)]
    assert delivered.count(draft.spool_id) == ends.durable
    assert len(delivered) == 1 + ends.durable
    assert queue.parts.ledger.message_count == 0
    harness.settle_down()
    assert files_of(harness.disk) == []
    writer.close()


def test_what_the_scan_reads_again_is_its_own_until_then(harness: ChunkHarness, bench: Bench) -> None:
    spool_ids = [bench.put() for _ in range(3)]
    queue = start_without_scan(harness, bench)
    names = sorted(path for path in harness.disk.names if path.startswith("/q/todo/"))
    harness.disk.fault = lambda act, path: OSError(5, "EIO") if act == "describe" and path == names[1] else None
    for _ in range(1000):
        if queue.parts.scanning.has_read_todo:
            break
        scan_some(harness, 1)
    harness.disk.fault = lambda act, path: OSError(5, "EIO") if act == "list" and "/mess" in path else None  # it waits
    assert queue.parts.scanning.left_in_todo == {int(names[1].rpartition("/")[2])}
    for _ in range(60):
        look(harness, queue)
    assert not queue.parts.scanning.is_over
    assert queue.parts.ledger.message_count == 2
    harness.disk.fault = None
    harness.advance(3)
    harness.settle_down()
    harness.wait(queue.parts.scanning.wait())
    assert queue.parts.adoption.adopted == 0
    assert queue.parts.scanning.found == 3
    assert queue.parts.scanning.left_in_todo == set()
    assert sorted(one.spool_id for one in deliver(bench)) == spool_ids


def test_what_is_committed_after_todo_was_listed_is_not_the_scans(harness: ChunkHarness, bench: Bench) -> None:
    """Its number failed as one in S2, and is read again when its message is in todo."""
    bench.wait(bench.queue.close())
    writer = open_other(harness)
    draft, ends = begin(writer), Ends()
    path = f"/q/mess/{draft.writer.number % SPLIT}/{draft.writer.number}"
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    scan = ChunkScan(directories, BornNumbers())
    harness.disk.fault = lambda act, at: OSError(5, "EIO") if act == "open" and at == path else None
    while (found := scan.next()) is not None and found.error is None:
        pass
    assert found is not None
    harness.disk.fault = None
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), ends, None)
    assert ends.durable == 1
    while (found := scan.next()) is not None:
        assert (found.facts, found.spoiled, found.error) == ([], [], None)
    directories.close()
    writer.close()
    assert len(Bench(harness, harness.make()).take()) == 1


def test_a_number_that_is_born_is_not_removed(harness: ChunkHarness, bench: Bench) -> None:
    """It was in S2 when its name was read; it may have been adopted and delivered since."""
    writer = open_other(harness)
    draft = begin(writer)
    draft.writer.file.close()  # as the end of its process does
    directories, born = ChunkDirectories(harness.disk, "/q", SPLIT), BornNumbers()
    born.add(draft.writer.number)
    assert not remove_unfinished(directories, draft.writer.number, born)
    assert remove_unfinished(directories, draft.writer.number, BornNumbers())
    directories.close()
    writer.close()


def _old_queue(harness: ChunkHarness, bench: Bench) -> tuple[list[SpoolId], ChunkQueue]:
    """A queue with messages in S5 and S4, and what a crash left in S2 and S3, before the scan of a start."""
    old = [bench.put() for _ in range(4)]
    preprocess(harness)
    old += [bench.put(addresses(1)) for _ in range(3)]
    writer = open_other(harness)
    drafts = [begin(writer) for _ in range(2)]
    assert harness.opened is not None
    harness.opened.directories.of("intd").create(str(drafts[0].writer.number)).close()
    queue = start_without_scan(harness, bench)
    return old, queue


@pytest.mark.parametrize("size", [1, 4])
def test_a_program_puts_a_message_at_every_moment_of_the_scan(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for within a step of the scan, delivered, and its number is given to messages of both; so are the numbers
    of what the scan has handed out."""
    monkeypatch.setattr(scan_module, "SLICE", size)
    moment = 0
    while _put_at(moment):
        moment += 1
    assert moment > 60, "acts of a scan"


def _put_at(moment: int) -> bool:
    """Return whether the scan has so many acts."""
    harness = ChunkHarness()
    bench = Bench(harness, harness.make())
    old, queue = _old_queue(harness, bench)
    writer = open_other(harness)
    wanted, delivered = list(old), list[QueueId]()
    acts, is_busy = 0, False

    def at_act(act: str, path: str) -> OSError | None:
        nonlocal acts, is_busy
        if is_busy or queue.parts.scanning.is_idle:
            return None
        acts += 1
        is_held = act == "unlink" and path.startswith(("/q/intd/", "/q/mess/"))  # then the look waits for the scan
        if acts > moment and not is_held and len(wanted) == len(old):
            is_busy = True
            _come_and_go(harness, bench, writer, wanted, delivered)
            is_busy = False
        return None

    harness.disk.fault = at_act
    harness.wait(queue.parts.scanning.wait())
    harness.disk.fault = None
    wanted.append(put(writer))
    for _ in range(3):
        harness.advance(1)
        harness.settle_down()
        delivered += deliver(bench)
    assert sorted(one.spool_id for one in delivered) == sorted(wanted), moment
    harness.advance(12)
    harness.settle_down()
    assert files_of(harness.disk) == [], moment
    assert queue.parts.work.bug is None
    writer.close()
    bench.wait(queue.close())
    return acts > moment


def _come_and_go(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter, wanted: list[SpoolId], delivered: list[QueueId]
) -> None:
    assert harness.queue is not None
    for turn in range(3):
        wanted.append(put(writer))
        look(harness, harness.queue)
        if turn == 1:
            preprocess(harness)
        delivered += deliver(bench)
        harness.settle_down()
        wanted.append(bench.put())
        wanted.append(put(writer))
        look(harness, harness.queue)


def test_a_report_is_never_taken_by_a_look(harness: ChunkHarness, bench: Bench) -> None:
    """Its bounces are marked by the scan alone, and it comes when that is durable."""
    report, taken = cut_report(harness, bench)
    queue = start_without_scan(harness, bench)
    reports: list[QueueId] = []
    bounces: list[QueueId] = []
    for _ in range(100):
        look(harness, queue)
        if queue.parts.scanning.has_read_todo and not queue.parts.scanning.is_over and not reports:
            assert len(queue.parts.scanning.left_in_todo) <= 1
        reports += bench.take_ids()
        bounces += bench.take_ids(Area.BOUNCES)
    assert queue.parts.scanning.is_over
    assert queue.parts.scanning.left_in_todo == set()
    assert queue.parts.adoption.adopted == 0
    assert [one.spool_id for one in reports] == [report]
    assert bounces == [taken[2]]


def test_new_messages_at_rest_are_not_taken_for_those_of_others(
    harness: ChunkHarness, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MOST_WAITING", 2)
    spool_ids = [bench.put() for _ in range(6)]
    assert harness.queue is not None
    assert len(harness.queue.parts.ledger.resting) > 0
    assert len(harness.queue.parts.ledger.new_numbers) == 6
    look(harness, harness.queue)
    assert harness.queue.parts.adoption.adopted == 0
    queue = start_without_scan(harness, bench)
    harness.wait(queue.parts.scanning.wait())
    assert len(queue.parts.ledger.new_numbers) == 6
    look(harness, queue)
    writer = open_other(harness)
    spool_ids += [put(writer) for _ in range(4)]
    look(harness, queue)
    assert queue.parts.adoption.adopted == 4
    delivered: list[SpoolId] = []
    for _ in range(20):
        delivered += [one.spool_id for one in deliver(bench)]
    assert sorted(delivered) == sorted(spool_ids)
    assert queue.parts.ledger.new_numbers == set()
    harness.settle_down()
    assert files_of(harness.disk) == []
    writer.close()


@pytest.mark.parametrize("home", ["mess", "local"])
def test_what_no_program_makes_is_not_adopted(harness: ChunkHarness, bench: Bench, home: str) -> None:
    """An envelope without its content; one beside a file that would be read as its recipients later."""
    writer = open_other(harness)
    draft = begin(writer)
    number = draft.writer.number
    path = f"/q/{home}/{number % SPLIT}/{number}"
    if home == "local":
        harness.disk.create(path).close()
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), Ends(), None)
    if home == "mess":
        harness.disk.unlink(path)
    assert harness.queue is not None
    for _ in range(3):
        look(harness, harness.queue)
    assert harness.queue.parts.adoption.adopted == 0
    assert bench.take() == []
    assert f"/q/todo/{number}" in harness.disk.names
    writer.close()
