"""Hosts that missed what a profile demands, and credentials that were refused. Pure.

*Rules*
- A host that *missed* what a profile demands gets no connection for a time, for that profile alone. For all others it is
  alive: it has answered.
- Credentials that were *refused* are such a miss of every host of their profile, also of those that are found later.
- When there are more than `limit` of a kind, the oldest is forgotten.

Times are monotonic seconds. *Not here*: how long such a time is (`destdb`).
"""

from __future__ import annotations

from collections.abc import Iterable

from mailismus.deliver.schedule.host import Host
from mailismus.deliver.security.profile import Profile
from mailismus.mail.reply import Reply


class MissedHosts:
    """What is remembered of both."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._missed: dict[Host, None] = {}
        """In the order in which they missed what their profile demands."""
        self._refused: dict[Profile, tuple[float, float, Reply]] = {}
        """Profiles whose credentials were refused, in that order: when, until when they are left alone, and why."""

    @property
    def has_refused(self) -> bool:
        """Whether any credentials that were refused wait."""
        return bool(self._refused)

    def refused_until(self, profile: Profile) -> float:
        """Until when the credentials of a profile wait that were refused; 0: they were not."""
        return self._refused[profile][1] if profile in self._refused else 0.0

    # ------------------------------------------------------------------ what happens

    def find(self, host: Host) -> None:
        """Note a host that is new."""
        profile = host.profile
        if profile in self._refused:
            self.miss(host, *self._refused[profile], met_tls=True)

    def stand(self, host: Host) -> None:
        """Note that a session with a host stands."""
        if host.misses:
            self._forget(host)
        if self._refused and host.profile in self._refused:
            self._forget_refused(host.profile)

    def miss(self, host: Host, now: float, until: float, reply: Reply, *, met_tls: bool) -> None:
        """Note that a host missed what its profile demands, and why: it is left alone until then. `met_tls`: what it missed
        is not TLS."""
        host.miss(now, until, reply, met_tls=met_tls)
        self._missed.pop(host, None)
        self._missed[host] = None
        if len(self._missed) > self._limit:
            self._forget(next(iter(self._missed)))

    def refuse(self, profile: Profile, hosts: Iterable[Host], now: float, until: float, reply: Reply) -> None:
        """Note that the credentials of a profile are no good, and why. `hosts`: all that are known for it."""
        self._refused.pop(profile, None)
        self._refused[profile] = now, until, reply
        if len(self._refused) > self._limit:
            self._forget_refused(next(iter(self._refused)))
        for host in hosts:
            self.miss(host, now, until, reply, met_tls=True)

    # ------------------------------------------------------------------ what is forgotten

    def forget_refused(self, profile: Profile) -> None:
        """Try the credentials of a profile again, if they were refused: there are others by now."""
        if profile in self._refused:
            self._forget_refused(profile)

    def forget_of(self, hosts: Iterable[Host]) -> None:
        """Forget what these hosts missed, and that their credentials were refused."""
        found = list(hosts)
        for host in found:
            self._forget(host)
        for profile in {host.profile for host in found}:
            self.forget_refused(profile)

    def forget_all(self) -> None:
        """Forget everything."""
        for profile in list(self._refused):
            self._forget_refused(profile)
        for missed in list(self._missed):
            self._forget(missed)

    def collect(self, before: float, now: float, count: int) -> None:
        """Forget some hosts whose time was over before that moment, and credentials whose time is over now."""
        for missed in [missed for missed, _ in zip(self._missed, range(count), strict=False)]:
            if missed.missed_until <= before:
                self._forget(missed)
        for profile in [profile for profile, _ in zip(self._refused, range(count), strict=False)]:
            if self._refused[profile][1] <= now:
                del self._refused[profile]

    # Internal

    def _forget_refused(self, profile: Profile) -> None:
        """Forget that credentials were refused: they are good, or are to be tried."""
        del self._refused[profile]
        for host in [host for host in self._missed if host.profile is profile]:
            self._forget(host)

    def _forget(self, host: Host) -> None:
        self._missed.pop(host, None)
        host.meet()
