"""The simulation of deliveries: small worlds, whose mail is followed to its end, and that its measures can fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from benchmarks.simulation.books import SMALL
from benchmarks.simulation.measures import fairness, percentile
from benchmarks.simulation.rivals import plain
from benchmarks.simulation.run import LOCAL_DOMAIN, Arrival, Result, World, run, settings_of
from benchmarks.simulation.worlds import BIG, Addresses, Load, large
from mailismus.plan.clock import STARTS_AT
from mailismus.plan.site import ReceivingSite, SiteHabits, SiteKind

EACH_KIND = (
    SiteHabits(),
    SiteHabits(SiteKind.SLOW, reply_s=1.0, dot_s=1.0),
    SiteHabits(SiteKind.TARPIT, reply_s=20.0, dot_s=20.0),
    SiteHabits(SiteKind.CAPPED, most_connections=2),
    SiteHabits(SiteKind.RATED, most_a_minute=30),
    SiteHabits(SiteKind.DEAD),
    SiteHabits(SiteKind.MUTE),
    SiteHabits(SiteKind.GREY, grey_s=300.0),
    SiteHabits(SiteKind.FLAPPING, up_s=60.0, down_s=60.0),
)


def sites_of(habits: Sequence[SiteHabits], hosts: int = 1) -> dict[str, ReceivingSite | None]:
    """A domain with a site of its own for each of these."""
    addresses = Addresses()
    return {f"d{number}.example": addresses.site(f"site{number}", hosts, one) for number, one in enumerate(habits)}


def messages(
    count: int,
    domains: int,
    *,
    recipients: int = 1,
    sender: bytes = b"s%d@sender.example",
    of_class: str = SMALL,
    begin: float = 1.0,
    every: float = 0.05,
) -> list[Arrival]:
    """So many messages, to the domains in turn."""
    found = []
    for number in range(count):
        whom = [
            b"%b.%d.%d@d%d.example" % (of_class.encode(), number, one, (number * recipients + one) % domains)
            for one in range(recipients)
        ]
        name = sender % number if b"%d" in sender else sender
        found.append(Arrival(begin + number * every, of_class, name, whom))
    return found


def small_world(habits: Sequence[SiteHabits] = EACH_KIND) -> World:
    """Some 300 recipients at receivers of every kind, at silent names, and local ones."""
    sites = sites_of(habits) | {"silent.example": None}
    arrivals = [
        *messages(150, len(habits)),
        Arrival(2.0, BIG, b"list@big.example", [b"big%d@d%d.example" % (n, n % len(habits)) for n in range(150)]),
        Arrival(3.0, SMALL, b"joe@sender.example", [b"u@silent.example", b"ann@" + LOCAL_DOMAIN, b"nobody@" + LOCAL_DOMAIN]),
    ]
    arrivals.sort(key=lambda arrival: arrival.at)
    return World(sites, arrivals, frozenset({b"ann"}))


def ran(
    world: World, seed: int = 1, horizon_s: float = 3600.0, how: AbstractContextManager[object] | None = None, **changes: Any
) -> Result:
    """A run of this world."""
    return run(world, settings_of(**changes), seed, horizon_s, how)


def came(result: Result) -> int:
    """Recipients that were accepted."""
    return sum(len(service.came_at) for service in result.record.services.values())


# ---------------------------------------------------------------------- invariants


def test_each_recipient_is_settled_once_or_waits_for_its_time() -> None:
    result = ran(small_world())
    assert came(result) == 303
    assert result.settled + result.left == 303
    assert result.settled == result.record.delivered + result.record.failed
    assert result.record.failed == 1  # the user who does not exist
    assert result.overdue == 0
    assert sum(site.accepted for site in result.sites) == result.record.delivered - 1  # and one of them is local
    waiting = [site.habits.kind for site in result.sites if not site.accepted]
    assert waiting == [SiteKind.DEAD, SiteKind.MUTE]


@pytest.mark.parametrize("is_in_turns", [False, True])
def test_the_plain_schedules_settle_the_same_mail(is_in_turns: bool) -> None:
    result = ran(small_world(), how=plain(5, is_in_turns=is_in_turns), queuecache=0)
    assert result.settled + result.left == came(result) == 303
    assert result.overdue == 0
    assert result.record.delivered >= 303 - 2 * 34 - 5


def test_a_run_is_the_same_with_the_same_seed_alone() -> None:
    first, second, other = ran(small_world()), ran(small_world()), ran(small_world(), seed=2)
    assert first.fingerprint() == second.fingerprint()
    assert first.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("workers", [1, 7])
def test_there_are_never_more_connections_than_workers(workers: int) -> None:
    habits = [SiteHabits()] * 12
    world = World(sites_of(habits), messages(200, 12, every=0.001))
    result = ran(world, maxconnections=workers)
    assert result.most_open == workers
    assert result.record.delivered == 200


def test_a_host_never_has_more_connections_than_allowed() -> None:
    world = World(sites_of([SiteHabits(dot_s=1.0)] * 3, hosts=2), messages(600, 3, every=0.001))
    result = ran(world, maxserverconnections=4)
    assert [site.most_open for site in result.sites] == [8, 8, 8]
    assert result.record.delivered == 600


def test_there_are_never_more_messages_a_minute_than_allowed() -> None:
    world = World(sites_of([SiteHabits()] * 2), messages(300, 2, every=0.001))
    result = ran(world, messages_per_minute=60)
    assert result.record.delivered == 300
    assert all(55 <= site.most_a_minute <= 60 for site in result.sites)


def test_a_cap_is_found_with_few_refusals() -> None:
    world = World(sites_of([SiteHabits(SiteKind.CAPPED, most_connections=3, dot_s=0.5)]), messages(1000, 1, every=0.05))
    result, (site,) = ran(world), world.all_sites()
    assert site.most_open == 3
    assert site.wasted <= 10
    assert result.record.delivered == 1000


def test_entries_held_never_exceed_the_cache() -> None:
    habits = [SiteHabits(SiteKind.TARPIT, reply_s=5.0)] * 5
    result = ran(World(sites_of(habits), messages(400, 5, every=0.001)), queuecache=50)
    assert result.most_held <= 50


# ---------------------------------------------------------------------- the measures can fail


def contended() -> World:
    """A message to 3,000 recipients, and four senders that come a little later with 500 recipients each, in messages of
    different sizes; there are fewer workers than hosts."""
    arrivals = messages(1, 300, recipients=3000, sender=b"list@big.example", of_class=BIG)
    for sender, size in enumerate((500, 1, 20, 100)):
        name = b"bulk%d@sender.example" % sender
        arrivals += messages(500 // size, 300, recipients=size, sender=name, begin=1.5, every=0.0)
    return World(sites_of([SiteHabits(dot_s=0.2)] * 300), sorted(arrivals, key=lambda arrival: arrival.at))


def index_of(result: Result) -> float:
    """Jain's index over a time in which all of these senders have much to send."""
    return fairness(result.record.services, STARTS_AT + 1.5, STARTS_AT + 11.5)


