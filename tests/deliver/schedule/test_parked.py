"""Parked destinations: by host, and in turns."""

from __future__ import annotations

from mailismus.deliver.limits.sets import DestinationLimits, MxSet
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destination import Destination, FoundHost
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.parked import ParkedDestinations
from mailismus.deliver.security.profile import PLAIN
from tests.deliver.schedule.world import window


def host(number: int) -> Host:
    return Host(Endpoint(f"192.0.2.{number}", 25), PLAIN, ScheduleLimits())


def destination(name: str, *hosts: Host) -> Destination:
    made = Destination(NextHop(name, 25))
    made.set_hosts(
        [FoundHost("mx", 0, one) for one in hosts],
        DestinationLimits(b"one.example", MxSet((("mx",), 25), window(1), None)),
    )
    return made


def test_a_destination_is_found_by_each_of_its_hosts_until_it_is_removed() -> None:
    one, two = host(1), host(2)
    both, single = destination("both", one, two), destination("single", one)
    parked = ParkedDestinations()
    parked.add(both)
    parked.add(single)
    parked.add(both)  # again
    assert (list(parked.at(one)), list(parked.at(two)), len(parked)) == ([both, single], [both], 2)
    parked.remove(both)
    assert two not in parked
    assert list(parked.at(one)) == [single]
    parked.remove(both)  # again
    parked.remove(single)
    assert one not in parked
    assert not parked


def test_it_is_removed_from_the_hosts_that_it_had_when_it_was_added() -> None:
    before, after = host(1), host(2)
    moved = destination("moved", before)
    parked = ParkedDestinations()
    parked.add(moved)
    moved.set_hosts([FoundHost("mx", 0, after)], DestinationLimits(b"", MxSet((("mx",), 25), window(1), None)))
    parked.remove(moved)
    assert before not in parked
    assert after not in parked


def test_each_has_its_turn() -> None:
    parked = ParkedDestinations()
    all_of_them = [destination(f"{number}.example", host(number)) for number in range(5)]
    for one in all_of_them:
        parked.add(one)
    assert [parked.next_ones(2) for _ in range(3)] == [all_of_them[0:2], all_of_them[2:4], [all_of_them[4], all_of_them[0]]]


def test_none_is_left_after_clear() -> None:
    parked, one = ParkedDestinations(), host(1)
    parked.add(destination("one", one))
    parked.clear()
    assert not parked
    assert one not in parked
    assert parked.next_ones(10) == []
