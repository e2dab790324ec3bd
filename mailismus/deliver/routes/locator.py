"""The locator: the hosts of a next hop by preference: a relay's addresses, or a domain's MX hosts.

*Rules*: hosts of equal preference share the load, whatever their order; all addresses of a relay are equal. A failure is an
Outcome for all mail of the next hop, never an exception. Known hosts are returned at once. If a relay's name can't be looked
up any more, its last addresses stay in use; relays come from the configuration alone, so that is bounded.

*Not here*: how names are looked up and how long an answer is valid (`dns`), which host is chosen (`schedule`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from mailismus.deliver.routes.route import HOST_NONE, HostFinding, NextHop
from mailismus.dns.addresses import is_address
from mailismus.dns.mx import MxHost
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply

Located = Sequence[MxHost] | Outcome
"""The hosts, or the outcome for all mail of the next hop."""

T = TypeVar("T")

UNKNOWN = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.3", b"the hosts can't be looked up now"), HOST_NONE)


class MxLookup(Protocol):
    """Looks up the hosts of domains and address literals; implemented by `dns.mx.MxResolver`."""

    def locate(self, domain: str) -> Deferred[tuple[MxHost, ...] | Outcome]:
        """The hosts, or the outcome for its mail. Never fails."""

    def known(self, domain: str) -> tuple[MxHost, ...] | Outcome | None:
        """The same, by cached answers; None: they do not tell."""


class HostLookup(Protocol):
    """Looks up the addresses of host names; implemented by `dns.hosts.HostResolver`."""

    def find(self, host: str) -> Deferred[tuple[str, ...] | Outcome]:
        """The addresses, at least one, or why there are none now. Never fails."""

    def known(self, host: str) -> tuple[str, ...] | Outcome | None:
        """The same, by cached answers; None: they do not tell."""


class Locator:
    """Finds hosts of relays by `relays`, of domains by `mx`."""

    _log = Logger()

    def __init__(
        self,
        relays: HostLookup,
        mx: MxLookup,
        forget: Callable[[], None] = lambda: None,
        press: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._relays, self._mx = relays, mx
        self.forget = forget
        """Drop cached answers: they may be older than they seem."""
        self.press = press
        """Note whether look-ups wait until others end: these have less time then."""
        self._known: dict[str, tuple[MxHost, ...]] = {}

    def locate(self, next_hop: NextHop) -> Located | Deferred[Located]:
        """The hosts of a next hop, without a Deferred if they are known. Never raises, never fails; may be cancelled, and is
        an outcome then."""
        written = _written(next_hop)
        if written is not None:
            return written
        return _unwrap(Deferred.fromCoroutine(self._locate(next_hop)))

    def known(self, next_hop: NextHop) -> Located | None:
        """The same without asking name servers; None: they have to be asked. Never raises."""
        host = next_hop.host
        written = _written(next_hop)
        if written is not None:
            return written
        try:
            if next_hop.finding is HostFinding.MX:
                return self._mx.known(host)
            found = self._relays.known(host)
            return None if found is None else self._relay(host, found)
        except Exception:  # a bug must not block the mail
            self._log.failure("The hosts of {host} could not be looked up", host=host)
            return UNKNOWN

    async def _locate(self, next_hop: NextHop) -> Located:
        try:
            if next_hop.finding is HostFinding.MX:
                return await self._mx.locate(next_hop.host)
            return self._relay(next_hop.host, await self._relays.find(next_hop.host))
        except CancelledError:
            return UNKNOWN
        except Exception:  # a bug must not block the mail
            self._log.failure("The hosts of {host} could not be looked up", host=next_hop.host)
            return UNKNOWN

    def _relay(self, host: str, found: tuple[str, ...] | Outcome) -> Located:
        if not isinstance(found, Outcome):
            self._known[host] = (MxHost(host, 0, found),)
        elif host in self._known:
            words = bytes(found.reply).decode("ascii", "replace")
            self._log.warn("The addresses that {host} had are used on: {reply}", host=host, reply=words)
        else:
            return found
        return self._known[host]


def _written(next_hop: NextHop) -> Located | None:
    """The host of a next hop that is an address or a path; None: it has to be looked up."""
    host = next_hop.host
    if next_hop.finding is HostFinding.ADDRESS and is_address(host):
        return (MxHost(host, 0, (host,)),)
    return (MxHost("localhost", 0, (host,)),) if next_hop.finding is HostFinding.SOCKET else None


@attrs.frozen
class _Nothing:
    """No result yet."""


def _unwrap(deferred: Deferred[T]) -> T | Deferred[T]:
    """The result of a Deferred that has fired; otherwise the Deferred."""
    result: T | _Nothing = _Nothing()

    def keep(value: T) -> T:
        nonlocal result
        result = value
        return value

    deferred.addCallback(keep)
    return deferred if isinstance(result, _Nothing) else result