def test_senders_share_the_workers_and_in_order_of_arrival_they_would_not() -> None:
    ours = ran(contended(), maxconnections=20, queuecache=0)
    first_come = ran(contended(), how=plain(), maxconnections=20, queuecache=0)
    assert ours.record.delivered == first_come.record.delivered == 5000
    assert index_of(ours) > 0.8
    assert index_of(first_come) < 0.65


def delay_beside(how: AbstractContextManager[object] | None, *, has_big: bool, **changes: Any) -> float:
    """The delays of small mail, with a big message or without."""
    world = World(sites_of([SiteHabits()] * 60), messages(200, 60, begin=2.0))
    if has_big:
        big = messages(1, 60, recipients=6000, sender=b"list@big.example", of_class=BIG)
        world = World(world.sites, [*big, *world.arrivals])
    result = ran(world, how=how, maxconnections=40, maxrecips=1, **changes)
    return percentile(sorted(result.record.delays[SMALL, SiteKind.FAST.value].delay_s), 0.95)


def test_a_big_message_does_not_delay_small_ones_and_in_order_of_arrival_it_would() -> None:
    assert delay_beside(None, has_big=True) <= 2 * delay_beside(None, has_big=False) + 0.02
    before, beside = [delay_beside(plain(), has_big=has_big, queuecache=0) for has_big in (False, True)]
    assert beside > 5 * before


def test_the_large_world_has_all_kinds_of_receivers_and_shared_hosts() -> None:
    world = large(Load(small=500, small_s=5.0, bulk=80, big=50, domains=3000, bulk_at_s=1.0, big_at_s=2.0), seed=1)
    sites = world.all_sites()
    assert {site.habits.kind for site in sites} == set(SiteKind)
    largest = max(sites, key=lambda site: sum(one is site for one in world.sites.values()))
    assert sum(one is largest for one in world.sites.values()) > 300
    assert sum(len(arrival.recipients) for arrival in world.arrivals) == 630
    assert not any(math.isinf(arrival.at) for arrival in world.arrivals)
