"""The named cases: one thing that could hold up small mail, and small mail beside it.

Each is run with and without that thing. The delays compared are those of the small mail.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import attrs

from benchmarks.simulation.books import SMALL
from benchmarks.simulation.run import LOCAL_DOMAIN, Arrival, World
from benchmarks.simulation.worlds import BIG, Addresses, domain
from mailismus.plan.site import ReceivingSite, SiteHabits, SiteKind

HEALTHY = 100
"""Domains of the small mail, with a site each."""
BEGINS_S = 5.0


@attrs.frozen
class Case:
    """One case. `make`: its world by a seed, with the load or without it."""

    name: str
    text: str
    make: Callable[[int, bool], World]
    settings: dict[str, int] = attrs.field(factory=dict)


def _small(seed: int, count: int, a_second: float, begins_s: float, domains: Sequence[str]) -> list[Arrival]:
    """Messages of a recipient each, each from a sender of its own."""
    chance, at = random.Random(f"case {seed}"), begins_s
    found = []
    for number in range(count):
        at += chance.expovariate(a_second)
        recipient = b"u%d@%b" % (number, domains[number % len(domains)].encode())
        found.append(Arrival(at, SMALL, b"s%d@sender.example" % number, [recipient]))
    return found


def _healthy(addresses: Addresses, count: int = HEALTHY) -> dict[str, ReceivingSite | None]:
    return {f"healthy{number}.example": addresses.site(f"healthy{number}", 1, SiteHabits()) for number in range(count)}


def _envelopes(seed: int, has_load: bool) -> World:
    addresses = Addresses()
    healthy = _healthy(addresses)
    slow = SiteHabits(SiteKind.SLOW, reply_s=1.0, dot_s=1.0)
    sites: dict[str, ReceivingSite | None] = {
        domain(number): addresses.site(f"slow{number}", 1, slow) for number in range(50)
    }
    load = [
        Arrival(BEGINS_S, BIG, b"list%d@big.example" % n, [b"r%d@%b" % (m, domain(m % 50).encode()) for m in range(400)])
        for n in range(15)
    ]
    return World(healthy | sites, load * has_load + _small(seed, 1000, 20.0, BEGINS_S, list(healthy)))


def _tarpit(seed: int, has_load: bool) -> World:
    addresses = Addresses()
    healthy = _healthy(addresses)
    sites: dict[str, ReceivingSite | None] = {
        domain(0): addresses.site("tarpit", 1, SiteHabits(SiteKind.TARPIT, reply_s=30.0, dot_s=30.0))
    }
    load = [Arrival(BEGINS_S, BIG, b"s@big.example", [b"r%d@%b" % (n, domain(0).encode())]) for n in range(3000)]
    return World(healthy | sites, load * has_load + _small(seed, 1000, 20.0, BEGINS_S, list(healthy)))


def _singles(seed: int, has_load: bool) -> World:
    addresses = Addresses()
    healthy = _healthy(addresses)
    slow = SiteHabits(SiteKind.SLOW, reply_s=1.0, dot_s=1.0)
    sites: dict[str, ReceivingSite | None] = {
        domain(number): addresses.site(f"slow{number}", 1, slow) for number in range(60)
    }
    load = [Arrival(BEGINS_S, BIG, b"s@big.example", [b"r%d@%b" % (n, domain(n % 60).encode())]) for n in range(600)]
    return World(healthy | sites, load * has_load + _small(seed, 300, 10.0, BEGINS_S + 15.0, list(healthy)))


def _silent(count: int, senders: int = 1) -> Callable[[int, bool], World]:
    """So many messages to silent domains, of one sender or more in turn."""

    def make(seed: int, has_load: bool) -> World:
        healthy = _healthy(Addresses(), 1000)
        silent: dict[str, ReceivingSite | None] = dict.fromkeys([domain(number) for number in range(count)])
        load = [
            Arrival(BEGINS_S, BIG, b"s%d@big.example" % (n % senders), [b"r@%b" % domain(n).encode()]) for n in range(count)
        ]
        return World(healthy | silent, load * has_load + _small(seed, 1000, 20.0, BEGINS_S, list(healthy)))

    return make


def _local(seed: int, has_load: bool) -> World:
    users = [b"user%d" % number for number in range(1100)]
    load = [Arrival(BEGINS_S, BIG, b"s@big.example", [user + b"@" + LOCAL_DOMAIN for user in users[:1000]])]
    chance, at = random.Random(f"case {seed}"), BEGINS_S
    small = []
    for user in users[1000:]:
        at += chance.expovariate(300.0)
        small.append(Arrival(at, SMALL, b"s%b@sender.example" % user, [user + b"@" + LOCAL_DOMAIN]))
    return World({}, load * has_load + small, frozenset(users))


def _newsletter(seed: int, has_load: bool) -> World:
    addresses = Addresses()
    healthy = _healthy(addresses, 500)
    names = [name.encode() for name in healthy]
    load = [Arrival(BEGINS_S, BIG, b"list@big.example", [b"r%d@%b" % (n, names[n % 500]) for n in range(50_000)])]
    return World(healthy, load * has_load + _small(seed, 1000, 20.0, BEGINS_S, list(healthy)))


CASES = (
    Case("envelopes", "15 envelopes of 400 recipients over 50 hosts, 1 s a reply", _envelopes),
    Case("tarpit", "3,000 messages to one tarpit, 30 s a reply", _tarpit),
    Case(
        "singles",
        "600 messages of one sender to 60 hosts, 1 s a reply, 20 connections; small mail from 15 s later on",
        _singles,
        {"maxconnections": 20},
    ),
    Case(
        "silent-200",
        "200 messages of one sender to domains with silent name servers; small mail needs look-ups",
        _silent(200),
    ),
    Case("silent-2000", "2,000 of them", _silent(2000)),
    Case("silent-senders", "2,000 of them, each of a sender of its own", _silent(2000, 2000)),
    Case("local", "an envelope to 1,000 local users; 100 small messages to other users", _local),
    Case("newsletter", "a message to 50,000 recipients at 500 hosts, 200 connections", _newsletter, {"maxconnections": 200}),
)
