"""The choice of mail hosts: which hosts a domain's records name, in which order, or why there are none (pure).

*Rules* (RFC 5321 5.1):
- MX hosts are ordered by preference, equal ones shuffled. A domain without MX records is its own host, if the policy allows.
  MX records without a usable host are an error, never a reason to use the domain itself.
- The null MX (RFC 7505) and a domain that does not exist are permanent failures. A look-up that failed is temporary: one
  such host makes the result temporary, unless another host can be used.
- If this server is one of the hosts, by name or address, it and all hosts that are no better are dropped (RFC 5321 5.1). If
  none is left, the mail would loop.

*Not here*: queries (`mx`), refused addresses (`addresses`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Sequence

import attrs

from mailismus.dns.addresses import Loopback, order_addresses, to_destination
from mailismus.dns.answer import Answer, Exchange, Status
from mailismus.dns.name import is_host_name
from mailismus.dns.randomness import RandomSource
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import MAX_TEXT, Reply

MAX_HOSTS = 20
MAX_ADDRESSES = 50
"""Limit for all hosts together; each host with an address keeps at least one."""
HOST_NONE = b"none"
_SHOWN = 3
"""Hosts that a reply text names."""
_NOT_PLAIN = re.compile(r"[^ -~]")


@attrs.frozen
class MxHost:
    """One MX host. `name`: absolute, lower case, no final dot; of a literal the address. `is_secure`: the answer that names
    it was authenticated (DNSSEC)."""

    name: str
    preference: int
    addresses: tuple[str, ...]
    is_secure: bool = False


class Fallback(enum.Enum):
    """`<fallbackMX_A>`: whether a domain without MX records is its own mail host, as RFC 5321 5.1 says."""

    NONE = "N"
    ADDRESS = "Y"


@attrs.frozen
class MxPolicy:
    """The settings of this server. `port`: of MX hosts. `own_names`: lower case. `own_endpoints`: where this server listens;
    `0.0.0.0` and `::` mean all addresses of this host. `is_local`: whether an address is one of these."""

    fallback: Fallback = Fallback.ADDRESS
    loopback: Loopback = Loopback.REFUSED
    port: int = 25
    own_names: frozenset[str] = frozenset()
    own_endpoints: frozenset[tuple[str, int]] = frozenset()
    is_local: Callable[[str], bool] = lambda address: False  # default: no address is local

    def is_own(self, addresses: Iterable[str]) -> bool:
        """Whether this server listens at one of these addresses."""
        return any(self._listens_at(address) for address in addresses)

    def _listens_at(self, address: str) -> bool:
        own, port = self.own_endpoints, self.port
        return (address, port) in own or (("::" if ":" in address else "0.0.0.0", port) in own and self.is_local(address))


@attrs.frozen
class Candidates:
    """Hosts whose addresses must be looked up, best first. `is_implicit`: the domain itself, which has no MX record.
    `is_secure`: the answer that says so was authenticated."""

    domain: str
    hosts: tuple[Exchange, ...]
    is_implicit: bool = False
    is_secure: bool = False


@attrs.frozen
class HostAnswers:
    """The address records of one candidate."""

    exchange: Exchange
    v4: Answer
    v6: Answer


def choose_candidates(domain: str, answer: Answer, policy: MxPolicy, random: RandomSource) -> Candidates | Outcome:
    """The candidates that the answer to the MX query names, or the outcome."""
    match answer.status:
        case Status.FAILED | Status.ALIAS:
            return defer(f"no MX record for {domain} now: {answer.text}")
        case Status.NO_NAME:
            return fail(550, b"5.1.2", f"no MX or address for {domain}: {answer.text}")
        case Status.NO_RECORDS if policy.fallback is Fallback.NONE:
            return fail(550, b"5.4.4", f"no MX for {domain}, and its address is not to be used: {answer.text}")
        case Status.NO_RECORDS:
            if not policy.own_names.isdisjoint((domain, answer.name)):
                return _circle(domain, f"{domain} is this server, and has no MX record")
            return Candidates(domain, (Exchange(0, answer.name),), is_implicit=True, is_secure=answer.is_secure)
    if not any(exchange.host for exchange in answer.exchanges):
        return fail(556, b"5.1.10", f"{domain} takes no mail: null MX (RFC 7505)")
    best: dict[str, int] = {}
    for exchange in answer.exchanges:
        if exchange.host:
            best[exchange.host] = min(exchange.preference, best.get(exchange.host, exchange.preference))
    own = [preference for host, preference in best.items() if host in policy.own_names]
    better = [Exchange(preference, host) for host, preference in best.items() if not own or preference < min(own)]
    if not better:
        return _circle(domain, "this server is its best MX host")
    hosts = [exchange for exchange in better if is_host_name(exchange.host)]
    if not hosts:
        return fail(550, b"5.4.4", f"no MX host of {domain} has a name that a host can have: {better[0].host}")
    hosts.sort(key=lambda exchange: (exchange.preference, random.random()))
    return Candidates(domain, tuple(hosts[:MAX_HOSTS]), is_secure=answer.is_secure)


def choose_hosts(
    candidates: Candidates, found: Sequence[HostAnswers], policy: MxPolicy, random: RandomSource
) -> tuple[MxHost, ...] | Outcome:
    """The hosts to try, or the outcome. `found`: the answers for each candidate, in their order."""
    domain = candidates.domain
    hosts: list[MxHost] = []
    unknown: list[str] = []
    useless: list[str] = []
    limit = 1 << 16
    for one in found:
        exchange = one.exchange
        v4, v6 = (
            [usable for usable in (to_destination(address, policy.loopback) for address in answer.addresses) if usable]
            for answer in (one.v4, one.v6)
        )
        is_named = not policy.own_names.isdisjoint((one.v4.name, one.v6.name))
        if is_named or policy.is_own([*v4, *v6]):
            limit = min(limit, exchange.preference)
        elif v4 or v6:
            addresses = order_addresses(v4, v6, random)
            hosts.append(MxHost(exchange.host, exchange.preference, addresses, candidates.is_secure))
        elif Status.FAILED in (one.v4.status, one.v6.status):
            unknown.append((one.v4 if one.v4.status is Status.FAILED else one.v6).text)
        else:
            useless.append(_why_useless(one))
    better = [host for host in hosts if host.preference < limit]
    if better:
        return tuple(_within_limit(better))
    if unknown:
        return defer(f"no address for {domain} now: {_listed(unknown)}")
    if limit < 1 << 16:
        return _circle(domain, "this server is its best MX host")
    if candidates.is_implicit:
        return fail(550, b"5.1.2", f"no MX or address for {domain}: {_listed(useless)}")
    return fail(550, b"5.4.4", f"no MX host of {domain} has an address to send to: {_listed(useless)}")


def choose_literal(literal: str, policy: MxPolicy) -> tuple[MxHost, ...] | Outcome:
    """The host of an address literal, `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 4.1.3)."""
    inner = literal[1:-1]
    is_ipv6 = inner[:5].lower() == "ipv6:"
    address = inner[5:] if is_ipv6 else inner
    usable = to_destination(address, policy.loopback) if is_ipv6 == (":" in address) else None
    if usable is None:
        return fail(550, b"5.1.2", f"{literal} is no address that mail is sent to")
    if policy.is_own([usable]):
        return _circle(literal, "it is this server's own address")
    return (MxHost(usable, 0, (usable,)),)


def defer(text: str) -> Outcome:
    """A temporary outcome for a failed look-up."""
    return Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.3", _clip(text)), HOST_NONE)


def fail(code: int, enhanced: bytes, text: str) -> Outcome:
    """A permanent outcome."""
    return Outcome(OutcomeKind.FAILED, Reply(code, enhanced, _clip(text)), HOST_NONE)


def _circle(domain: str, why: str) -> Outcome:
    return fail(550, b"5.4.6", f"mail for {domain} would go in a circle: {why}")


def _why_useless(one: HostAnswers) -> str:
    addresses = [*one.v4.addresses, *one.v6.addresses]
    if addresses:
        return f"{one.exchange.host} is at {_listed(addresses)}, where no mail is sent"
    if Status.NO_NAME in (one.v4.status, one.v6.status):
        denied = one.v4 if one.v4.status is Status.NO_NAME else one.v6
        return f"{one.exchange.host}: {denied.text}"
    return f"{one.exchange.host}: {one.v4.text}, {one.v6.text}"


def _within_limit(hosts: list[MxHost]) -> Iterable[MxHost]:
    """The hosts with `MAX_ADDRESSES` in all, best hosts first, at least one for each."""
    left = MAX_ADDRESSES
    for after, host in zip(range(len(hosts) - 1, -1, -1), hosts, strict=True):
        kept = host.addresses[: left - after]
        left -= len(kept)
        yield attrs.evolve(host, addresses=kept)


def _listed(texts: list[str]) -> str:
    more = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _clip(text: str) -> bytes:
    return _NOT_PLAIN.sub("?", text).encode("ascii")[:MAX_TEXT]
