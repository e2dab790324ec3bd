"""The world of a forecast: sites of the next hops of a queue, made when they are asked for.

*Rules*: domains whose hosts have the same addresses share a site. Of a domain whose hosts are not known a host of its own is
assumed. A host is dead for the whole forecast if it is dead now, or is left out (`without`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from mailismus.deliver.knowledge.hop_habits import class_of
from mailismus.deliver.knowledge.host_records import HostRecord, parse_line
from mailismus.deliver.routes.route import HostFinding, NextHop
from mailismus.dns.addresses import is_address
from mailismus.dns.mx import MxHost
from mailismus.mail.address import domain_of
from mailismus.observe.habits import AttemptClass, Habits, HopHabits, HostHabits
from mailismus.plan import fit
from mailismus.plan.clock import STARTS_AT
from mailismus.plan.recipients import RecipientAnswers
from mailismus.plan.site import ReceivingSite, SiteKind
from mailismus.queue.interface import Entry, Message

LABEL = re.compile(r"([^ \[\]]*)\[([0-9A-Fa-f.:]+)\]:([0-9]{1,5})")
"""A host as it is logged."""
MAX_HOSTS = 8
MAX_ATTEMPTS = 100
"""Attempts whose delays are added up."""
Key = tuple[str, str, int]
"""How the hosts are found, name and port; of a domain the port is 0: its hosts are not found by that."""


def key_of(next_hop: NextHop) -> Key:
    """The key of a next hop."""
    is_mx = next_hop.finding is HostFinding.MX
    return next_hop.finding.value, next_hop.host.lower(), 0 if is_mx else next_hop.port


class ForecastWorld:
    """Name servers' answers and sites. `mx_port`: of hosts that are found by MX."""

    def __init__(self, habits: Habits, mx_port: int, seed: int, without: str = "") -> None:
        self._seed, self._mx_port, self._without = seed, mx_port, without.lower().rstrip(".")
        self._hops: dict[Key, HopHabits] = {}
        for hop in habits.hops:
            is_mx = hop.finding == HostFinding.MX.value
            self._hops[hop.finding, hop.host.lower(), 0 if is_mx else hop.port] = hop
        self._hosts: dict[tuple[str, int], HostHabits] = {(host.address, host.port): host for host in habits.hosts}
        parsed = [parse_line(line) for line in habits.dead]
        self.records: dict[tuple[str, int], HostRecord] = {one.key: one for one in parsed if one is not None}
        self._labels: dict[Key, dict[tuple[str, str, int], None]] = {}
        """Names, addresses and ports of hosts, as last replies name them."""
        self._sites: dict[frozenset[tuple[str, int]], ReceivingSite] = {}
        self._by_key: dict[Key, ReceivingSite | None] = {}
        self._at: dict[tuple[str, int], ReceivingSite] = {}
        self._answers: dict[Key, RecipientAnswers] = {}
        self._silent: set[Key] = set()
        """Next hops whose hosts can't be looked up."""
        self._made = 0
        self.met_without = False
        """Whether the host that is left out was met."""
        for key, hop in self._hops.items():
            for label in hop.labels:
                self._add_label(key, label)

    # ------------------------------------------------------------------ what is known of waiting entries

    def remember(self, next_hop: NextHop, message: Message, entry: Entry, delays_s: Sequence[float]) -> None:
        """Note what a waiting entry of a next hop got at its last attempt."""
        if entry.reply is None:
            return
        key, found = key_of(next_hop), class_of(entry.reply)
        label = entry.host.decode("ascii", "replace")
        if "[" in label:
            self._add_label(key, label)
        elif entry.reply.enhanced == b"4.4.3":
            self._silent.add(key)
        if found is AttemptClass.UNREACHED:
            for named in LABEL.finditer(entry.reply.text.decode("ascii", "replace")):
                self._add_label(key, named[0])
        waited_s = 1.1 * sum(delays_s[min(n, len(delays_s) - 1)] for n in range(min(entry.attempts, MAX_ATTEMPTS)))
        since = min(max(message.received_at, entry.due_at - waited_s), STARTS_AT)
        said = bytes(entry.reply)
        self._answers_of(key).remember(message.sender, entry.final_recipient, found, since, said)

    def _add_label(self, key: Key, label: str) -> None:
        found = LABEL.fullmatch(label)
        labels = self._labels.setdefault(key, {})
        if found is not None and len(labels) < MAX_HOSTS:
            labels[found[1].lower(), found[2], int(found[3])] = None

    def _answers_of(self, key: Key) -> RecipientAnswers:
        answers = self._answers.get(key)
        if answers is None:
            chance = random.Random(f"{self._seed} {key}")
            answers = self._answers[key] = RecipientAnswers(self._hops.get(key), chance)
        return answers

    # ------------------------------------------------------------------ as names and network ask

    def site_of_domain(self, domain: str) -> ReceivingSite | None:
        """The site of a domain's mail hosts; None: no name server answers."""
        return self.site_of((HostFinding.MX.value, domain.lower(), 0))

    def addresses_of(self, host: str) -> tuple[str, ...]:
        """The addresses of a relay."""
        for key, site in self._by_key.items():
            if site is not None and key[:2] == (HostFinding.ADDRESS.value, host.lower()):
                return tuple(address for found in site.hosts for address in found.addresses)
        return (self._new_address(),)

    def site_at(self, address: str, port: int) -> ReceivingSite:
        """The site at an address and port."""
        site = self._at.get((address, port))
        if site is None:
            finding = HostFinding.ADDRESS if port else HostFinding.SOCKET
            site = self._make_site((finding.value, address.lower(), port), [(address, address, port)])
        return site

    def site_of(self, key: Key) -> ReceivingSite | None:
        """The site of a next hop; None: its hosts can't be looked up."""
        if key in self._by_key:
            return self._by_key[key]
        labels = list(self._labels.get(key, ()))
        if key[0] == HostFinding.SOCKET.value or (key[0] == HostFinding.ADDRESS.value and is_address(key[1])):
            labels = [(key[1], key[1], key[2])]
        site: ReceivingSite | None = None
        if labels or key not in self._silent:
            port = key[2] or self._mx_port
            site = self._make_site(key, labels or [(key[1], self._new_address(), port)])
        self._by_key[key] = site
        return site

    def told_of(self, key: Key) -> list[str]:
        """What is known of a next hop that limits it, in words."""
        site = self._by_key.get(key)
        if site is None:
            return ["its hosts can't be looked up"] if key in self._silent else []
        if site.dead and len(site.dead) == sum(len(host.addresses) for host in site.hosts):
            return ["does not answer"]
        return fit.said_of([self._hops[key]] if key in self._hops else [], site.habits)

    # ------------------------------------------------------------------ internal

    def _new_address(self) -> str:
        """An address of a host that is not known."""
        self._made += 1
        return f"unknown-{self._made}"

    def _make_site(self, key: Key, hosts: Sequence[tuple[str, str, int]]) -> ReceivingSite:
        places = frozenset((address, port) for _, address, port in hosts)
        known = self._sites.get(places) or next((self._at[place] for place in places if place in self._at), None)
        if known is not None:
            return known
        hops = [hop for other, hop in self._hops.items() if other == key or self._is_at(other, places)]
        habits = fit.habits_of(hops, [self._hosts[place] for place in sorted(places) if place in self._hosts])
        chance = random.Random(f"{self._seed} {sorted(places)}")
        found = [MxHost(name or address, 10, (address,)) for name, address, _ in sorted(hosts)]
        site = ReceivingSite(key[1], found, habits, _Answerer(self, key), fit.drawn_dots(hops, habits, chance.choice))
        for name, address, port in hosts:
            told = self._hosts.get((address, port))
            if told is not None:
                site.under_way[address] = [chance.random() for _ in range(told.under_way)]
            kind = self._death_of(name, address, port, key)
            if kind is not None:
                site.kill(address, kind)
        self._sites[places] = site
        for place in places:
            self._at[place] = site
        return site

    def _is_at(self, key: Key, places: frozenset[tuple[str, int]]) -> bool:
        return any((address, port) in places for _, address, port in self._labels.get(key, ()))

    def _death_of(self, name: str, address: str, port: int, key: Key) -> SiteKind | None:
        """How a host is dead; None: it is not."""
        if self._without and self._without in (name, address, f"{address}:{port}", f"[{address}]:{port}", key[1]):
            self.met_without = True
            return SiteKind.DEAD
        record, host = self.records.get((address, port)), self._hosts.get((address, port))
        if record is None or not record.failures:
            return None
        is_mute = host is not None and host.failure_s >= fit.MUTE_S
        return SiteKind.MUTE if is_mute else SiteKind.DEAD

    def answer(self, key: Key, sender: bytes, recipient: bytes, now: float) -> bytes | None:
        """The reply to RCPT at the site of this next hop, which may be that of other domains too."""
        if key[0] == HostFinding.MX.value:
            key = key[0], domain_of(recipient).decode("ascii", "replace"), 0
        return self._answers_of(key).answer(sender, recipient, now)

    def preload(self, now: float) -> None:
        """Count the messages of the last minute at all sites with a rate."""
        for key, hop in self._hops.items():
            site = self._by_key.get(key)
            if site is not None and site.habits.most_a_minute:
                site.preload([now - age - 0.5 for age, count in enumerate(hop.last_minute) for _ in range(count)])


class _Answerer:
    """The answers of one site, as `site.Answers`."""

    __slots__ = ("_key", "_world")

    def __init__(self, world: ForecastWorld, key: Key) -> None:
        self._world, self._key = world, key

    def __call__(self, sender: bytes, recipient: bytes, now: float) -> bytes | None:
        return self._world.answer(self._key, sender, recipient, now)
