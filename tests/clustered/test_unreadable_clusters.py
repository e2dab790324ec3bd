"""Clusters that can't be read: the rest is seen and delivered, what is missing is told, and comes back with the disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest
from twisted.logger import LogEvent, capturedLogs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Filter, Flushed, Gap, Summary
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.due_scan import UNREADABLE_S
from mailismus.spool.release import RESCAN_S
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.clustered.test_clustered_metrics import shown
from tests.contracts.bench import Bench, addresses, ids

DAY_S = 86_400.0
ERRORS = [errno.EIO, errno.EACCES, errno.ENOENT]


class Place:
    """Deferred entries of two messages with two recipients, each message in a cluster of its own."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=3000))
        self.queue: ClusteredQueue = self.harness.open()
        self.bench = Bench(self.harness, self.queue)
        self.sick_id, self.sick = self.rest(DAY_S)
        self.well_id, self.well = self.rest(2 * DAY_S)
        assert self.sick != self.well

    def rest(self, wait_s: float) -> tuple[SpoolId, str]:
        known = set(self.clusters())
        spool_id = self.bench.put(addresses(2), b"x" * 100)
        self.bench.defer(self.bench.take_ids(), self.bench.now() + wait_s)
        for _ in range(2):
            self.harness.wait(self.queue.checkpoints.run())
        (path,) = set(self.clusters()) - known
        return spool_id, path

    def clusters(self) -> list[str]:
        return [name for name in self.harness.disk.names if name.endswith(".mqc")]

    def fail(self, number: int = errno.EIO, *paths: str, act: str = "open") -> None:
        sick = paths or (self.sick,)

        def fault(made: str, path: str) -> OSError | None:
            return OSError(number, "it is sick", path) if made == act and path in sick else None

        self.harness.disk.fault = fault

    def heal(self) -> None:
        self.harness.disk.fault = None

    def summary(self) -> Summary:
        return self.harness.wait(self.queue.summary())

    def flush(self, wanted: Filter | None = None) -> Flushed:
        return self.harness.wait(self.queue.visit_all(wanted or Filter(), self.harness.now()))

    def gap(self, count: int = 1) -> tuple[Gap, ...]:
        return (Gap("cluster", "it is sick", count, self.sick),)


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("act", ["open", "read"])
@pytest.mark.parametrize("number", ERRORS)
def test_a_count_counts_the_rest_and_tells_what_is_missing(place: Place, number: int, act: str) -> None:
    place.fail(number, act=act)
    found = place.summary()
    assert found.areas[Area.DEFERRED].entries == 2
    assert (found.exact, found.gaps) == (False, place.gap())
    place.heal()
    found = place.summary()
    assert found.areas[Area.DEFERRED].entries == 4
    assert (found.exact, found.gaps) == (True, ())


@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_search_gives_the_rest_and_tells_what_is_missing_once(place: Place, number: int, limit: int) -> None:
    place.fail(number)
    found: list[QueueId] = []
    gaps: list[Gap] = []
    cursor: object | None = None
    while True:
        page = place.harness.wait(place.queue.search(Filter(), cursor, limit))
        found += ids(page.messages)
        gaps += page.gaps
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [QueueId(place.well_id, 1), QueueId(place.well_id, 2)]
    assert tuple(gaps) == place.gap()


@pytest.mark.parametrize("number", ERRORS)
def test_a_flush_flushes_the_rest_and_tells_what_is_missing(place: Place, number: int) -> None:
    place.fail(number)
    assert place.flush() == Flushed(2, place.gap())
    assert ids(place.bench.take_until(Area.DEFERRED, 2)) == [QueueId(place.well_id, 1), QueueId(place.well_id, 2)]


def test_many_files_that_fail_for_one_reason_are_one_gap(place: Place) -> None:
    place.fail(errno.EIO, place.sick, place.well)
    found = place.summary()
    assert found.areas[Area.DEFERRED].entries == 0
    assert [gap.count for gap in found.gaps] == [2]
    assert place.flush().gaps == found.gaps


def test_what_is_not_asked_for_is_not_missing(place: Place) -> None:
    place.fail()
    page = place.harness.wait(place.queue.search(Filter(area=Area.BOUNCES), None, 10))
    assert (page.messages, page.gaps) == ((), ())
    assert place.flush(Filter(area=Area.INCOMING)) == Flushed(0)


