"""Barriers that fail, and what a later start believes: the stories of the model (`python -m tests.durability.model`)."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench
from tests.fakes.worker import ACT_S


def running() -> tuple[ClusteredHarness, Bench]:
    harness = ClusteredHarness()
    bench = Bench(harness, harness.make())
    harness.settle_down()
    return harness, bench


def queue_of(bench: Bench) -> ClusteredQueue:
    assert isinstance(bench.queue, ClusteredQueue)
    return bench.queue


def fail_the_next_barrier(harness: ClusteredHarness) -> None:
    left = [1]

    def fault(act: str, path: str) -> OSError | None:
        if act == "sync" and "journal" in path and left[0]:
            left[0] -= 1
            return OSError(5, "injected")
        return None

    harness.disk.fault = fault


def seal(harness: ClusteredHarness, bench: Bench) -> None:
    """A checkpoint whose record waits for its barrier."""
    checkpoints = queue_of(bench).checkpoints
    checkpoints.run()
    for _ in range(400):
        if checkpoints.pending is not None and checkpoints.pending.is_sealed:
            return
        harness.clock.advance(ACT_S)
    raise AssertionError("never sealed")


def stop_in_the_next_checkpoint(harness: ClusteredHarness, bench: Bench) -> None:
    """The machine loses power when its files are written and its barrier has begun."""

    class Stop(Exception):
        pass

    def fault(act: str, path: str) -> OSError | None:
        if act == "sync file system":
            harness.disk.fault = None
            raise Stop
        return None

    harness.disk.fault = fault
    # Names go before bytes come, as a file system may have it.
    unlink = harness.disk.unlink

    def unlink_durably(path: str) -> None:
        unlink(path)
        harness.disk.durable_names.pop(path, None)

    harness.disk.unlink = unlink_durably  # type: ignore[method-assign]  # this disk loses names at once
    queue_of(bench).checkpoints.run()
    harness.settle_down()
    assert harness.disk.fault is None


def entries(bench: Bench) -> list[QueueId]:
    return [QueueId(message.spool_id, entry.number) for message, entry in bench.search()]


def test_a_retry_that_named_a_place_of_a_failed_checkpoint_keeps_its_content() -> None:
    harness, bench = running()
    spool_id = bench.put(content=b"still here")
    seal(harness, bench)
    (queue_id,) = bench.take_ids()
    fail_the_next_barrier(harness)
    bench.defer([queue_id], bench.now())
    harness.settle_down()
    stop_in_the_next_checkpoint(harness, bench)
    again = Bench(harness, harness.crash(queue_of(bench)))
    assert entries(again) == [queue_id]
    assert again.read(spool_id) == b"still here"


def test_a_record_that_failed_is_denied_before_its_files_go() -> None:
    harness, bench = running()
    stays = bench.put(content=b"still here")
    bench.put()
    harness.clock.calls.clear()
    harness.disk.kill()
    bench = Bench(harness, harness.open())  # the second message lives in the second segment, the first in the first
    harness.settle_down()
    bench.remove([queue_id for queue_id in bench.take_ids() if queue_id.spool_id != stays])
    seal(harness, bench)
    fail_the_next_barrier(harness)
    harness.settle_down()
    assert queue_of(bench).checkpoints.counts.abandoned == 1
    harness.clock.advance(4)
    stop_in_the_next_checkpoint(harness, bench)
    harness.clock.calls.clear()
    harness.disk.kill()  # what the failed barrier left is in the page cache
    again = Bench(harness, harness.open())
    assert entries(again) == [QueueId(stays, 1)]
    assert again.read(stays) == b"still here"


def test_a_close_beside_a_failing_barrier_leaves_nothing_twice() -> None:
    harness, bench = running()
    spool_id = bench.put()
    fail_the_next_barrier(harness)
    again = Bench(harness, harness.restart(bench.queue))
    assert entries(again) == [QueueId(spool_id, 1)]
    assert again.take_ids(Area.INCOMING) == [QueueId(spool_id, 1)]


def test_a_close_whose_own_checkpoint_fails_waits_until_what_was_refused_with_it_is_denied() -> None:
    harness, bench = running()
    spool_id = bench.put()
    submission = bench.submission()
    queue = queue_of(bench)
    closed: list[None] = []
    refused: list[object] = []
    say = queue.checkpoints.sealing._append_record

    def say_in_one_batch(*args: Any) -> None:
        queue.commit([submission], ()).addErrback(refused.append)
        say(*args)

    fail_the_next_barrier(harness)
    with patch.object(queue.checkpoints.sealing, "_append_record", say_in_one_batch):
        queue.close().addCallback(closed.append)
        while not closed:
            harness.clock.advance(ACT_S)
    assert refused
    harness.clock.calls.clear()
    assert entries(Bench(harness, harness.open())) == [QueueId(spool_id, 1)]
