"""Counting by a plan, in a process that is told it in parts: each entry once, whatever moves meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, AreaCount, Entry, ICountingPlan, Message, Summary
from mailismus.queue.plan_parts import PART_NUMBERS
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.count_plan import PART_CLUSTERS, CountingPlan
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses
from tests.fakes.disk import MemoryDisk


class Place:
    """A clustered queue, and its checkpoints at hand."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness()
        self.queue: ClusteredQueue = self.harness.open()
        self.bench = Bench(self.harness, self.queue)

    def rest(self) -> None:
        """All that is young rests."""
        self.harness.wait(self.queue.checkpoints.run())
        self.harness.wait(self.queue.checkpoints.run())
        self.harness.settle_down()
        assert not self.queue.parts.search.plan().sums[Area.INCOMING].entries

    def defer(self, queue_ids: list[QueueId], wait_s: float = 9000.0) -> None:
        self.bench.defer(queue_ids, self.bench.now() + wait_s)

    def count(self, plan: ICountingPlan) -> dict[Area, AreaCount]:
        return self.harness.count(plan).areas


@pytest.fixture
def place() -> Place:
    return Place()


def test_what_is_moved_behind_a_plan_counts_once(place: Place) -> None:
    place.bench.put(addresses(3), b"x" * 100)
    place.bench.put(addresses(1), b"x" * 10)
    place.rest()
    place.bench.put(addresses(2), b"x" * 1000)
    plan = place.queue.counting_plan()
    place.rest()
    assert place.count(plan)[Area.INCOMING] == AreaCount(6, 3, 1110)


def test_what_is_retried_behind_a_plan_counts_once_at_most(place: Place) -> None:
    for _ in range(4):
        place.bench.put(addresses(1), b"x" * 10)
    place.defer(place.bench.take_ids(), 10.0)
    place.rest()
    plan = place.queue.counting_plan()
    place.harness.advance(20.0)
    place.defer(place.bench.take_ids(Area.DEFERRED, limit=1))
    assert place.count(plan)[Area.DEFERRED] == AreaCount(3, 3, 30)


def test_a_line_that_is_settled_and_not_marked_yet_does_not_count(place: Place) -> None:
    for _ in range(3):
        place.bench.put(addresses(1), b"x" * 10)
    place.rest()
    place.bench.remove(place.bench.take_ids(limit=1))
    assert any(cluster.over for cluster in place.queue.parts.search.plan().clusters())
    assert place.count(place.queue.counting_plan())[Area.INCOMING] == AreaCount(2, 2, 20)


def test_a_message_in_the_journal_and_in_clusters_counts_once_in_an_area(place: Place) -> None:
    place.bench.put(addresses(3), b"x" * 100)
    first, second, third = place.bench.take_ids()
    place.defer([first])
    place.rest()
    place.defer([second])
    assert place.count(place.queue.counting_plan()) == {
        **dict.fromkeys(Area, AreaCount()),
        Area.INCOMING: AreaCount(1, 1, 100),
        Area.DEFERRED: AreaCount(2, 1, 100),
    }
    assert third.number == 3


def test_clusters_that_are_gone_meanwhile_count_nothing(place: Place) -> None:
    place.bench.put(addresses(1))
    place.rest()
    place.defer(place.bench.take_ids())
    place.bench.put(addresses(1))
    place.rest()
    plan = place.queue.counting_plan()
    gone = next(place.queue.parts.search.plan().clusters())
    place.harness.disk.unlink(gone.path)
    assert sum(count.entries for count in place.count(plan).values()) == 1


class Counted:
    """A counter that was told a plan."""

    def __init__(self, place: Place, parts: Sequence[Mapping[str, object]]) -> None:
        self.place = place
        self.counter = PlanCounter(place.harness.disk)
        for part in parts:
            self.counter.add(part)

    def check(self) -> Summary:
        """With a plan that is made now."""
        assert self.counter.is_unsure
        for part in parts_of(self.place):
            self.counter.check(part)
        return self.counter.summary()


def parts_of(place: Place) -> list[Mapping[str, object]]:
    """Of a plan that is made now."""
    return list(iter(place.queue.counting_plan().next, None))


def entries_of(summary: Summary) -> int:
    return sum(count.entries for count in summary.areas.values())


