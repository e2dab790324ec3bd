"""The profile: what mail of a next hop demands of a host, and what it shows to it. Pure.

A profile is part of the next hop and of the key of connections: mail goes only over connections that were made for its own
profile. Profiles are interned: of two with the same meaning there is one object, so they are compared and hashed by
identity, which costs the hot path nothing.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import attrs

from mailismus.config.values.auth import AuthSettings
from mailismus.config.values.tls import ClientCertificate, TlsLevel, TlsVersion, TrustStore
from mailismus.deliver.mailboxes import Mailboxes


@attrs.frozen
class ReferenceNames:
    """The names that count. `exact`: names and IP addresses, one of which the certificate must have; `domain`: or the
    name of this domain, or of any host below it, or the name of the MX host if its MX answer is secure; `""`: none."""

    exact: tuple[str, ...] = ()
    domain: str = ""

    def with_host(self, name: str, *, is_secure: bool) -> ReferenceNames:
        """The same for a host that was found by this MX name. `is_secure`: the MX answer was authenticated."""
        if self.domain and is_secure and name not in self.exact:
            return attrs.evolve(self, exact=(*self.exact, name))
        return self

    def describe(self) -> str:
        """As in a reply."""
        return ", ".join((*((self.domain,) if self.domain else ()), *self.exact))


NO_NAMES = ReferenceNames()


@attrs.frozen
class Requirement:
    """What a host must show.

    `names`: those that count at `verify`; `server_name`: sent as SNI, `""`: the host's own name; `trust` None: the system's
    issuers; `certificate`: ours, for hosts that ask for one; `is_immediate`: TLS from the start; `demanded_by`: who demands
    it, as replies name it.
    """

    level: TlsLevel
    demanded_by: str = ""
    names: ReferenceNames = NO_NAMES
    server_name: str = ""
    minversion: TlsVersion = TlsVersion.TLS_1_2
    trust: TrustStore | None = None
    certificate: ClientCertificate | None = None
    is_immediate: bool = False


@attrs.frozen(eq=False)
class Profile:
    """A requirement, and the credentials that are shown once it is met. `mailboxes`: of a host that speaks LMTP; None: it
    speaks SMTP. `Profiles` alone makes one, so that equal ones are one object."""

    requirement: Requirement
    credentials: AuthSettings | None = None
    mailboxes: Mailboxes | None = None

    @property
    def level(self) -> TlsLevel:
        """The level that is demanded."""
        return self.requirement.level

    @property
    def may_fall_back(self) -> bool:
        """Whether mail may go without TLS where TLS does not work."""
        return self.requirement.level is TlsLevel.OPPORTUNISTIC and self.credentials is None


_Meaning = tuple[Requirement, AuthSettings | None, Mailboxes | None]


class Profiles:
    """The profiles in use: one for each meaning. What nobody uses any more is forgotten."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[_Meaning, Profile] = WeakValueDictionary()

    def of(
        self, requirement: Requirement, credentials: AuthSettings | None = None, mailboxes: Mailboxes | None = None
    ) -> Profile:
        """The profile of this meaning."""
        key = requirement, credentials, mailboxes
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Profile(requirement, credentials, mailboxes)
        return known

    def __len__(self) -> int:
        return len(self._known)


PLAIN = Profile(Requirement(TlsLevel.NONE))
"""The profile of what uses no TLS, where nobody says more."""
