"""Batches and their barriers: what is synced, what a failure costs, and that deliveries are noted before all else."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest

from mailismus.disk.interface import IFileSystem
from mailismus.errors import StorageError
from mailismus.queue.interface import Area, Settlement
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import NO_REPLY, Bench
from tests.durability.faults.disk import FaultyDisk
from tests.fakes.disk import MemoryDisk

MANY = 20
"""Messages whose files are more than are synced each by itself."""
WHOLE = "sync file system"


@pytest.fixture
def acts(harness: ChunkHarness, bench: Bench) -> list[tuple[str, str]]:
    """What is done to the disk from now on."""
    found: list[tuple[str, str]] = []
    harness.disk.fault = lambda act, path: found.append((act, path))
    return found


def syncs(acts: Sequence[tuple[str, str]]) -> list[str]:
    return [act for act, _ in acts if act.startswith("sync")]


def test_the_files_of_few_messages_are_synced_each(bench: Bench, acts: list[tuple[str, str]]) -> None:
    bench.put()
    assert syncs(acts) == ["sync", "sync", "sync directory", "sync directory", "sync directory"]


def test_the_files_of_many_messages_share_one_sync(bench: Bench, acts: list[tuple[str, str]]) -> None:
    bench.commit([bench.submission() for _ in range(MANY)])
    assert syncs(acts) == [WHOLE, "sync directory"]


def _no_file_system(disk: MemoryDisk, paths: Sequence[str]) -> IFileSystem | None:
    return None


def test_a_file_system_that_may_keep_failures_back_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryDisk, "open_file_system", _no_file_system)
    harness = ChunkHarness()
    bench = Bench(harness, harness.make())
    found: list[tuple[str, str]] = []
    harness.disk.fault = lambda act, path: found.append((act, path))
    bench.commit([bench.submission() for _ in range(MANY)])
    assert syncs(found).count("sync") == 2 * MANY
    assert WHOLE not in syncs(found)


def test_one_failure_fails_all_of_a_batch_and_files_are_synced_each_behind_it(harness: ChunkHarness, bench: Bench) -> None:
    acts: list[tuple[str, str]] = []
    failing = [True]

    def fault(act: str, path: str) -> OSError | None:
        acts.append((act, path))
        return OSError(5, "Input/output error") if act == WHOLE and failing else None

    harness.disk.fault = fault
    one, other = ([bench.submission() for _ in range(MANY)] for _ in range(2))
    first, second = bench.queue.commit(one, ()), bench.queue.commit(other, ())
    for commit in (first, second):
        with pytest.raises(StorageError):
            bench.wait(commit)
    assert syncs(acts).count(WHOLE) == 1
    failing.clear()
    harness.settle_down()
    assert bench.entry_count() == 0
    acts.clear()
    taken = [bench.submission() for _ in range(MANY)]
    bench.commit(taken)
    assert WHOLE not in syncs(acts)
    assert syncs(acts).count("sync") == 2 * MANY
    harness.disk.fault = None
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == MANY


def test_a_failure_that_another_program_was_told_of_fails_the_batch_that_was_being_written(
    harness: ChunkHarness, bench: Bench
) -> None:
    def fault(act: str, path: str) -> None:
        if act == "write" and path.startswith("/q/intd"):
            for whole in harness.disk.wholes:
                whole.fail_write_back(OSError(5, "Input/output error"))

    harness.disk.fault = fault
    with pytest.raises(StorageError):
        bench.commit([bench.submission() for _ in range(MANY)])


def test_what_was_delivered_counts_though_new_mail_fails(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()

    def fault(act: str, path: str) -> OSError | None:
        return OSError(28, "No space left on device") if act == "link" and path.startswith("/q/todo") else None

    harness.disk.fault = fault
    settled, new = bench.queue.commit((), [Settlement(queue_id, None)]), bench.queue.commit([bench.submission()], ())
    bench.wait(settled)
    with contextlib.suppress(StorageError):
        bench.wait(new)
    harness.disk.fault = None
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 0


def test_what_was_delivered_does_not_count_before_its_barrier(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()
    failures = [OSError(5, "Input/output error")]

    def fault(act: str, path: str) -> OSError | None:
        return failures.pop() if failures and (act, path) == ("sync directory", "/q/todo") else None

    harness.disk.fault = fault
    settled = bench.queue.commit((), [Settlement(queue_id, None)])
    results: list[object] = []
    settled.addCallback(results.append)
    while failures:
        harness.advance(0.001)
    assert results == []
    bench.wait(settled)
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 0


def test_nothing_stays_of_a_message_that_could_not_be_preprocessed(harness: ChunkHarness, bench: Bench) -> None:
    bench.put([b"one@x.example"])
    (queue_id,) = bench.take_ids()
    failing = {"sync directory", "unlink"}

    def fault(act: str, path: str) -> OSError | None:
        if act in failing and path.startswith("/q/remote/"):
            failing.remove(act)
            return OSError(5, "Input/output error")
        return None

    harness.disk.fault = fault
    assert harness.queue is not None
    harness.queue.parts.upkeep.run()
    for _ in range(100):
        if failing:
            harness.advance(0.001)
    assert not failing
    settled = bench.queue.commit((), [Settlement(queue_id, None)])
    assert any(path.startswith("/q/remote/") for path in harness.disk.names)
    bench.wait(settled)
    harness.settle_down()
    places = ("/q/mess", "/q/intd", "/q/todo", "/q/info", "/q/local", "/q/remote", "/q/bounce")
    assert [path for path in harness.disk.names if path.startswith(places)] == []


def test_a_line_that_a_note_stands_for_does_not_come_back_behind_the_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryDisk, "open_file_system", _no_file_system)
    harness = ChunkHarness(preprocesses=True)
    bench = Bench(harness, harness.make())
    bench.put([b"one@x.example"])
    harness.settle_down()
    (queue_id,) = bench.take_ids()
    bench.commit((), [Settlement(queue_id, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
    settled = bench.queue.commit((), [Settlement(queue_id, None)])
    while not settled.called:
        harness.advance(0.0005)
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 0


def test_what_an_attempt_that_failed_has_left_is_made_anew(harness: ChunkHarness, bench: Bench) -> None:
    bench.put([b"one@x.example"])
    (todo,) = (path for path in harness.disk.names if path.startswith("/q/todo/"))
    number = int(todo.rpartition("/")[2])
    left = f"/q/remote/{number % SPLIT}/{number}"
    harness.disk.create(left).close()
    assert harness.queue is not None
    harness.queue.parts.upkeep.run()
    for _ in range(200):
        harness.advance(0.001)
    assert todo not in harness.disk.names
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 1


def test_an_envelope_of_which_a_sync_failed_is_not_synced_again() -> None:
    harness = ChunkHarness()
    disk = FaultyDisk()
    harness.disk = disk
    bench = Bench(harness, harness.make())
    bench.put([b"one@x.example", b"two@x.example"])
    first, _ = bench.take_ids()
    failed: list[str] = []

    def fails_once(act: str, path: str) -> bool:
        is_first = act == "sync" and path.startswith("/q/todo/") and not failed
        failed.extend([path] * is_first)
        return is_first

    disk.is_ill = fails_once
    settled = bench.queue.commit((), [Settlement(first, None)])
    while not failed:
        harness.advance(0.001)
    bench.wait(settled)
    assert disk.synced_again == []
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 1
