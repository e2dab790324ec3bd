"""Seed 004, sentence by sentence: each test cites what it shows. Tables are read as they are, over models of the stores.

What differs, and why: decisions 36 to 40. A mail of the seed is a share here, its queue an area; marks lie in partitions
like rows; the three limitations are lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Placement, Settlement
from mailismus.queue.providers.distributed.assembly import build
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    DELETED,
    ENQUEUED,
    SLICE_COUNTS,
    VIEW_HISTORY,
    queue_of,
)
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from mailismus.queue.providers.distributed.view.change import ViewSettings
from tests.contracts.bench import CONTENT, NO_REPLY, Bench, addresses
from tests.distributed.harness import VIEW, ModelHarness
from tests.distributed.servers import Servers
from tests.distributed.test_queue import rows

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400
BIG = b"x" * 100 + b"\r\n"


class Reads:
    """Which partitions of the projection and of the marks a server reads, from now on."""

    def __init__(self, harness: ModelHarness) -> None:
        self.all: list[tuple[RowTable, Key]] = []
        client: Any = harness.server and harness.server.rows
        for name in ("rows", "rows_under"):
            setattr(client, name, self._noting(getattr(client, name)))

    def _noting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def read(table: RowTable, key: Key, *args: Any, **words: Any) -> Any:
            self.all.append((table, key[: table.key_size]))
            return plain(table, key, *args, **words)

        return read

    @classmethod
    def from_start(cls, harness: ModelHarness) -> tuple[Reads, Bench]:
        """Those of a server that starts, and it."""
        server = harness.stores()
        reads = cls(harness)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(harness, "stores", lambda: server)
            return reads, Bench(harness, harness.make())

    def of(self, table: RowTable) -> list[Key]:
        return [partition for one, partition in self.all if one is table]


@pytest.fixture
def harness() -> Iterator[ModelHarness]:
    harness = ModelHarness()
    yield harness
    harness.close()


@pytest.fixture
def bench(harness: ModelHarness) -> Bench:
    return Bench(harness, harness.make())


def heads(harness: ModelHarness) -> list[Row]:
    return [row for row in rows(harness, ENQUEUED) if row["number"] == 0]


def triggers(harness: ModelHarness, area: Area = Area.INCOMING) -> int:
    """Messages of the broker's queue, delivered or not."""
    queue = harness.world.broker.queues[queue_of(area.value)]
    return len(queue.waiting) + sum(len(one.held) for one in queue.consumers)


def browse_start(harness: ModelHarness, area: Area = Area.INCOMING) -> float:
    return next(float(str(row["browse_start"])) for row in rows(harness, BROWSE_START) if row["queue_name"] == area.value)


def put_and_end(bench: Bench, count: int) -> None:
    """So many messages, delivered."""
    for _ in range(count):
        bench.put()
        bench.remove(bench.take_ids())


def listed(bench: Bench, wanted: Filter | None = None) -> list[QueueId]:
    return [QueueId(message.spool_id, entry.number) for message, entry in bench.search(wanted)]


def start(harness: ModelHarness, view: ViewSettings, name: str = "other") -> None:
    """A server with these settings starts beside, and ends."""
    harness.view, before = view, harness.view
    server = harness.server
    try:
        queue = build(harness.world.server().stores, harness.clock, harness.terms(name))
        harness.wait(queue.open())
        harness.wait(queue.close())
    finally:
        harness.view, harness.server = before, server


# context


def test_delays_are_observed_before_dequeuing(bench: Bench, harness: ModelHarness) -> None:
    """ "the ability to add delays to be observed before dequeing elements\""""
    bench.put(placements=(Placement(1, Area.DEFERRED, bench.now() + 100, 0, None, b"-"),))
    harness.advance(99)
    assert bench.take_ids(Area.DEFERRED) == []
    harness.advance(2)
    assert len(bench.take_ids(Area.DEFERRED)) == 1


def test_delays_have_no_limit(bench: Bench) -> None:
    """ "Delays are not supported.\" Here they are: 291 years too."""
    due_at = bench.now() + 291 * YEAR
    bench.put(placements=(Placement(1, Area.DEFERRED, due_at, 0, None, b"-"),))
    assert [entry.due_at for _, entry in bench.search()] == [due_at]
    assert bench.take_ids(Area.DEFERRED) == []


