"""The resolver of MX hosts: from a recipient's domain to its mail hosts, with addresses, in the order of trial.

*Rules*: MX records first, then A and AAAA of every host at the same time, within `TOTAL_S` in all, or as long as questions
wait for a socket. The result is hosts or an outcome with its reply. It never fails, and may be cancelled.

*Not here*: the decisions (`choice`), dead hosts, connections. RFC 5321 5.1.
"""

from __future__ import annotations

from typing import TypeVar

from dns.rdatatype import RdataType
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from mailismus.dns.choice import HostAnswers, MxHost, MxPolicy, choose_candidates, choose_hosts, choose_literal, defer, fail
from mailismus.dns.client import DnsClient
from mailismus.dns.name import to_ascii
from mailismus.dns.randomness import RandomSource
from mailismus.mail.outcome import Outcome

TOTAL_S = 60.0
"""Time limit for one domain."""

R = TypeVar("R")

__all__ = ["MxHost", "MxPolicy", "MxResolver"]


class MxResolver:
    """Finds mail hosts. `clock`: timers. `random`: shuffles hosts of equal preference, and addresses."""

    def __init__(self, client: DnsClient, policy: MxPolicy, clock: IReactorTime, random: RandomSource) -> None:
        self._client, self._policy, self._clock, self._random = client, policy, clock, random

    def locate(self, domain: str) -> Deferred[tuple[MxHost, ...] | Outcome]:
        """The mail hosts of a domain (a name, UTF-8 too, or an address literal in brackets), best first."""
        located: Deferred[tuple[MxHost, ...] | Outcome] = Deferred.fromCoroutine(self._locate(domain))
        return located if located.called else self._limit(located, domain)

    def known(self, domain: str) -> tuple[MxHost, ...] | Outcome | None:
        """The same, by cached answers; None: they do not tell."""
        return self._client.find_cached(lambda: Deferred.fromCoroutine(self._locate(domain)))

    def _limit(self, located: Deferred[tuple[MxHost, ...] | Outcome], domain: str) -> Deferred[tuple[MxHost, ...] | Outcome]:
        """End this look-up when it takes too long. While questions wait for a socket, none does."""
        limit = _Limit(located, self._client, self._clock)
        limit.begin()

        def end(result: R) -> R | Outcome:
            limit.end()
            return defer(f"the hosts of {domain} took too long to find") if limit.is_over else result

        return located.addBoth(end)

    async def _locate(self, domain: str) -> tuple[MxHost, ...] | Outcome:
        policy = self._policy
        if domain.startswith("["):
            return choose_literal(domain, policy)
        name = to_ascii(domain)
        if name is None:
            return fail(550, b"5.1.2", f"{domain} is no domain")
        candidates = choose_candidates(name, await self._client.query(name, RdataType.MX), policy, self._random)
        if isinstance(candidates, Outcome):
            return candidates
        types = RdataType.A, RdataType.AAAA
        answers = await self._client.query_all((exchange.host, rdtype) for exchange in candidates.hosts for rdtype in types)
        found = [HostAnswers(*of_host) for of_host in zip(candidates.hosts, answers[::2], answers[1::2], strict=True)]
        return choose_hosts(candidates, found, policy, self._random)


class _Limit:
    """The time limit of one look-up."""

    def __init__(self, located: Deferred[tuple[MxHost, ...] | Outcome], client: DnsClient, clock: IReactorTime) -> None:
        self._located, self._client, self._clock = located, client, clock
        self.is_over = False
        self._timer: IDelayedCall | None = None

    def begin(self) -> None:
        """Start the timer."""
        self._timer = self._clock.callLater(TOTAL_S, self._expire)

    def end(self) -> None:
        """Stop the timer."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _expire(self) -> None:
        if self._client.is_crowded:
            self.begin()
        else:
            self.is_over = True
            self._located.cancel()
