"""What only ends entries: durable beside the batch under way, and apart from what else happens to its message."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.chunk.format.version import TODO
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import Bench

SLOW_S = 0.5
THREE = (b"one@x.example", b"two@x.example", b"three@home.example")


@pytest.fixture
def old(harness: ChunkHarness) -> Bench:
    """A bench over a queue of which every message is moved to S5 at once."""
    harness.preprocesses = True
    return Bench(harness, harness.make())


def begin_slow_batch(harness: ChunkHarness, bench: Bench, *settlements: Settlement) -> None:
    """New mail, and what is settled with it: nothing of it is written for `SLOW_S`."""
    harness.batches.slow_s = SLOW_S
    for settlement in settlements:
        bench.queue.commit((), [settlement])
    bench.queue.commit([bench.submission()], ())
    for _ in range(5):
        harness.advance(0.005)
    harness.batches.slow_s = 0.0


def settle(harness: ChunkHarness, bench: Bench, *settlements: Settlement) -> Deferred[object]:
    """Settle them in one commit; a moment goes by."""
    settled: Deferred[object] = bench.queue.commit((), settlements)  # type: ignore[assignment]  # no matter
    for _ in range(10):
        harness.advance(0.001)
    return settled


def ids(bench: Bench) -> list[QueueId]:
    """Take all there is."""
    return sorted(bench.take_ids(), key=lambda queue_id: queue_id.number)


def places(bench: Bench) -> list[tuple[int, Area]]:
    """The numbers of all recipients in the queue, and where they are."""
    return sorted(((entry.number, entry.area) for _, entry in bench.search()), key=str)


def left_after_power_cut(harness: ChunkHarness, bench: Bench) -> list[int]:
    """The recipients that a start finds then, of all messages."""
    bench.queue = harness.crash(bench.queue)
    return [number for number, _ in places(bench)]


def test_what_was_delivered_is_durable_and_counts_beside_the_batch_under_way(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = ids(bench)
    begin_slow_batch(harness, bench)
    settled = settle(harness, bench, Settlement(queue_id, None))
    assert settled.called
    assert left_after_power_cut(harness, bench) == []


def test_what_waits_for_the_disk_is_written_and_a_kill_does_not_repeat_it(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    bench.put()
    one, other = ids(bench)
    harness.ends.slow_s, harness.ends.quick = SLOW_S, ("write",)
    begun = [settle(harness, bench, Settlement(queue_id, None)) for queue_id in (one, other)]
    assert not any(settled.called for settled in begun)
    harness.clock.calls.clear()
    harness.disk.kill()
    bench.queue = harness.open()
    assert places(bench) == []


def test_a_line_of_a_preprocessed_message_is_marked(harness: ChunkHarness, old: Bench) -> None:
    old.put(THREE)
    harness.settle_down()
    one, _, three = ids(old)
    begin_slow_batch(harness, old)
    assert settle(harness, old, Settlement(one, None), Settlement(three, None)).called
    assert left_after_power_cut(harness, old) == [2]


@pytest.mark.parametrize("act", ["write", "sync", "open"])
def test_what_fails_is_written_anew_by_a_batch_and_counts_then(harness: ChunkHarness, old: Bench, act: str) -> None:
    old.put(THREE)
    harness.settle_down()
    one, *_ = ids(old)
    failures = [OSError(5, "Input/output error")]
    harness.disk.fault = lambda what, path: failures.pop() if failures and what.startswith(act) else None
    begins = settle(harness, old, Settlement(one, None))
    assert not failures
    assert not begins.called
    old.wait(begins)
    assert left_after_power_cut(harness, old) == [2, 3]


def test_an_end_before_preprocessing_is_a_mark_in_the_envelope_alone(harness: ChunkHarness, bench: Bench) -> None:
    bench.put(THREE)
    _, two, _ = ids(bench)
    acts: list[tuple[str, str]] = []
    harness.disk.fault = lambda act, path: acts.append((act, path))
    assert settle(harness, bench, Settlement(two, None)).called
    assert [act for act, path in acts if path.startswith("/q/todo/")] == ["open", "write", "sync"]
    assert all(path.startswith("/q/todo/") for _, path in acts)
    harness.disk.fault = None
    assert left_after_power_cut(harness, bench) == [1, 3]
    one, three = ids(bench)
    bench.wait(bench.queue.commit((), [Settlement(one, None), Settlement(three, None)]))
    assert left_after_power_cut(harness, bench) == []


def test_of_one_commit_what_ends_is_durable_beside_the_batch_and_the_rest_with_the_next(
    harness: ChunkHarness, bench: Bench
) -> None:
    bench.put(THREE)
    one, two, three = ids(bench)
    begin_slow_batch(harness, bench)
    later = Settlement(two, Area.DEFERRED, harness.now() + 60, 1)
    settled = settle(harness, bench, Settlement(one, None), later, Settlement(three, None))
    assert not settled.called
    assert [number for number, _ in places(bench)] == [2]
    bench.wait(settled)
    bench.queue = harness.crash(bench.queue)
    assert places(bench) == [(1, Area.INCOMING), (2, Area.DEFERRED)]


def test_a_message_that_a_batch_changes_is_left_alone_until_it_has_ended(harness: ChunkHarness, old: Bench) -> None:
    old.put(THREE)
    harness.settle_down()
    one, two, _ = ids(old)
    begin_slow_batch(harness, old, Settlement(one, Area.DEFERRED, harness.now() + 60, 1))
    before = len(harness.disk.acts)
    settled = settle(harness, old, Settlement(two, None))
    assert harness.disk.acts[before:] == []
    old.wait(settled)
    old.queue = harness.crash(old.queue)
    assert places(old) == [(1, Area.DEFERRED), (1, Area.INCOMING), (3, Area.INCOMING)]  # and the new mail


def test_a_batch_leaves_a_message_alone_until_its_ends_are_durable(harness: ChunkHarness, old: Bench) -> None:
    old.put(THREE)
    harness.settle_down()
    one, two, _ = ids(old)
    harness.ends.slow_s = SLOW_S
    settled = settle(harness, old, Settlement(one, None))
    harness.ends.slow_s = 0.0
    before = len(harness.disk.acts)
    later = settle(harness, old, Settlement(two, Area.DEFERRED, harness.now() + 60, 1))
    for _ in range(10):
        harness.advance(0.01)
    assert harness.disk.acts[before:] == []
    old.wait(settled)
    old.wait(later)
    old.queue = harness.crash(old.queue)
    assert places(old) == [(2, Area.DEFERRED), (3, Area.INCOMING)]


def test_its_failures_and_those_of_batches_are_told_apart(harness: ChunkHarness, bench: Bench) -> None:
    assert harness.opened is not None
    batches, ends = harness.opened.directories, harness.opened.ends_directories
    assert ends.of(TODO) is not batches.of(TODO)
    assert ends.file_system is not None
    assert ends.file_system is not batches.file_system
    harness.opened.release()


def test_what_ends_an_entry_twice_is_told_too(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (queue_id,) = ids(bench)
    harness.ends.slow_s = SLOW_S
    first = settle(harness, bench, Settlement(queue_id, None))
    second = settle(harness, bench, Settlement(queue_id, None))
    harness.ends.slow_s = 0.0
    bench.wait(first)
    harness.advance(0.01)
    harness.advance(0.01)
    assert second.called


def test_a_kill_between_files_that_take_their_places_and_those_that_go_loses_no_line(
    harness: ChunkHarness, old: Bench
) -> None:
    """A note that could not be written is written anew, and the line that it stands for goes behind it."""
    old.put(THREE[:1])
    harness.settle_down()
    (one,) = ids(old)
    seen: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if "cut" in seen or (act == "write" and path.startswith("/q/bounce/") and not seen):
            seen.append("failed")
            return OSError(5, "Input/output error")
        if seen and (path.startswith("/q/pid/bounce.") if act == "rename" else act == "unlink" and "/remote/" in path):
            seen.append("cut")
        return None

    harness.disk.fault = fault
    settle(harness, old, Settlement(one, Area.BOUNCES, harness.now(), 1))
    for _ in range(60):
        harness.clock.advance(0.001)
    assert "cut" in seen
    harness.disk.fault = None
    harness.clock.calls.clear()
    harness.disk.kill()
    old.queue = harness.open()
    assert places(old) == [(1, Area.BOUNCES)]


def test_what_is_durable_is_told_before_the_queue_has_closed(harness: ChunkHarness, bench: Bench) -> None:
    told: list[str] = []
    bench.queue.commit([bench.submission()], ()).addCallback(lambda _: told.append("durable"))
    bench.queue.close().addCallback(lambda _: told.append("closed"))
    harness.settle_down()
    assert told == ["durable", "closed"]
