"""TLS towards other servers, as the configuration says it: levels, and what each `<tls>` demands. Pure.

*Not here*: TLS of listeners (`settings.SslSettings`), what follows for one host (`deliver.security`).
"""

from __future__ import annotations

import enum

import attrs


class TlsLevel(enum.Enum):
    """What a host must show before it gets mail. Each level demands more than the one before."""

    NONE = "none"
    """Nothing: TLS is not used."""
    OPPORTUNISTIC = "opportunistic"
    """Nothing: TLS is used where it works."""
    ENCRYPT = "encrypt"
    """TLS. The certificate is not checked: it protects from readers, not from somebody who pretends to be the host."""
    VERIFY = "verify"
    """TLS with a certificate that is valid now, from a trusted issuer, for a name that counts."""

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up

    @property
    def is_demanded(self) -> bool:
        """Whether mail waits rather than goes without TLS."""
        return self is TlsLevel.ENCRYPT or self is TlsLevel.VERIFY

    def is_below(self, other: TlsLevel) -> bool:
        """Whether it demands less than another level."""
        levels = list(TlsLevel)
        return levels.index(self) < levels.index(other)


class TlsVersion(enum.Enum):
    """`minversion`: the oldest version that is accepted."""

    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"

    __hash__ = object.__hash__  # as above


@attrs.frozen
class TrustStore:
    """`cafile`: the certificates of trusted issuers. `ends_at`: of the one that ends last, UTC seconds."""

    path: str
    ends_at: float
    pem: bytes = attrs.field(repr=False)


@attrs.frozen
class ClientCertificate:
    """`certificate` and `privatekey`: what is shown to hosts that ask for a certificate; checked. The chain is valid from
    `begins_at` to `ends_at` (UTC seconds)."""

    certificate_path: str
    privatekey_path: str
    begins_at: float
    ends_at: float
    chain_pem: bytes = attrs.field(repr=False)
    key_pem: bytes = attrs.field(repr=False)


@attrs.frozen
class TlsSettings:
    """`<tls>`, with what it takes over from that of `<client>`.

    `names`: those that count at `verify`, instead of the usual ones; `trust` None: the system's; `is_immediate`: TLS from
    the start of the connection, without STARTTLS; `demanded_by`: the element that demands the level, as it is named in
    replies.
    """

    level: TlsLevel
    demanded_by: str = "the default of <tls>"
    names: tuple[str, ...] = ()
    minversion: TlsVersion = TlsVersion.TLS_1_2
    trust: TrustStore | None = None
    certificate: ClientCertificate | None = None
    is_immediate: bool = False
