"""Settles, visits and failures that meet a checkpoint: nothing is lost, comes back or waits for ever."""

from __future__ import annotations

from typing import Any, TypeVar
from unittest.mock import patch

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.journal.commit import IItem
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.clustered.checkpoint.write import FEW_FILES
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.reclaim.lines import QueueLines
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses, beyond, ids
from tests.fakes.shares import Most
from tests.fakes.worker import ACT_S, MemoryWorker

T = TypeVar("T")

MANY = addresses(3000)
"""Recipients that take a checkpoint longer than a barrier that fails."""


def running() -> tuple[ClusteredHarness, Bench, ClusteredQueue]:
    harness = ClusteredHarness()
    return harness, *queue_of(harness)


def queue_of(harness: ClusteredHarness) -> tuple[Bench, ClusteredQueue]:
    bench = Bench(harness, harness.make())
    assert isinstance(bench.queue, ClusteredQueue)
    harness.settle_down()
    return bench, bench.queue


def queue_again(harness: ClusteredHarness, queue: ClusteredQueue) -> tuple[Bench, ClusteredQueue]:
    """After a stop and a start: no line is in memory."""
    again = harness.restart(queue)
    assert isinstance(again, ClusteredQueue)
    return Bench(harness, again), again


def checkpoint(harness: ClusteredHarness, queue: ClusteredQueue) -> None:
    before = queue.checkpoints.counts.made
    harness.wait(queue.checkpoints.run())
    assert queue.checkpoints.counts.made > before, "it came to nothing"
    harness.settle_down()


def fail_next(harness: ClusteredHarness, wanted: str, where: str) -> None:
    """The next act of this kind at such a path fails."""
    left = [1]

    def fault(act: str, path: str) -> OSError | None:
        if left[0] and act.startswith(wanted) and where in path:
            left[0] -= 1
            return OSError(5, "injected")
        return None

    harness.disk.fault = fault


def seal(harness: ClusteredHarness, queue: ClusteredQueue) -> None:
    """A checkpoint whose record waits for its barrier."""
    queue.checkpoints.run()
    for _ in range(400):
        if queue.state.pending is not None and queue.state.pending.is_sealed:
            return
        harness.clock.advance(ACT_S)
    raise AssertionError("never sealed")


def test_what_was_removed_while_its_visit_was_cut_short_is_not_handed_out() -> None:
    harness, bench, queue = running()
    bench.put(addresses(3))
    checkpoint(harness, queue)
    (first,) = bench.take_ids(limit=1)
    bench.remove([QueueId(first.spool_id, 2)])
    checkpoint(harness, queue)
    assert [queue_id.number for queue_id in bench.take_ids()] == [3]


def test_a_message_that_ends_before_its_content_is_copied_does_not_spoil_the_checkpoint() -> None:
    harness, bench, queue = running()
    for _ in range(50):
        bench.put(addresses(1))
    taken = bench.take_ids()
    last, made = taken[-1], queue.checkpoints.counts.made
    with patch("mailismus.queue.providers.clustered.checkpoint.files.SLICE", 1):
        done = queue.checkpoints.run()
        bench.remove([last])
        assert last.spool_id not in queue.state.memtable.messages
        harness.wait(done)
    assert queue.checkpoints.counts.made == made + 1, "it came to nothing"
    assert len(queue.state.memtable.messages) == 0
    harness.settle_down()
    assert len([name for name in harness.disk.names if name.endswith(".msg")]) == 49
    assert bench.read(taken[0].spool_id)


def test_what_was_not_due_when_a_visit_was_cut_short_is_handed_out_in_its_time() -> None:
    harness, bench, queue = running()
    bench.put(addresses(3))
    now = bench.now()
    queue_ids = bench.take_ids()
    for queue_id, wait_s in zip(queue_ids, (30.0, 2.0, 3.0), strict=True):
        bench.commit((), [Settlement(queue_id, Area.DEFERRED, now + wait_s, 1)])
    harness.advance(0)
    checkpoint(harness, queue)
    harness.advance(15)
    assert bench.take_ids(Area.DEFERRED, limit=1) == [queue_ids[1]]
    assert bench.take_ids(Area.DEFERRED, limit=1) == [queue_ids[2]]
    harness.advance(60)
    assert bench.take_ids(Area.DEFERRED) == [queue_ids[0]]