def test_a_cluster_that_is_unlinked_while_it_is_looked_at_is_not_missing(place: Place) -> None:
    place.flush(Filter(place.sick_id))
    place.bench.remove(ids(place.bench.take_until(Area.DEFERRED, 2)))
    place.harness.disk.unlink(place.sick)  # as a checkpoint does before it forgets the cluster
    assert place.summary().gaps == ()
    page = place.harness.wait(place.queue.search(Filter(), None, 10))
    assert (len(page.messages), page.gaps) == (1, ())
    assert place.flush() == Flushed(2)
    assert place.queue.parts.reader.failures == 0


def said(events: Sequence[LogEvent]) -> list[str]:
    """What was logged of clusters."""
    texts = [str(event.get("log_format")).format(**event) for event in events]
    return [text for text in texts if "luster" in text or "walked" in text]


@pytest.mark.parametrize("number", ERRORS)
def test_the_log_names_a_cluster_once_until_it_can_be_read_again(place: Place, number: int) -> None:
    with capturedLogs() as events:
        place.fail(number)
        place.harness.advance(DAY_S)
        for _ in range(5):
            assert place.bench.take(Area.DEFERRED) == []
            place.summary()
            place.flush(Filter(place.sick_id))
            place.harness.advance(UNREADABLE_S)
        trouble = f"Cluster {place.sick} can't be read: it is sick; its entries wait, and it is tried again."
        assert said(events) == [trouble]
        place.heal()
        assert len(ids(place.bench.take_until(Area.DEFERRED, 2))) == 2
        relief = f"Cluster {place.sick} can be read again."
        assert said(events) == [trouble, relief]
        place.fail(number)
        place.summary()
        assert said(events) == [trouble, relief, trouble]


def test_the_walk_after_a_start_says_nothing_every_minute(place: Place) -> None:
    place.harness.restart(place.queue)
    place.fail()
    with capturedLogs() as events:
        for _ in range(10):
            place.harness.advance(RESCAN_S)
            place.harness.settle_down()
        assert len(said(events)) == 1


def test_deliveries_of_the_rest_go_on_and_those_of_the_cluster_when_it_can_be_read_again(place: Place) -> None:
    place.fail()
    place.harness.advance(2 * DAY_S + 1)
    assert ids(place.bench.take_until(Area.DEFERRED, 2)) == [QueueId(place.well_id, 1), QueueId(place.well_id, 2)]
    assert place.bench.take(Area.DEFERRED) == []
    place.heal()
    place.harness.advance(UNREADABLE_S)
    assert ids(place.bench.take_until(Area.DEFERRED, 2)) == [QueueId(place.sick_id, 1), QueueId(place.sick_id, 2)]


def test_metrics_tell_how_many_clusters_can_not_be_read_and_how_often_that_was(place: Place) -> None:
    assert (shown(place.queue)["clusters_unreadable",], shown(place.queue)["cluster_read_failures_total",]) == (0, 0)
    place.fail()
    place.summary()
    place.summary()
    assert (shown(place.queue)["clusters_unreadable",], shown(place.queue)["cluster_read_failures_total",]) == (1, 2)
    place.heal()
    place.summary()
    assert (shown(place.queue)["clusters_unreadable",], shown(place.queue)["cluster_read_failures_total",]) == (0, 2)


def test_messages_of_a_cluster_that_was_moved_away_keep_their_bytes() -> None:
    """The walk after a start takes no missing cluster for an empty one: it would sweep the message files."""
    harness = ClusteredHarness(queue_settings(largemsgsize=3000))
    bench = Bench(harness, harness.open())
    spool_id = bench.put(addresses(2), b"large" * 1000)
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    for _ in range(2):
        harness.wait(queue.checkpoints.run())
    (path,) = [name for name in harness.disk.names if name.endswith(".mqc")]
    started = harness.restart(queue)
    assert isinstance(started, ClusteredQueue)
    moved = harness.disk.names.pop(path)
    for _ in range(5):
        harness.advance(RESCAN_S)
        harness.settle_down()
    harness.disk.names[path] = moved
    for _ in range(3):
        harness.advance(RESCAN_S)
        harness.settle_down()
    assert started.parts.release.scan.has_run
    bench = Bench(harness, started)
    assert [message.spool_id for message in bench.take_until(Area.INCOMING, 2)] == [spool_id]
    assert bench.read(spool_id) == b"large" * 1000
