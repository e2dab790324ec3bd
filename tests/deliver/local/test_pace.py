"""The pace of local deliveries against disks of several kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mailismus.deliver.local.pace import FIRST, LEAST, LOOK_EVERY, QUICKEST_FOR_S, SLOW_S, SMALL, DeliveryPace

MOST = 10


class Disk:
    """Deliveries to a disk: each takes so long as `takes_s` says of their number at a time. A lone one came before."""

    def __init__(self, takes_s: Callable[[int], float]) -> None:
        self.takes_s = takes_s
        self.pace = DeliveryPace(MOST)
        self.now = 1000.0
        self.pace.note(takes_s(1), 2000, self.now, others_waited=False)

    def deliver(self, count: int, *, size_bytes: int = 2000, others_waited: bool = True) -> set[int]:
        """So many deliveries; the limits behind each."""
        limits = set()
        for _ in range(count):
            takes_s = self.takes_s(self.pace.limit)
            self.now += takes_s / self.pace.limit
            self.pace.note(takes_s, size_bytes, self.now, others_waited=others_waited)
            limits.add(self.pace.limit)
        return limits


def test_it_begins_with_a_few() -> None:
    assert DeliveryPace(MOST).limit == FIRST
    assert DeliveryPace(1).limit == 1


def test_a_server_that_serves_many_at_a_time_has_many_soon() -> None:
    disk = Disk(lambda _: 0.03)
    disk.deliver(2 * LOOK_EVERY)
    assert disk.deliver(1000) == {MOST}


def test_a_disk_that_serves_one_after_the_other_has_few() -> None:
    disk = Disk(lambda number: 0.002 * number)
    disk.deliver(3 * LOOK_EVERY)
    assert disk.deliver(1000) <= {2, 3}


def test_a_disk_that_serves_four_as_fast_as_one_has_some_more() -> None:
    disk = Disk(lambda number: 0.002 * max(1.0, number / 4))
    disk.deliver(10 * LOOK_EVERY)
    assert disk.deliver(1000) <= {5, 6}


def test_after_it_fell_the_limit_grows_by_one() -> None:
    disk = Disk(lambda number: 0.002 * number)
    disk.deliver(3 * LOOK_EVERY)
    disk.takes_s = lambda _: 0.002
    before = disk.pace.limit
    disk.deliver(LOOK_EVERY)
    assert disk.pace.limit == before + 1


def test_the_quickest_time_is_found_anew_with_one_at_a_time() -> None:
    """Else a disk that others wait for all the time would have more and more."""
    disk = Disk(lambda number: 0.002 * number)
    for _ in range(20):
        disk.now += QUICKEST_FOR_S
        disk.deliver(1)
        assert disk.pace.limit == 1
        assert disk.deliver(50) <= {1, 2, 3, 4}
        assert disk.deliver(50) <= {2, 3}


def test_a_disk_that_became_slower_for_good_has_many_again() -> None:
    disk = Disk(lambda _: 0.002)
    disk.deliver(200)
    disk.takes_s = lambda _: 0.02
    disk.deliver(100)
    assert disk.pace.limit == LEAST
    disk.now += QUICKEST_FOR_S
    disk.deliver(100)
    assert disk.pace.limit == MOST


def test_deliveries_that_nobody_waited_for_tell_nothing_of_the_limit() -> None:
    disk = Disk(lambda _: 0.002)
    assert disk.deliver(1000, others_waited=False) == {FIRST}


@pytest.mark.parametrize(("takes_s", "size_bytes"), [(SLOW_S + 0.001, 2000), (0.05, SMALL + 1)])
def test_slow_and_large_ones_are_no_measure(takes_s: float, size_bytes: int) -> None:
    disk = Disk(lambda _: 0.002)
    disk.takes_s = lambda _: takes_s
    assert disk.deliver(1000, size_bytes=size_bytes) == {FIRST}