def test_the_lines_of_one_cluster_wait_in_memory_not_those_of_all() -> None:
    harness = ClusteredHarness(attrs.evolve(queue_settings(), maxclustersize=1000))
    bench, queue = queue_of(harness)
    for _ in range(5):
        bench.put(addresses(10))
    checkpoint(harness, queue)
    bench = Bench(harness, harness.restart(queue))
    again = bench.queue
    assert isinstance(again, ClusteredQueue)
    for _ in range(8):
        assert len(bench.take_ids(limit=1)) == 1
        assert sum(cluster.waiting is not None for cluster in again.ledger.cluster_index.clusters.values()) <= 1


def test_a_message_keeps_its_content_when_one_entry_ends_while_it_is_moved() -> None:
    harness, bench, queue = running()
    spool_id = bench.put(addresses(2), b"needed still")
    checkpoint(harness, queue)
    first, second = bench.take_ids()
    bench.defer([first], bench.now())
    queue.checkpoints.run()
    harness.clock.advance(ACT_S)
    bench.remove([first])
    harness.settle_down()
    assert second.spool_id == spool_id
    assert bench.read(spool_id) == b"needed still"


def test_a_cluster_removed_by_an_abandoned_checkpoint_does_not_stop_the_next() -> None:
    harness, bench, queue = running()
    bench.put()
    checkpoint(harness, queue)
    bench.remove(bench.take_ids())
    fail_next(harness, "sync", "/q/incoming")
    harness.wait(queue.checkpoints.run())
    assert queue.checkpoints.counts.abandoned == 1
    bench.put()
    checkpoint(harness, queue)
    assert len(bench.take_ids()) == 1


def test_a_cluster_to_be_cut_that_is_removed_does_not_stop_the_next_checkpoint() -> None:
    harness, bench, queue = running()
    bench.put()
    checkpoint(harness, queue)
    stays = bench.take_ids()
    bench.put()
    fail_next(harness, "sync", "/q/incoming")
    harness.wait(queue.checkpoints.run())
    assert queue.checkpoints.counts.abandoned == 1
    bench.remove([*stays, *bench.take_ids()])
    checkpoint(harness, queue)
    harness.disk.fault = None
    checkpoint(harness, queue)
    assert not [name for name in harness.disk.names if name.endswith((".mqc", ".msg"))]


def test_places_that_an_abandoned_checkpoint_wrote_are_never_those_of_other_lines() -> None:
    harness, bench, queue = running()
    bench.put()
    checkpoint(harness, queue)
    bench.take_ids()
    bench.put()
    (over,) = bench.take_ids()
    seal(harness, queue)
    done = queue.commit((), (Settlement(over, None),))
    fail_next(harness, "sync", "/q/journal")
    harness.wait(done)
    harness.settle_down()
    assert queue.checkpoints.counts.abandoned == 1
    harness.advance(4)
    harness.settle_down()
    stays = bench.put()
    checkpoint(harness, queue)
    again = Bench(harness, harness.crash(queue))
    harness.settle_down()
    live = {message.spool_id for message, _ in again.search()}
    assert stays in live
    assert over.spool_id not in live
    checkpoint(harness, again.queue)  # type: ignore[arg-type]  # the harness makes this provider
    assert len(again.take_ids()) == 2
    assert not [name for name in harness.disk.names if name.startswith("/q/corrupt/")]


def test_what_a_failed_barrier_says_again_while_it_is_moved_is_there_once() -> None:
    harness, bench, queue = running()
    spool_id = bench.put()
    bench.put(MANY)
    queue.checkpoints.run()
    harness.clock.advance(ACT_S)
    assert queue.state.pending is not None
    fail_next(harness, "sync", "/q/journal")
    refused: list[object] = []
    queue.commit([bench.submission()], ()).addErrback(refused.append)
    harness.settle_down()
    assert refused
    harness.settle_down()
    again = Bench(harness, harness.crash(queue))
    assert [message.spool_id for message, _ in again.search()].count(spool_id) == 1


def test_an_entry_whose_settle_was_refused_while_it_was_moved_is_live_at_the_next_start() -> None:
    harness, bench, queue = running()
    bench.put()
    (bounced,) = bench.take_ids()
    bench.commit((), [Settlement(bounced, Area.BOUNCES, bench.now(), 1)])
    assert bench.take_ids(Area.BOUNCES) == [bounced]
    report = bench.submission()
    bench.put(MANY)
    queue.checkpoints.run()
    harness.clock.advance(ACT_S)
    fail_next(harness, "sync", "/q/journal")
    failed: list[object] = []
    queue.commit([report], (Settlement(bounced, None),)).addErrback(failed.append)
    harness.settle_down()
    assert failed
    harness.advance(5)
    harness.settle_down()
    checkpoint(harness, queue)
    again = Bench(harness, harness.crash(queue))
    assert again.take_ids(Area.BOUNCES) == [bounced]


