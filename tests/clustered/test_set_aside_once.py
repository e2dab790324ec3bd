"""Two readers of a cluster find the same damage at once: it is copied by one after the other."""

from __future__ import annotations

from typing import TypeVar

from twisted.internet.defer import Deferred

from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import BadLine, ClusterId
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.due_scan import DueScan
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")


def test_the_same_bytes_are_copied_by_one_reader_at_a_time() -> None:
    disk, threads, resting = MemoryDisk(), MemoryWorker(), ClusterIndex()
    for path in ("/q", "/q/corrupt"):
        disk.make_directory(path)
    visits = DueScan(disk, "/q", threads, ClusterReader(threads, resting), Memtable(), resting)
    cluster_id = ClusterId(Area.INCOMING, "", 1, 2)
    cluster = Cluster(cluster_id, cluster_id.path("/q"), None)
    bad = [BadLine(40, b"damaged")]
    readers = [Deferred.fromCoroutine(visits.quarantine(cluster, bad)) for _ in range(2)]
    handed_over = []
    while threads.calls:
        handed_over.append(len(threads.calls))
        threads.work()
    assert handed_over == [1, 1]
    assert all(reader.called for reader in readers)
    (name,) = disk.list_directory("/q/corrupt")
    assert disk.content_of(f"/q/corrupt/{name}").endswith(b"damaged")