def test_wait_delays_are_reset(bench: Bench, harness: ModelHarness) -> None:
    """ "resetting wait delays\""""
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 30 * DAY)
    assert bench.wait(bench.queue.visit_all(Filter(), bench.now())).entries == 1
    harness.advance(1)
    assert len(bench.take_ids(Area.DEFERRED)) == 1


def test_traffic_is_reviewed_and_mail_is_discarded(bench: Bench) -> None:
    """ "traffic review, discarding emails\""""
    bench.put([b"a@one.example"])
    bench.put([b"b@two.example"])
    found = listed(bench, Filter(matches=lambda message, entry: entry.recipient.endswith(b"two.example")))
    assert len(found) == 1
    bench.remove(found)
    assert [entry.recipient for _, entry in bench.search()] == [b"a@one.example"]


def test_the_queue_is_managed_from_any_server() -> None:
    """ "It enables a centralized mailQueue management for all James servers.\""""
    servers = Servers()
    one, two = servers.start("one"), servers.start("two")
    one.put([b"r@a.example"])
    two.put([b"r@b.example"])
    servers.advance(1)
    assert listed(one) == listed(two)
    assert len(listed(one)) == 2


# decision


def test_a_broker_message_triggers_the_dequeue(bench: Bench, harness: ModelHarness) -> None:
    """ "A rabbitMQ consumer will trigger dequeue operations.\""""
    bench.put()
    assert triggers(harness) == 1
    assert len(bench.take_ids()) == 1
    harness.world.broker.queues[queue_of("incoming")].waiting.clear()
    assert bench.take_ids() == []


def test_no_polling_is_performed_on_the_projection(bench: Bench, harness: ModelHarness) -> None:
    """ "no polling is performed on this projection\""""
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 30 * DAY)
    harness.advance(130)  # once after a start it is looked for what waits for long
    reads = Reads(harness)
    for _ in range(20):
        harness.advance(1)
    assert reads.of(ENQUEUED) == []
    assert bench.take_ids() == []
    assert reads.of(ENQUEUED) == []


def test_bytes_lie_in_the_object_store_alone(bench: Bench, harness: ModelHarness) -> None:
    """ "ObjectStorage (Swift or S3) holds large byte content.\""""
    bench.put(content=BIG * 5000)
    assert harness.world.objects.objects is not None
    assert list(harness.world.objects.objects.values()) == [BIG * 5000]
    for table in (ENQUEUED, DELETED):
        for row in rows(harness, table):
            assert all(len(cell) < 1000 for cell in row.values() if isinstance(cell, bytes | str))


def test_the_key_is_queue_slice_and_bucket(bench: Bench, harness: ModelHarness) -> None:
    """ "The primary key holds the queue name, the (rounded) time of enqueue designed as a slice, and a bucketCount.\""""
    assert [column.name for column in ENQUEUED.partition] == ["queue_name", "slice_start", "bucket"]
    bench.put()
    (head,) = heads(harness)
    assert head["queue_name"] == "incoming"
    assert head["slice_start"] == bench.now() // HOUR * HOUR
    assert head["bucket"] in range(VIEW.bucket_count)


def test_writes_of_one_time_go_to_all_buckets(bench: Bench, harness: ModelHarness) -> None:
    """ "enables sharding and avoids all writes at a given point in time to go to the same Cassandra partition\""""
    for _ in range(20):
        bench.put()
    assert {row["bucket"] for row in heads(harness)} == set(range(VIEW.bucket_count))


def test_the_clustering_key_is_unique(bench: Bench, harness: ModelHarness) -> None:
    """ "The clustering key is composed of an enqueueId - a unique identifier.\""""
    assert next(iter(ENQUEUED.order)).name == "enqueue_id"
    for _ in range(20):
        bench.put()
    assert len({row["enqueue_id"] for row in heads(harness)}) == 20


def test_rows_hold_the_metadata(bench: Bench, harness: ModelHarness) -> None:
    """ "The content holds the metadata of the email.\""""
    spool_id = bench.put(addresses(2), sender=b"s@a.example")
    (head,) = heads(harness)
    assert (head["spool_id"], head["sender"], head["size_bytes"]) == (spool_id, b"s@a.example", len(CONTENT))
    assert [row["recipient"] for row in rows(harness, ENQUEUED) if row["number"]] == addresses(2)