def test_what_is_over_is_not_alive_again_by_a_retry_that_comes_behind() -> None:
    harness, bench, queue = running()
    bench.put()
    (queue_id,) = bench.take_ids()
    removed = queue.commit((), (Settlement(queue_id, None),))
    retried = queue.commit((), (Settlement(queue_id, Area.DEFERRED, bench.now(), 1),))
    harness.wait(removed)
    harness.wait(retried)
    assert bench.search() == []
    assert Bench(harness, harness.crash(queue)).search() == []


def test_a_flush_reaches_what_is_being_moved() -> None:
    harness, bench, queue = running()
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 1000)
    queue.checkpoints.run()
    harness.clock.pump([ACT_S] * 5)
    assert queue.state.pending is not None
    assert harness.wait(queue.visit_all(Filter(), bench.now())).entries == 1
    harness.settle_down()
    assert len(bench.take_ids(Area.DEFERRED)) == 1


def test_a_walk_that_cannot_read_is_not_repeated_at_once() -> None:
    harness, bench, queue = running()
    bench.put(addresses(2))
    checkpoint(harness, queue)
    harness.wait(queue.close())
    harness.clock.calls.clear()
    harness.disk.fault = lambda act, path: OSError(5, "injected") if act == "read" and path.endswith(".mqc") else None
    harness.open()
    harness.disk.acts.clear()
    harness.clock.pump([0.01] * 500)
    assert 1 <= sum(act == "read" and path.endswith(".mqc") for act, path in harness.disk.acts) < 5


def test_slots_that_are_empty_are_removed() -> None:
    harness, bench, queue = running()
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 100)
    checkpoint(harness, queue)
    assert [name for name in harness.disk.directories if name.startswith("/q/deferred/")]
    harness.advance(200)
    bench.remove(bench.take_ids(Area.DEFERRED))
    checkpoint(harness, queue)
    assert not [name for name in harness.disk.directories if name.startswith("/q/deferred/")]
    bench.put()
    assert len(ids(bench.take())) == 1


def test_a_checkpoint_number_that_the_journal_names_is_not_used_again() -> None:
    harness, bench, queue = running()
    bench.put()
    (over,) = bench.take_ids()
    queue.checkpoints.run()
    harness.clock.advance(ACT_S)
    moving = queue.state.pending
    assert moving is not None
    number = moving.number
    seal(harness, queue)
    done = queue.commit((), (Settlement(over, None),))
    fail_next(harness, "sync", "/q/journal")
    harness.wait(done)
    for _ in range(2):
        queue = harness.crash(queue)  # type: ignore[assignment]  # the harness makes this provider
        harness.disk.sync_directory("/q/incoming")  # as the system may: what the start removed is gone
    assert harness.opened is not None
    assert harness.opened.next_checkpoint > number


def test_what_was_marked_behind_a_read_is_not_handed_out_by_it() -> None:
    harness, bench, queue = running()
    bench.put(addresses(2))
    checkpoint(harness, queue)
    first, second = bench.take_ids()
    bench.remove([first])
    bench, queue = queue_again(harness, queue)
    worker, queue.parts.reader._worker = queue.parts.reader._worker, MemoryWorker(is_prompt=True, holds_results=True)
    taken: list[QueueId] = []
    queue.take(Area.INCOMING, 10, bench.now(), None).addCallback(lambda messages: taken.extend(ids(messages)))
    held = queue.parts.reader._worker
    assert isinstance(held, MemoryWorker)
    assert held.results
    queue.parts.reader._worker = worker
    checkpoint(harness, queue)
    held.release()
    harness.settle_down()
    assert taken == [second]


def with_a_line_to_mark() -> tuple[ClusteredHarness, ClusteredQueue, QueueId]:
    """After a start: a cluster of two lines, of which the first is over and not marked yet; the second is given."""
    harness, bench, queue = running()
    bench.put(addresses(2))
    checkpoint(harness, queue)
    first, second = bench.take_ids()
    bench.remove([first])
    again = harness.crash(queue)
    assert isinstance(again, ClusteredQueue)
    return harness, again, second


