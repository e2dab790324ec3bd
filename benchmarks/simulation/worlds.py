"""The worlds: receivers and mail by a seed, the large one and those of the named cases."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate

import attrs

from benchmarks.simulation.books import SMALL
from benchmarks.simulation.run import Arrival, World
from mailismus.dns.mx import MxHost
from mailismus.plan.site import ReceivingSite, SiteHabits, SiteKind

BIG = "big"
BULK = "bulk"

PROVIDERS = (
    ("large-0", 5, SiteHabits(SiteKind.CAPPED, most_connections=100)),
    ("large-1", 4, SiteHabits(most_connections=0)),
    ("large-2", 4, SiteHabits(SiteKind.RATED, most_a_minute=3000)),
    ("large-3", 3, SiteHabits(round_trip_s=0.09)),
    ("large-4", 2, SiteHabits(SiteKind.CAPPED, most_connections=20)),
    ("large-5", 2, SiteHabits(dot_s=0.3)),
)
"""A few providers have the first domains and many others: their names, hosts, and what they do."""
PROVIDED = 0.45
"""Share of all other domains that are at one of these providers."""
HOSTED = 0.30
"""Share that is at one of the hosters; the rest have a host of their own."""
HOSTERS_A_THOUSAND = 20
"""Hosters for each thousand domains."""
KINDS = (
    (0.82, SiteHabits()),
    (0.06, SiteHabits(SiteKind.SLOW, reply_s=1.0, dot_s=1.5)),
    (0.01, SiteHabits(SiteKind.TARPIT, reply_s=10.0, dot_s=10.0)),
    (0.03, SiteHabits(SiteKind.CAPPED, most_connections=3)),
    (0.02, SiteHabits(SiteKind.RATED, most_a_minute=60)),
    (0.01, SiteHabits(SiteKind.DEAD)),
    (0.01, SiteHabits(SiteKind.MUTE)),
    (0.03, SiteHabits(SiteKind.GREY, grey_s=300.0)),
    (0.01, SiteHabits(SiteKind.FLAPPING, up_s=60.0, down_s=60.0)),
)
"""What hosters and single hosts do, and how often."""


def zipf(count: int, exponent: float = 1.0) -> list[float]:
    """Cumulative weights of so many ranks."""
    return list(accumulate(1.0 / (rank + 1) ** exponent for rank in range(count)))


def pick(weights: Sequence[float], chance: random.Random) -> int:
    """A rank by cumulative weights."""
    return bisect(weights, chance.random() * weights[-1])


def domain(number: int) -> str:
    """The name of a domain."""
    return f"d{number}.example"


class Addresses:
    """Addresses, each once."""

    def __init__(self) -> None:
        self._count = 0

    def site(self, name: str, hosts: int, habits: SiteHabits) -> ReceivingSite:
        """A site with so many hosts of one preference."""
        found = []
        for number in range(hosts):
            self._count += 1
            address = f"10.{self._count >> 16}.{self._count >> 8 & 255}.{self._count & 255}"
            found.append(MxHost(f"mx{number}.{name}.example", 10, (address,)))
        return ReceivingSite(name, found, habits)


def large_sites(domains: int, seed: int) -> dict[str, ReceivingSite | None]:
    """Sites of so many domains, by rank: a few large providers, hosters, and hosts of one domain."""
    chance, addresses = random.Random(f"sites {seed}"), Addresses()
    providers = [addresses.site(name, hosts, habits) for name, hosts, habits in PROVIDERS]
    provider_weights = zipf(len(providers))
    hosters: list[ReceivingSite] = []
    for number in range(max(1, domains * HOSTERS_A_THOUSAND // 1000)):
        hosters.append(addresses.site(f"hoster-{number}", 2, _habits(chance)))
    hoster_weights = zipf(len(hosters), 0.6)
    sites: dict[str, ReceivingSite | None] = {}
    for number in range(domains):
        kind = chance.random()
        if number < len(providers):
            sites[domain(number)] = providers[number]
        elif kind < PROVIDED:
            sites[domain(number)] = providers[pick(provider_weights, chance)]
        elif kind < PROVIDED + HOSTED:
            sites[domain(number)] = hosters[pick(hoster_weights, chance)]
        else:
            sites[domain(number)] = addresses.site(f"own-{number}", 1, _habits(chance))
    return sites


def _habits(chance: random.Random) -> SiteHabits:
    habits = chance.choices([habits for _, habits in KINDS], [share for share, _ in KINDS])[0]
    return attrs.evolve(habits, round_trip_s=chance.uniform(0.01, 0.15))


@attrs.frozen
class Load:
    """The mail of the large world. Small mail comes all the time, bulk mail and the big message at one time each."""

    small: int = 600_000
    """Recipients of small mail."""
    small_s: float = 900.0
    """The time in which it comes."""
    senders: int = 5000
    bulk: int = 300_000
    """Recipients of bulk mail, of `bulk_senders` with as many each."""
    bulk_senders: int = 8
    bulk_at_s: float = 60.0
    big: int = 100_000
    """Recipients of the big message; 0: there is none."""
    big_at_s: float = 65.0
    domains: int = 100_000


BULK_SIZES = (0, 1, 20, 500)
"""Recipients of each message of the bulk senders, in turn; 0: all in one message."""


def large(load: Load, seed: int) -> World:
    """The large world."""
    return World(large_sites(load.domains, seed), _arrivals(load, seed))


def _arrivals(load: Load, seed: int) -> Iterator[Arrival]:
    weights = zipf(load.domains)
    streams = [_small(load, weights, random.Random(f"small {seed}")), _bulk(load, weights, random.Random(f"bulk {seed}"))]
    if load.big:
        chance = random.Random(f"big {seed}")
        recipients = [b"r%d@%b" % (number, _domain(weights, chance)) for number in range(load.big)]
        streams.append(iter([Arrival(load.big_at_s, BIG, b"list@big.example", recipients)]))
    return merge(*streams, key=lambda arrival: arrival.at)


def _domain(weights: Sequence[float], chance: random.Random) -> bytes:
    return b"d%d.example" % pick(weights, chance)


def _small(load: Load, weights: Sequence[float], chance: random.Random) -> Iterator[Arrival]:
    """Nine of ten messages have one recipient, the others two to ten."""
    sender_weights = zipf(load.senders, 0.8)
    mean = 0.9 + 0.1 * 6
    at, left, number = 0.0, load.small, 0
    while left > 0:
        at += chance.expovariate(load.small / mean / load.small_s)
        count = min(left, 1 if chance.random() < 0.9 else chance.randint(2, 10))
        left -= count
        number += count
        recipients = [b"u%d@%b" % (number - n, _domain(weights, chance)) for n in range(count)]
        yield Arrival(at, SMALL, b"s%d@sender.example" % pick(sender_weights, chance), recipients)


def _bulk(load: Load, weights: Sequence[float], chance: random.Random) -> Iterator[Arrival]:
    """All bulk senders submit at the same time, in messages of different sizes."""
    if not load.bulk:
        return
    each = load.bulk // load.bulk_senders
    messages: list[list[Arrival]] = []
    for sender in range(load.bulk_senders):
        size = BULK_SIZES[sender % len(BULK_SIZES)] or each
        found = []
        for first in range(0, each, size):
            recipients = [
                b"b%d.%d@%b" % (sender, number, _domain(weights, chance)) for number in range(first, min(each, first + size))
            ]
            found.append(Arrival(load.bulk_at_s, BULK, b"bulk%d@sender.example" % sender, recipients))
        messages.append(found)
    while any(messages):
        for some in messages:
            if some:
                yield some.pop()
