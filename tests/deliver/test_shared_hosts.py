"""Deaths of hosts are known to all servers of a shared queue, and so is that they are over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from mailismus.deliver.knowledge.host_records import HostRecord, format_line
from mailismus.deliver.knowledge.host_sharing import LOOK_S, SharedHosts
from mailismus.deliver.knowledge.host_snapshot import STEP
from mailismus.deliver.schedule.destdb import Deaths, HostFailure
from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.mail.reply import Reply
from mailismus.queue.limits import ILimits
from tests.deliver import known_hosts
from tests.deliver.known_hosts import destdb

REFUSED = Reply(451, b"4.4.1", b"connection refused")
UTC = 1_700_000_000.0
ADDRESS = "192.0.2.1"


@attrs.define
class Cluster:
    """What servers share: news go to all, one's own words too."""

    clock: Clock
    news: list[bytes] = attrs.field(factory=list)
    records: dict[str, tuple[bytes, float]] = attrs.field(factory=dict)
    listeners: list[Callable[[bytes], None]] = attrs.field(factory=list)
    is_away: bool = False

    @property
    def limits(self) -> ILimits:
        raise AssertionError("limits are of no use here")

    def agree(self, name: str, value: bytes) -> Deferred[bytes]:
        raise AssertionError("nothing is agreed on here")

    def agreed(self, name: str) -> Deferred[bytes | None]:
        raise AssertionError("nothing is agreed on here")

    def has(self, queue_id: QueueId) -> bool:
        raise AssertionError("nobody asks for entries here")

    def next_number(self, name: str, above: int) -> Deferred[int]:
        raise AssertionError("nothing is numbered here")

    def tell(self, news: bytes) -> None:
        self.news.append(news)
        for listener in self.listeners:
            self.clock.callLater(0.01, listener, news)

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        self.listeners.append(on_news)

    def keep(self, records: Mapping[str, tuple[bytes, float]], for_s: float) -> None:
        assert for_s == 7200.0
        for name, (line, at) in records.items():
            if at >= self.records.get(name, (b"", 0.0))[1]:
                self.records[name] = line, at

    def kept(self) -> Deferred[Mapping[str, bytes]]:
        if self.is_away:
            return fail(Unavailable("rows: no answer"))
        return succeed({name: line for name, (line, _) in self.records.items()})


class Copy:
    """One server's knowledge; its monotonic clock began when it did."""

    def __init__(self, cluster: Cluster, began_at: float) -> None:
        self.clock, self._began_at = cluster.clock, began_at
        self.hosts = destdb(Deaths(300.0, 7200.0))
        self.shared = SharedHosts(self.hosts, cluster, cluster.clock, self.now, 7200.0)
        self.shared.start()

    def now(self) -> float:
        return float(self.clock.seconds()) - self._began_at

    def die(self, address: str = ADDRESS) -> None:
        known_hosts.fail(self.hosts, address, REFUSED, HostFailure.NO_CONNECTION, self.now())

    def live(self, address: str = ADDRESS) -> None:
        known_hosts.succeed(self.hosts, address, self.now())

    def is_dead(self, address: str = ADDRESS) -> bool:
        return self.hosts.find(address, 25).is_dead(self.now())


@pytest.fixture
def cluster() -> Cluster:
    clock = Clock()
    clock.advance(UTC)
    return Cluster(clock)


@pytest.fixture
def copies(cluster: Cluster) -> tuple[Copy, Copy]:
    return Copy(cluster, UTC - 50), Copy(cluster, UTC - 99_000)


def pass_s(cluster: Cluster, seconds: float) -> None:
    for _ in range(round(seconds / 0.1)):
        cluster.clock.advance(0.1)
        cluster.clock.advance(0)


