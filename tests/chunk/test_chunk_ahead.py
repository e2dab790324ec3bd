"""What is delivered while a batch is under way: noted at once, counted with the next batch."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import Bench

SLOW_S = 0.5


def begin_slow_batch(harness: ChunkHarness, bench: Bench, *settlements: Settlement) -> None:
    """New mail, and what is settled with it: nothing of it is written for `SLOW_S`."""
    harness.batches.slow_s = SLOW_S
    for settlement in settlements:
        bench.queue.commit((), [settlement])
    bench.queue.commit([bench.submission()], ())
    for _ in range(5):
        harness.advance(0.005)
    harness.batches.slow_s = 0.0


def settle(harness: ChunkHarness, bench: Bench, queue_id: QueueId) -> Deferred[object]:
    """It is delivered; a moment goes by."""
    settled: Deferred[object] = bench.queue.commit((), [Settlement(queue_id, None)])  # type: ignore[assignment]  # no matter
    for _ in range(3):
        harness.advance(0.001)
    return settled


def todo(harness: ChunkHarness) -> list[str]:
    return [path for path in harness.disk.names if path.startswith("/q/todo/")]


def killed(harness: ChunkHarness, bench: Bench) -> int:
    """How many entries a start finds when the server is killed now."""
    harness.clock.calls.clear()
    harness.disk.kill()
    bench.queue = harness.open()
    return bench.entry_count()


def test_a_kill_does_not_repeat_it_and_it_counts_not_before_its_batch(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()
    begin_slow_batch(harness, bench)
    assert len(todo(harness)) == 1
    settled = settle(harness, bench, queue_id)
    assert not todo(harness)
    assert not settled.called
    assert killed(harness, bench) == 0


def test_a_power_cut_repeats_it_and_it_counts_behind_its_batch(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()
    begin_slow_batch(harness, bench)
    settle(harness, bench, queue_id)
    bench.queue = harness.crash(bench.queue)
    (queue_id,) = bench.take_ids()
    begin_slow_batch(harness, bench)
    bench.wait(settle(harness, bench, queue_id))
    bench.queue = harness.crash(bench.queue)
    assert bench.entry_count() == 1  # the new mail


@pytest.mark.parametrize("fails", [False, True])
def test_a_line_of_a_preprocessed_message_is_marked(fails: bool) -> None:
    harness = ChunkHarness(preprocesses=True)
    bench = Bench(harness, harness.make())
    bench.put([b"one@x.example", b"two@x.example"])
    harness.settle_down()
    one, two = sorted(bench.take_ids(), key=lambda queue_id: queue_id.number)
    begin_slow_batch(harness, bench)
    failures = [OSError(5, "Input/output error")] if fails else []
    harness.disk.fault = lambda act, path: failures.pop() if failures and act == "write" else None
    settled = settle(harness, bench, one)
    assert not failures
    if fails:
        bench.wait(settled)
    assert killed(harness, bench) == (2 if fails else 1)
    assert two in bench.take_ids()


def test_a_message_that_the_batch_changes_is_left_alone_until_it_has_ended() -> None:
    harness = ChunkHarness(preprocesses=True)
    bench = Bench(harness, harness.make())
    bench.put([b"one@x.example", b"two@x.example"])
    harness.settle_down()
    one, two = sorted(bench.take_ids(), key=lambda queue_id: queue_id.number)
    later = Settlement(one, Area.DEFERRED, harness.now() + 60, 1)
    begin_slow_batch(harness, bench, later)
    before = len(harness.disk.acts)
    settled = settle(harness, bench, two)
    assert harness.disk.acts[before:] == []
    bench.wait(settled)
    assert killed(harness, bench) == 2


def test_no_batch_begins_before_it_is_written(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()
    begin_slow_batch(harness, bench)
    harness.files.slow_s = 2 * SLOW_S
    settled = settle(harness, bench, queue_id)
    harness.files.slow_s = 0.0
    harness.advance(SLOW_S)
    before = len(harness.disk.acts)
    for _ in range(40):
        harness.advance(0.01)
    assert harness.disk.acts[before:] == []
    bench.wait(settled)
    acts = [one for one in harness.disk.acts[before:] if one[0] in ("unlink", "create", "sync directory")]
    assert [act for act, _ in acts[:2]] == ["unlink", "unlink"]
    assert acts[0] == acts[1]