def test_all_that_was_ever_there_is_found_from_a_date_on(bench: Bench, harness: ModelHarness) -> None:
    """ "from a starting date, to load all of the emails that have ever been in the mailQueue\": as long as it is kept."""
    put_and_end(bench, 5)
    harness.advance(HOUR)
    put_and_end(bench, 5)
    assert len(heads(harness)) == 10
    assert sorted({float(str(row["slice_start"])) for row in heads(harness)}) == [
        bench.now() // HOUR * HOUR - HOUR,
        bench.now() // HOUR * HOUR,
    ]


def test_what_nothing_lives_in_is_cleaned_up(bench: Bench, harness: ModelHarness) -> None:
    """ "enqueuedMailsV3 and deletedMailsV2 is never cleaned up and the corresponding blobs are always referenced.\" Here
    they are cleaned up."""
    put_and_end(bench, 5)
    assert harness.world.objects.objects == {}
    harness.advance(3 * DAY)
    harness.advance(200)
    assert rows(harness, ENQUEUED) == []
    assert rows(harness, DELETED) == []


def test_marks_tell_what_was_dequeued_or_deleted(bench: Bench, harness: ModelHarness) -> None:
    """ "deletedMailsV2 tells wether a mail stored in enqueuedMailsV3 had been deleted or not. [...] This table is updated
    upon dequeue and deletes.\" A deletion is by an id that nobody took."""
    dequeued, deleted, _ = (bench.put() for _ in range(3))
    names = {row["spool_id"]: row["enqueue_id"] for row in heads(harness)}
    assert rows(harness, DELETED) == []
    bench.remove([queue_id for queue_id in bench.take_ids() if queue_id.spool_id == dequeued])
    bench.remove([QueueId(deleted, 1)])
    assert {row["enqueue_id"] for row in rows(harness, DELETED)} == {names[dequeued], names[deleted]}


def test_marks_are_asked_before_a_dequeue(bench: Bench, harness: ModelHarness) -> None:
    """ "This table is queried upon dequeue to filter out deleted/purged items.\""""
    bench.put()
    body = harness.world.broker.queues[queue_of("incoming")].consumers[0].held
    assert len(body) == 1
    taken = bench.take_ids()
    bench.remove(taken)
    name = next(row["enqueue_id"] for row in heads(harness))
    reads = Reads(harness)
    (head,) = heads(harness)
    place = SharePlace("incoming", float(str(head["slice_start"])), int(str(head["bucket"])))
    trigger = write_trigger(trigger_of(ShareName(place, UUID(str(name)))))
    harness.wait(harness.world.server().broker.publish(queue_of("incoming"), trigger))
    harness.advance(40)
    assert reads.of(DELETED)
    assert bench.take_ids() == []


def test_before_the_browse_start_nothing_lives(bench: Bench, harness: ModelHarness) -> None:
    """ "browseStart store the latest known point in time from which all previous emails had been deleted/dequeued.\""""
    first = bench.put()
    for _ in range(5):
        harness.advance(HOUR)
        harness.advance(20)
        put_and_end(bench, 0)
        for queue_id in [one for one in bench.take_ids() if one.spool_id != first]:
            bench.remove([queue_id])
    harness.advance(200)
    slices = {row["spool_id"]: float(str(row["slice_start"])) for row in heads(harness)}
    assert browse_start(harness) <= slices[first]


def test_it_enables_to_skip_what_was_deleted(bench: Bench, harness: ModelHarness) -> None:
    """ "It enables to skip most deleted items upon browsing/deleting queue content.\""""
    put_and_end(bench, 3)
    for _ in range(6):
        harness.advance(HOUR)
        put_and_end(bench, 100)
    reads = Reads(harness)
    listed(bench)
    slices = {float(str(key[1])) for key in reads.of(ENQUEUED) if key[0] == "incoming"}
    assert min(slices) >= browse_start(harness) > bench.now() - 4 * HOUR


def test_its_update_is_by_chance_and_beside_a_dequeue(harness: ModelHarness) -> None:
    """ "Its update is probability based and asynchronously piggy backed on dequeue.\""""
    harness.view = ViewSettings(HOUR, 2, 10)
    bench = Bench(harness, harness.make())
    put_and_end(bench, 1)
    harness.advance(3 * HOUR)
    harness.advance(1)
    before, moved_by = browse_start(harness), 0
    while browse_start(harness) == before:
        put_and_end(bench, 1)
        moved_by += 1
        assert moved_by < 200
    assert moved_by >= 1