def test_what_was_marked_behind_a_read_is_not_found_by_a_search() -> None:
    harness, queue, second = with_a_line_to_mark()
    worker, held = queue.parts.reader._worker, MemoryWorker(is_prompt=True, holds_results=True)
    queue.parts.reader._worker = held
    found: list[QueueId] = []
    queue.search(Filter(), None, 10).addCallback(lambda page: found.extend(ids(page.messages)))
    assert held.results
    queue.parts.reader._worker = worker
    checkpoint(harness, queue)
    held.release()
    assert found == [second]


def test_what_was_marked_behind_a_read_is_not_counted_by_a_flush() -> None:
    harness, bench, queue = running()
    bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 30)
    checkpoint(harness, queue)
    harness.advance(60)
    first, _ = bench.take_ids(Area.DEFERRED)
    bench.remove([first])
    worker, held = queue.parts.reader._worker, MemoryWorker(is_prompt=True, holds_results=True)
    queue.parts.reader._worker = held
    flushed: list[int] = []
    queue.visit_all(Filter(), bench.now()).addCallback(lambda all_of_it: flushed.append(all_of_it.entries))
    assert held.results
    queue.parts.reader._worker = worker
    checkpoint(harness, queue)
    held.release()
    harness.settle_down()
    assert flushed == [1]


def test_what_was_marked_behind_the_read_of_a_walk_is_not_counted_as_live() -> None:
    harness, queue, _ = with_a_line_to_mark()
    worker, held = queue.parts.reader._worker, MemoryWorker(is_prompt=True, holds_results=True)
    queue.parts.reader._worker = held
    harness.clock.advance(0)
    assert held.results, "the walk has not begun"
    queue.parts.reader._worker = worker
    checkpoint(harness, queue)
    held.release()
    harness.settle_down()
    (cluster,) = queue.ledger.cluster_index.clusters.values()
    assert cluster.live == 1


def test_what_ends_in_the_batch_of_a_checkpoint_is_marked_when_idle() -> None:
    harness, bench, queue = running()
    bench.put()
    bench.put()
    checkpoint(harness, queue)
    first, second = bench.take_ids()
    bench.remove([first])
    has_sealed = queue.checkpoints.sealing._append_record

    def seal_and_settle(*args: Any) -> None:
        has_sealed(*args)
        queue.commit((), (Settlement(second, None),))

    with patch.object(queue.checkpoints.sealing, "_append_record", seal_and_settle):
        checkpoint(harness, queue)
    harness.clock.pump([0.25] * 60)
    assert not [name for name in harness.disk.names if name.endswith((".mqc", ".msg"))]


def test_of_a_message_that_is_young_and_rests_no_more_go_out_in_a_take_than_may() -> None:
    harness, bench, queue = running()
    bench.put(addresses(6))
    checkpoint(harness, queue)
    _first, _second, third = bench.take_ids(limit=3)
    bench.commit((), [Settlement(third, Area.INCOMING, bench.now(), 1)])
    assert len(bench.take_ids(shares=Most(2))) == 2
    assert bench.take(shares=Most(2)) == []
    harness.advance(2)
    assert len(bench.take_ids(shares=Most(1))) == 1
    queue.room_again()
    assert len(bench.take_ids(shares=Most(2))) == 1


def test_what_is_young_anew_is_handed_out_though_it_was_moved_before_anybody_took_it() -> None:
    harness, bench, queue = running()
    bench.put()
    checkpoint(harness, queue)
    taken = bench.take_ids(limit=1)
    bench.commit((), [Settlement(taken[0], Area.INCOMING, bench.now(), 1)])
    assert bench.take_ids() == taken


def test_places_of_what_ended_while_it_was_moved_stand_before_the_record() -> None:
    harness, bench, queue = running()
    bench.put(addresses(2))
    over = bench.take_ids(limit=1)
    said: list[str] = []
    append = queue.commits.append
    queue.checkpoints.run()
    harness.clock.advance(ACT_S)

    def say(item: IItem) -> None:
        said.append(type(item).__name__)
        append(item)

    with patch.object(queue.commits, "append", side_effect=say):
        queue.commit((), (Settlement(over[0], None),))
        harness.settle_down()
    assert said == ["CommitItem", "PlacesItem", "CheckpointItem"]


