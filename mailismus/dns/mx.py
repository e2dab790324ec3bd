"""The resolver of MX hosts: from a recipient's domain to its mail hosts, with addresses, in the order of trial.

*Rules*: MX records first, then A and AAAA of every host at the same time, within `TOTAL_S` in all. The result is hosts or an
outcome with its reply. It never fails, and may be cancelled.

*Not here*: the decisions (`choice`), dead hosts, connections. RFC 5321 5.1.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.dns.answer import RecordType
from mailismus.dns.choice import HostAnswers, MxHost, MxPolicy, choose_candidates, choose_hosts, choose_literal, defer, fail
from mailismus.dns.client import DnsClient
from mailismus.dns.name import to_ascii
from mailismus.dns.randomness import RandomSource
from mailismus.mail.outcome import Outcome

TOTAL_S = 60.0
"""Time limit for one domain."""

__all__ = ["MxHost", "MxPolicy", "MxResolver"]


class MxResolver:
    """Finds mail hosts. `clock`: timers. `random`: shuffles hosts of equal preference, and addresses."""

    def __init__(self, client: DnsClient, policy: MxPolicy, clock: IReactorTime, random: RandomSource) -> None:
        self._client, self._policy, self._clock, self._random = client, policy, clock, random

    def locate(self, domain: str) -> Deferred[tuple[MxHost, ...] | Outcome]:
        """The mail hosts of a domain (a name, UTF-8 too, or an address literal in brackets), best first."""
        located: Deferred[tuple[MxHost, ...] | Outcome] = Deferred.fromCoroutine(self._locate(domain))
        return located.addTimeout(TOTAL_S, self._clock, lambda *_: defer(f"the hosts of {domain} took too long to find"))

    async def _locate(self, domain: str) -> tuple[MxHost, ...] | Outcome:
        policy = self._policy
        if domain.startswith("["):
            return choose_literal(domain, policy)
        name = to_ascii(domain)
        if name is None:
            return fail(550, b"5.1.2", f"{domain} is no domain")
        candidates = choose_candidates(name, await self._client.query(name, RecordType.MX), policy, self._random)
        if isinstance(candidates, Outcome):
            return candidates
        types = RecordType.A, RecordType.AAAA
        answers = await self._client.query_all((exchange.host, rdtype) for exchange in candidates.hosts for rdtype in types)
        found = [HostAnswers(*of_host) for of_host in zip(candidates.hosts, answers[::2], answers[1::2], strict=True)]
        return choose_hosts(candidates, found, policy, self._random)
