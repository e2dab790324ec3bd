"""Looking at the files of a stopped queue of which some can't be read: the rest is seen, and what is missing is told."""

from __future__ import annotations

import errno

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Gap
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from mailismus.queue.stopped import StoppedQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses, ids

DAY_S = 86_400.0


class Stopped:
    """The files of a queue: two messages in a cluster each, and one in the journal."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness(queue_settings())
        queue = self.harness.open()
        bench = Bench(self.harness, queue)
        self.entries: list[QueueId] = []
        for days in (1, 2):
            bench.put(addresses(1))
            queue_ids = bench.take_ids()
            bench.defer(queue_ids, bench.now() + days * DAY_S)
            self.entries += queue_ids
            for _ in range(2):
                self.harness.wait(queue.checkpoints.run())
        self.young = QueueId(bench.put(addresses(1)), 1)
        self.harness.disk.power_cut()
        self.first, self.second = sorted(self.names(".mqc"))

    def names(self, suffix: str) -> list[str]:
        return [name for name in self.harness.disk.names if name.endswith(suffix)]

    def fail(self, *paths: str, act: str = "open", number: int = errno.EACCES) -> None:
        def fault(made: str, path: str) -> OSError | None:
            return OSError(number, "it is sick", path) if made == act and path in paths else None

        self.harness.disk.fault = fault

    def open(self) -> StoppedQueue:
        return open_readonly("/q", "/s", self.harness.disk)


def found_in(queue: StoppedQueue) -> set[QueueId]:
    return {queue_id for page in queue.pages(Filter()) for queue_id in ids(page)}


def counted_in(queue: StoppedQueue) -> int:
    summary = queue.summary()
    assert summary.gaps == queue.gaps
    assert summary.exact is not bool(queue.gaps)
    return sum(count.entries for count in summary.areas.values())


@pytest.fixture
def stopped() -> Stopped:
    return Stopped()


def test_a_queue_that_can_be_read_has_no_gaps(stopped: Stopped) -> None:
    queue = stopped.open()
    assert found_in(queue) == {*stopped.entries, stopped.young}
    assert counted_in(queue) == 3
    assert queue.gaps == ()


@pytest.mark.parametrize("act", ["open", "read"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_cluster_that_can_not_be_read_is_left_out(stopped: Stopped, act: str, number: int) -> None:
    stopped.fail(stopped.first, act=act, number=number)
    queue = stopped.open()
    assert found_in(queue) == {stopped.entries[1], stopped.young}
    assert queue.gaps == (Gap("cluster", "it is sick", 1, stopped.first),)
    assert counted_in(stopped.open()) == 2


def test_a_cluster_that_a_server_removes_meanwhile_is_not_missing(stopped: Stopped) -> None:
    queue = stopped.open()
    stopped.harness.disk.unlink(stopped.first)
    assert found_in(queue) == {stopped.entries[1], stopped.young}
    assert counted_in(queue) == 2
    assert queue.gaps == ()


@pytest.mark.parametrize("directory", ["/q/deferred", "slot", "/q/incoming"])
def test_a_directory_that_can_not_be_listed_is_left_out(stopped: Stopped, directory: str) -> None:
    path = directory.replace("slot", stopped.first.rpartition("/")[0])
    stopped.fail(path, act="list")
    queue = stopped.open()
    left = {"/q/deferred": set[QueueId](), "slot": {stopped.entries[1]}, "/q/incoming": set(stopped.entries)}[directory]
    assert found_in(queue) == {*left, stopped.young}
    assert queue.gaps == (Gap("directory", "it is sick", 1, path),)
    assert counted_in(stopped.open()) == len(left) + 1


@pytest.mark.parametrize("act", ["open", "read"])
def test_a_journal_segment_that_can_not_be_read_is_left_out(stopped: Stopped, act: str) -> None:
    stopped.fail(*stopped.names(".mqj"), act=act)
    queue = stopped.open()
    assert {entry for entry in found_in(queue) if entry != stopped.young} == set(stopped.entries)
    (gap,) = queue.gaps
    assert (gap.what, gap.reason, gap.count) == ("journal segment", "it is sick", len(stopped.names(".mqj")))
    assert counted_in(stopped.open()) == 2


def test_clusters_that_the_unreadable_journal_would_have_told_of_are_told_as_missing(stopped: Stopped) -> None:
    stopped.fail(*stopped.names(".mqj"), stopped.first)
    queue = stopped.open()
    assert found_in(queue) == {stopped.entries[1]}
    assert {(gap.what, gap.count) for gap in queue.gaps} == {
        ("journal segment", len(stopped.names(".mqj"))),
        ("cluster", 1),
    }


def test_a_journal_directory_that_can_not_be_listed_is_no_empty_queue(stopped: Stopped) -> None:
    stopped.fail("/q/journal", act="list")
    with pytest.raises(PermissionError):
        stopped.open()


def test_a_search_in_one_area_does_not_miss_clusters_of_another(stopped: Stopped) -> None:
    stopped.fail(stopped.first, stopped.second)
    queue = stopped.open()
    assert [list(page) for page in queue.pages(Filter(area=Area.BOUNCES))] == [[]]
    assert queue.gaps == ()