def test_a_host_that_died_for_one_is_dead_for_the_other_within_two_seconds(
    cluster: Cluster, copies: tuple[Copy, Copy]
) -> None:
    one, two = copies
    one.die()
    assert not two.is_dead()
    pass_s(cluster, 2 * LOOK_S)
    assert two.is_dead()
    here, there = (copy.hosts.find(ADDRESS, 25).endpoint for copy in copies)
    assert there.failures == here.failures == 1
    assert there.dead_until - two.now() == pytest.approx(here.dead_until - one.now(), abs=0.01)


def test_what_was_heard_is_not_told_again(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, two = copies
    one.die()
    two.die("192.0.2.2")
    pass_s(cluster, 10)
    assert one.is_dead("192.0.2.2")
    assert len(cluster.news) == 2


def test_a_host_that_recovered_for_one_is_tried_by_the_other(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, two = copies
    one.die()
    pass_s(cluster, 2)
    two.live()
    pass_s(cluster, 2)
    assert not one.is_dead()
    assert not two.is_dead()


@pytest.mark.parametrize("is_all", [True, False])
def test_a_flush_forgets_the_dead_everywhere(cluster: Cluster, copies: tuple[Copy, Copy], *, is_all: bool) -> None:
    one, two = copies
    one.die()
    pass_s(cluster, 2)
    if is_all:
        two.hosts.forget_deaths()
    else:
        two.hosts.forget_deaths_of([two.hosts.find(ADDRESS, 25)])
    pass_s(cluster, 2)
    assert not one.is_dead()
    one.die()
    pass_s(cluster, 2)
    assert two.is_dead()


def test_a_host_that_dies_again_is_told_again(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, two = copies
    one.die()
    pass_s(cluster, 310)
    assert not two.is_dead()
    two.die()
    pass_s(cluster, 2)
    assert one.is_dead()
    assert one.hosts.find(ADDRESS, 25).endpoint.failures == 2


def test_a_server_that_starts_later_learns_what_is_kept(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, _ = copies
    one.die()
    one.die("192.0.2.2")
    pass_s(cluster, 2)
    one.live("192.0.2.2")
    pass_s(cluster, 2)
    later = Copy(cluster, UTC - 7)
    assert (later.is_dead(), later.is_dead("192.0.2.2")) == (True, False)
    told = len(cluster.news)
    pass_s(cluster, 5)
    assert len(cluster.news) == told


def test_services_that_are_away_at_the_start_are_no_trouble(cluster: Cluster) -> None:
    cluster.is_away = True
    one = Copy(cluster, UTC)
    one.die()
    pass_s(cluster, 2)
    assert len(cluster.news) == 1


def test_what_a_server_knew_before_is_told_by_its_start(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    two = copies[1]
    later = Copy(cluster, UTC)
    record = HostRecord(ADDRESS, 25, UTC - 10, UTC + 200, 1, REFUSED)
    later.hosts.adopt([record], later.now(), UTC)  # of its own file
    pass_s(cluster, 2)
    assert two.is_dead()


def test_news_that_are_none_and_of_the_future_are_passed_over(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    future = format_line(HostRecord(ADDRESS, 25, UTC + 5000, UTC + 6000, 1, REFUSED))
    assert future is not None
    cluster.tell(b"no line\n\xff\n" + future)
    pass_s(cluster, 1)
    assert not copies[0].is_dead()
    copies[0].die()
    pass_s(cluster, 2)
    assert copies[1].is_dead()


def test_many_deaths_are_told_in_steps(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, two = copies
    addresses = [f"10.0.{number >> 8}.{number & 255}" for number in range(STEP + 100)]
    for address in addresses:
        one.die(address)
    pass_s(cluster, 2)
    assert all(map(two.is_dead, addresses))
    assert max(news.count(b"\n") for news in cluster.news) < STEP


def test_a_server_that_stopped_neither_tells_nor_hears(cluster: Cluster, copies: tuple[Copy, Copy]) -> None:
    one, two = copies
    two.shared.stop()
    one.die()
    two.die("192.0.2.2")
    pass_s(cluster, 3)
    assert not two.is_dead()
    assert len(cluster.news) == 1