def test_a_mail_that_lives_holds_it_and_it_never_passes_the_present_slice(bench: Bench, harness: ModelHarness) -> None:
    """ "iterated [...] until the first non deleted / dequeued email is found. This point becomes the new browse start.
    BrowseStart can never point after the start of the current slice. A grace period [...] is left to tolerate clock
    skew.\""""
    put_and_end(bench, 2)
    harness.advance(HOUR)
    harness.advance(20)
    bench.put()
    kept = bench.take_ids()
    there = bench.now() // HOUR * HOUR
    for _ in range(6):
        harness.advance(HOUR)
        harness.advance(20)
        put_and_end_others(bench, kept, 60)
    assert browse_start(harness) == there
    bench.remove([one for one in listed(bench) if one.spool_id == kept[0].spool_id])
    put_and_end(bench, 100)
    assert there < browse_start(harness) <= bench.now() // HOUR * HOUR - HOUR


def put_and_end_others(bench: Bench, kept: Sequence[QueueId], count: int) -> None:
    for _ in range(count):
        bench.put()
        bench.remove([one for one in bench.take_ids() if one not in kept])


# operations


def test_an_enqueue_is_content_rows_trigger(bench: Bench, harness: ModelHarness) -> None:
    """ "Upon enqueue mail content is stored in the object storage, an entry is added in enqueuedMailsV3 and a message is
    fired on rabbitMQ.\""""
    server: Any = harness.server
    begun: list[tuple[str, int, int, int]] = []

    def watch(client: Any, name: str) -> None:
        plain = getattr(client, name)

        def call(*args: Any) -> Any:
            objects = harness.world.objects.objects
            begun.append((name, len(objects or ()), len(heads_now(harness)), triggers(harness)))
            return plain(*args)

        setattr(client, name, call)

    for client, name in ((server.objects, "put"), (server.rows, "write"), (server.broker, "publish")):
        watch(client, name)
    bench.put()
    assert begun[:3] == [("put", 0, 0, 0), ("write", 1, 0, 0), ("publish", 1, 1, 0)]


def heads_now(harness: ModelHarness) -> list[object]:
    """Heads that are there, without a call of a client."""
    partitions = harness.world.rows.tables[ENQUEUED.name].values()
    return [place for partition in partitions for place in partition.rows if place[1] == 0]


def test_a_dequeue_reads_marks_then_content_then_marks_it(bench: Bench, harness: ModelHarness) -> None:
    """ "deletedMailsV2 is queried [...]. If not, the mail content is retrieved from the object storage, then an entry is
    added in deletedMailsV2 to notice the email had been dequeued.\" Here the trigger is acked behind that."""
    bench.put()
    harness.crash_only()
    reads, again = Reads.from_start(harness)
    (queue_id,) = again.take_ids()
    assert reads.of(DELETED)
    assert again.read(queue_id.spool_id) == CONTENT
    assert rows(harness, DELETED) == []
    assert triggers(harness) == 1
    again.remove([queue_id])
    assert len(rows(harness, DELETED)) == 1
    harness.advance(2)
    assert triggers(harness) == 0


def test_a_browse_reads_rows_and_marks(bench: Bench, harness: ModelHarness) -> None:
    """ "Upon browse, enqueuedMailsV3 content is iterated, and checked against deletedMailsV2, starting from the current
    browse start.\""""
    one, two = bench.put(), bench.put()
    bench.remove([QueueId(one, 1)])
    reads = Reads(harness)
    assert listed(bench) == [QueueId(two, 1)]
    assert reads.of(ENQUEUED)
    assert reads.of(DELETED)


def test_a_purge_marks_all_that_match(bench: Bench, harness: ModelHarness) -> None:
    """ "Mails matching the condition are marked as deleted\": not in the rows, which never change."""
    for _ in range(5):
        bench.put()
    before = rows(harness, ENQUEUED)
    bench.remove(listed(bench))
    harness.advance(1)
    assert rows(harness, ENQUEUED) == before
    assert len(rows(harness, DELETED)) == 5
    assert listed(bench) == []


