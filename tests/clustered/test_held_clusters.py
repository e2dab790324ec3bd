"""Clusters with lines that were held back: one is scanned for each sender with room again, then the next."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.waiting_lines import AGAIN_S
from tests.fakes.shares import Most

AREA = Area.DEFERRED
NOW = 1_700_000_000.0
BIG, SMALL = b"big@b.example", b"small@b.example"


class Place:
    """An index of clusters whose lines are in memory and due."""

    def __init__(self) -> None:
        self.index = ClusterIndex()
        self.clusters: list[Cluster] = []
        self.numbers = 0
        self.scanned: list[int] = []

    def add(self, *senders: bytes) -> Cluster:
        """A cluster with a line of each of these."""
        cluster = Cluster(ClusterId(AREA, "slot", len(self.clusters) + 1, 1), "/q/c", 10_000)
        self.clusters.append(cluster)
        self.index.add(cluster, None)
        found = []
        for at, sender in enumerate(senders):
            self.numbers += 1
            message = Message(SpoolId(self.numbers), sender, b"-", False, NOW, 10, 1, [])
            found.append(FoundLine(at * 100, False, message, Entry(1, b"r@d.example", AREA, NOW)))
        self.index.keep_read(cluster, found, (), None, (), NOW)
        self.index.schedule(cluster, NOW)
        return cluster

    def take(self, shares: Most, limit: int = 100, now: float = NOW) -> list[int]:
        """What comes of which message; `scanned`: the clusters."""
        self.scanned = []
        taken: list[int] = []
        for cluster, since in self.index.due(AREA, now):
            self.scanned.append(self.clusters.index(cluster))
            found = self.index.hand_out(cluster, since, now, limit, shares)
            limit -= len(found)
            taken += [message.spool_id for message in found]
            if limit <= 0:
                break
        return taken


def test_one_cluster_is_scanned_for_a_sender_with_room_again_and_then_the_next() -> None:
    place = Place()
    for _ in range(10):
        place.add(*[BIG] * 4)
    assert place.take(Most(0)) == []
    assert place.scanned == list(range(10))
    for most, scanned in ((2, [0]), (3, [0, 1]), (3, [1, 2]), (9, [2, 3, 4]), (0, [4])):
        place.index.room_again()
        assert len(place.take(Most(most))) == most
        assert place.scanned == scanned
    place.index.room_again()
    assert len(place.take(Most(100))) == 40 - 17
    assert place.index.room_again() == set()


def test_each_sender_has_its_own_line() -> None:
    place = Place()
    place.add(BIG, BIG)
    place.add(BIG, SMALL)
    place.add(SMALL)
    assert place.take(Most(0)) == []
    assert place.index.room_again() == {AREA}
    assert place.take(Most(0, {SMALL: 5})) == [4, 5]
    assert place.scanned == [0, 1, 2]
    place.index.room_again()
    assert place.take(Most(5)) == [1, 2, 3]


def test_a_cluster_that_is_gone_is_passed_over() -> None:
    place = Place()
    first, second, third = [place.add(BIG) for _ in range(3)]
    assert place.take(Most(0)) == []
    del place.index.clusters[first.id]
    place.index.room_again()
    assert place.take(Most(1)) == [2]
    del place.index.clusters[third.id]
    assert second.held_for == set()
    assert place.index.room_again() == set()


def test_lines_that_nobody_asks_for_again_are_asked_for_after_a_while() -> None:
    place = Place()
    place.add(BIG, SMALL)
    assert place.take(Most(0)) == []
    assert place.take(Most(5), now=NOW + AGAIN_S / 2) == []
    assert place.take(Most(5), now=NOW + AGAIN_S) == [1, 2]


def test_a_sender_is_asked_about_once_a_run_of_lines() -> None:
    place = Place()
    place.add(*[BIG] * 50, SMALL, *[BIG] * 50)
    shares = Most(1000)
    assert len(place.take(shares, limit=1000)) == 101
    assert shares.asked == [(BIG, 50), (SMALL, 1), (BIG, 50)]
    place.add(*[BIG] * 50, SMALL, *[BIG] * 50)
    shares = Most(10)
    assert len(place.take(shares, limit=1000)) == 11
    assert shares.asked == [(BIG, 50), (SMALL, 1)]
    place.index.room_again()
    shares = Most(10)
    assert len(place.take(shares, limit=1000)) == 10
    assert shares.asked == [(BIG, 90)]


def test_a_run_of_lines_that_the_take_has_no_room_for_is_told_as_cut() -> None:
    place = Place()
    place.add(*[BIG] * 20, *[SMALL] * 5)
    shares = Most(4)
    place.take(shares, limit=10)
    assert (shares.asked, shares.cut) == ([(BIG, 10), (SMALL, 5)], [10])
    place.index.room_again()
    shares = Most(100)
    place.take(shares, limit=15)
    assert (shares.asked, shares.cut) == ([(BIG, 15)], [15])