@pytest.fixture
def two(place: Place) -> Place:
    """With two clusters of one entry each."""
    place.bench.put(addresses(1))
    place.rest()
    place.defer(place.bench.take_ids())
    place.bench.put(addresses(1))
    place.rest()
    return place


def test_a_cluster_that_is_over_meanwhile_is_not_missing(two: Place) -> None:
    parts = parts_of(two)
    two.bench.remove(two.bench.take_ids())
    two.rest()
    summary = Counted(two, parts).check()
    assert (entries_of(summary), summary.exact, summary.gaps) == (1, True, ())


def test_a_cluster_that_is_lost_is_missing(two: Place) -> None:
    parts = parts_of(two)
    lost = next(two.queue.parts.search.plan().clusters())
    two.harness.disk.unlink(lost.path)
    summary = Counted(two, parts).check()
    assert (entries_of(summary), summary.exact) == (1, False)
    assert [(gap.what, gap.path) for gap in summary.gaps] == [("cluster", lost.path)]


def test_a_cluster_that_is_here_again_counts(two: Place) -> None:
    parts = parts_of(two)
    lost = next(two.queue.parts.search.plan().clusters())
    moved = two.harness.disk.names.pop(lost.path)
    counted = Counted(two, parts)
    two.harness.disk.names[lost.path] = moved
    summary = counted.check()
    assert (entries_of(summary), summary.exact, summary.gaps) == (2, True, ())


def test_clusters_that_are_all_missing_are_somewhere_else(place: Place) -> None:
    place.bench.put(addresses(1))
    place.rest()
    plan = place.queue.counting_plan()
    place.harness.disk = MemoryDisk()
    with pytest.raises(FileNotFoundError):
        place.count(plan)


def test_a_plan_that_says_nothing_is_no_count_of_nothing(place: Place) -> None:
    with pytest.raises(FileNotFoundError):
        PlanCounter(place.harness.disk).summary()


def test_a_cluster_that_can_not_be_read_is_told(place: Place) -> None:
    place.bench.put(addresses(1))
    place.rest()
    plan = place.queue.counting_plan()
    place.harness.disk.fault = lambda act, path: PermissionError(13, "Permission denied") if act == "open" else None
    with pytest.raises(PermissionError):
        place.count(plan)


def test_parts_are_small(place: Place) -> None:
    young, resting = Memtable(), ClusterIndex()
    for number in range(PART_NUMBERS + 1):
        message = Message(SpoolId(number), b"a@b.example", b"-", False, 1.0, 100, 2, [])
        held = JournaledMessage(message)
        held.entries[1] = Entry(1, b"c@d.example", Area.INCOMING, 1.0)
        young.add(held, 1.0)
    for number in range(2 * PART_CLUSTERS + 1):
        cluster = Cluster(*named(number), 100)
        cluster.owed.update(range(PART_NUMBERS if number == 0 else 0))
        resting.add(cluster, None)
    resting.add(Cluster(*named(PART_CLUSTERS, checkpoint=8), 100), None)
    parts = list(iter(CountingPlan("/q", young, resting, 7).next, None))
    assert [len(part.get("sizes", ())) for part in parts[:3]] == [0, PART_NUMBERS, 1]  # type: ignore[arg-type] # a list
    assert [len(part["clusters"]) for part in parts[3:]] == [1, PART_CLUSTERS, PART_CLUSTERS]  # type: ignore[arg-type] # a list


def named(number: int, checkpoint: int = 7) -> tuple[ClusterId, str]:
    cluster_id = ClusterId(Area.BOUNCES, "", checkpoint, number)
    return cluster_id, cluster_id.path("/q")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "deferred/../../etc/1-1.mqc", "deferred/20261121T0800/../../1-1.mqc", "incoming/1-1.mqc\n", ""]
)
def test_nothing_but_clusters_below_the_queue_is_opened(name: str) -> None:
    disk = MemoryDisk()
    counter = PlanCounter(disk)
    counter.add({"queue": "/q"})
    with pytest.raises(ValueError, match="cluster"):
        counter.add({"clusters": [[name, None, []]]})
    assert disk.acts == []


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([area.value for area in Area]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["young", "sizes", "incoming"]), inner),
    max_leaves=5,
)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["queue", "young", "area", "sizes", "clusters"]), _values))
def test_no_part_breaks_a_counter(part: dict[str, object]) -> None:
    try:
        PlanCounter(MemoryDisk()).add(part)
    except (ValueError, OSError):
        pass