@pytest.mark.parametrize("links", [False, True])
def test_what_a_checkpoint_of_many_files_wrote_is_durable(links: bool) -> None:
    harness = ClusteredHarness(queue_settings(hardlinks=links))
    bench, queue = queue_of(harness)
    bench.put()
    checkpoint(harness, queue)  # the first one syncs the queue's file system in any case
    bench.remove(bench.take_ids())
    contents = {bench.put(addresses(2), b"message %d" % number): b"message %d" % number for number in range(FEW_FILES + 4)}
    checkpoint(harness, queue)
    assert queue.checkpoints.files.write.whole_syncs == 1
    again = Bench(harness, harness.crash(queue))
    assert sorted(message.spool_id for message, _ in again.search()) == sorted([*contents, *contents])
    for spool_id, content in contents.items():
        assert again.read(spool_id) == content


def test_what_was_given_back_stays_as_long_when_it_is_moved() -> None:
    harness, bench, queue = running()
    bench.put(addresses(3))
    first, second, _ = taken = bench.take_ids()
    queue.give_back(taken, bench.now() + 60)
    queue.hasten(beyond(bench.now() + 90, bench.now()), bench.now())
    checkpoint(harness, queue)
    assert bench.take() == []
    harness.advance(50)
    assert bench.take() == []
    harness.advance(11)
    assert bench.take_ids() == taken
    bench.commit((), [Settlement(first, None), Settlement(second, Area.INCOMING, bench.now(), 1)])
    assert bench.take_ids() == [second]
    assert not queue.ledger.memtable.given_back


def test_what_was_given_back_and_hastened_does_not_stay_when_it_is_moved() -> None:
    harness, bench, queue = running()
    bench.put()
    taken = bench.take_ids()
    queue.give_back(taken, bench.now() + 6000)
    queue.hasten(beyond(bench.now() + 60, bench.now()), bench.now())
    checkpoint(harness, queue)
    assert bench.take_ids() == taken


def test_a_checkpoint_asked_for_while_a_batch_is_told_of_begins_behind_it() -> None:
    harness, bench, queue = running()
    submissions = [bench.submission(), bench.submission()]
    told = [queue.commit([submission], ()) for submission in submissions]
    run: list[Deferred[None]] = []
    told[0].addCallback(lambda _: run.append(queue.checkpoints.run()))
    harness.settle_down()
    assert all(deferred.called for deferred in told)
    assert run[0].called
    assert queue.checkpoints.counts.made == 1
    found = [message.spool_id for message, _ in Bench(harness, harness.crash(queue)).search()]
    assert sorted(found) == [submission.draft.spool_id for submission in submissions]


def test_what_was_asked_to_end_before_a_checkpoint_began_stays_over() -> None:
    harness, bench, queue = running()
    bench.put()
    ended = queue.commit((), (Settlement(bench.take_ids()[0], None),))
    assert not ended.called
    checkpoint(harness, queue)
    assert ended.called
    assert Bench(harness, harness.crash(queue)).search() == []


def test_a_segment_whose_barrier_failed_is_never_written_again() -> None:
    harness, bench, queue = running()
    bench.put()
    sick = queue.parts.opened.writer.current
    assert sick is not None
    fail_next(harness, "sync", "/q/journal")
    refused: list[object] = []
    queue.commit([bench.submission()], ()).addErrback(refused.append)
    harness.settle_down()
    assert refused
    harness.advance(4)
    checkpoint(harness, queue)
    assert sick.path not in harness.disk.names
    assert sick.number not in queue.parts.opened.writer.segments


def test_what_moved_from_before_a_walk_to_behind_it_keeps_its_bytes() -> None:
    harness = ClusteredHarness(attrs.evolve(queue_settings(), maxclustersize=1))
    bench, queue = queue_of(harness)
    bench.put()
    moved = bench.put(addresses(2), b"needed still")
    checkpoint(harness, queue)
    again = harness.crash(queue)
    assert isinstance(again, ClusteredQueue)
    bench = Bench(harness, again)
    walk = again.parts.release.scan
    held = walk._files._worker = MemoryWorker(is_prompt=True, holds_results=True)
    assert isinstance(walk._source, QueueLines)
    walk._source._reader = ClusterReader(held, again.parts.reader.cluster_index)
    harness.clock.advance(0)
    assert held.results, "the walk has not begun"
    away = [queue_id for queue_id in bench.take_ids() if queue_id.spool_id == moved]
    bench.defer(away, bench.now() + 3600)
    checkpoint(harness, again)
    checkpoint(harness, again)
    while not again.parts.release.scan.has_run or held.results:
        held.release()
        harness.clock.advance(ACT_S)
    assert bench.read(moved) == b"needed still"