def test_the_size_is_what_a_browse_counts_and_costs_less(bench: Bench, harness: ModelHarness) -> None:
    """ "Upon getSize, we perform a browse and count the returned elements.\" \"getSize operation is sub-optimal\": here it
    reads counts by slice."""
    for _ in range(30):
        bench.put(addresses(2))
    bench.remove(bench.take_ids()[:7])
    harness.advance(6)
    reads = Reads(harness)
    count = bench.summary().areas[Area.INCOMING]
    assert reads.of(ENQUEUED) == []
    assert reads.of(SLICE_COUNTS)
    assert count.entries == len(listed(bench)) == 53


# settings


@pytest.mark.parametrize(("minutes", "is_allowed"), [(30, True), (20, True), (25, False), (120, False)])
def test_only_a_divisor_may_be_the_new_slice_window(
    bench: Bench, harness: ModelHarness, minutes: int, *, is_allowed: bool
) -> None:
    """ "Only values dividing the current sliceWindow are allowed as new values\""""
    spool_id = bench.put()
    if is_allowed:
        start(harness, ViewSettings(minutes * 60, 2, 20))
        harness.view = ViewSettings(minutes * 60, 2, 20)
        again = Bench(harness, harness.restart(bench.queue))
        assert listed(again) == [QueueId(spool_id, 1)]
        return
    with pytest.raises(StartError, match=r"slicewindow.* was 1h and can't become"):
        start(harness, ViewSettings(minutes * 60, 2, 20))


def test_buckets_may_only_grow_in_number(bench: Bench, harness: ModelHarness) -> None:
    """ "Only increasing the count of buckets is supported as a configuration update\""""
    spool_ids = {bench.put() for _ in range(10)}
    start(harness, ViewSettings(HOUR, 5, 20))
    with pytest.raises(StartError, match=r"bucketcount.* was 5 and can't become 2"):
        start(harness, ViewSettings(HOUR, 2, 20))
    harness.view = ViewSettings(HOUR, 5, 20)
    again = Bench(harness, harness.restart(bench.queue))
    assert {queue_id.spool_id for queue_id in listed(again)} == spool_ids


def test_the_pace_may_be_changed_freely(bench: Bench, harness: ModelHarness) -> None:
    """ "updateBrowseStartPace [...]. This value can be changed freely.\""""
    for pace in (1, 1000, 7):
        start(harness, ViewSettings(HOUR, 2, pace))
    assert [row["pace"] for row in rows(harness, VIEW_HISTORY)][-3:] == [1, 1000, 7]
    assert bench.put()


def test_the_pace_governs_how_often_it_is_moved(harness: ModelHarness) -> None:
    """ "updateBrowseStartPace governs the probability of updating browseStart upon dequeue/deletes.\""""
    looks: dict[int, int] = {}
    for pace in (2, 50):
        one = ModelHarness(ViewSettings(HOUR, 1, pace))
        bench = Bench(one, one.make())
        put_and_end(bench, 1)
        reads = Reads(one)
        put_and_end(bench, 100)
        looks[pace] = sum(table is VIEW_HISTORY for table, _ in reads.all)
        one.close()
    assert 30 <= looks[2] <= 70
    assert looks[50] <= 8


def test_changes_are_events_that_judge_the_next_ones(bench: Bench, harness: ModelHarness) -> None:
    """ "We rely on eventSourcing to validate the mailQueue configuration changes upon James start\""""
    start(harness, ViewSettings(HOUR // 2, 2, 20))
    start(harness, ViewSettings(HOUR // 2, 3, 20))
    start(harness, ViewSettings(HOUR // 2, 3, 20))
    history = [(row["version"], row["slice_window_s"], row["bucket_count"]) for row in rows(harness, VIEW_HISTORY)]
    assert sorted(history) == [(1, HOUR, 2), (2, HOUR // 2, 2), (3, HOUR // 2, 3)]
    with pytest.raises(StartError):
        start(harness, ViewSettings(HOUR, 3, 20))
    assert bench.put()


def test_what_bounced_and_was_reported_is_gone_too(bench: Bench, harness: ModelHarness) -> None:
    """ "a buffer [...] traffic\": each area is a queue of the seed, with a projection of its own."""
    bench.put()
    bench.commit((), [Settlement(one, Area.BOUNCES, bench.now(), 1, NO_REPLY, b"-") for one in bench.take_ids()])
    assert {row["queue_name"] for row in heads(harness)} == {"incoming", "bounces"}
    bench.remove(bench.take_ids(Area.BOUNCES))
    harness.advance(2)
    assert harness.world.objects.objects == {}
