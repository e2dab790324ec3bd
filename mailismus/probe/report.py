"""Reports: what a probe found at one host, and what follows for the whole next hop (pure).

*Rules*: bytes of a host stay as they came, at most `MAX_LINES` lines; `render` makes them harmless.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from mailismus.config.values.tls import TlsLevel
from mailismus.probe.certificate import CertificateFacts

MAX_LINES = 50
"""Lines of a reply of a host that are kept."""


@attrs.frozen
class Way:
    """How hosts were found and what they must show. `title`: what was asked for; `route`: which rule leads to the hosts;
    `names`: names that count at `verify`; empty: none."""

    title: str
    route: str
    level: TlsLevel
    demanded_by: str
    names: str


@attrs.frozen
class TlsFacts:
    """A TLS connection: `TLSv1.3`, the cipher, and the certificates in the order in which the host sent them."""

    protocol: str
    cipher: str
    chain: tuple[CertificateFacts, ...]


@attrs.frozen
class HostReport:
    """What one address of one host showed.

    `preference`: of its MX record; None: it has none. `is_secure`: found by an MX answer that was authenticated, so that
    its own name counts. `has_answered`: anything came from it. `greeting`, `starttls`: replies; empty: there was none.
    `offers`: lines of the reply to EHLO before TLS, `offers_under_tls`: after. `mechanisms`: of AUTH, as offered last.

    `authentication`: what can be said of the credentials that mail would show; empty: there are none, or no session.

    `reached`: the highest level that the host reached; None: no session. `trouble`: why no mail goes to the host, in the
    words of the log; empty: mail goes. `not_higher`: why a higher level was not reached; empty: there is none.
    """

    name: str
    address: str
    port: int
    preference: int | None
    is_secure: bool = False
    has_answered: bool = False
    greeting: bytes = b""
    offers: tuple[bytes, ...] = ()
    starttls: bytes = b""
    tls: TlsFacts | None = None
    offers_under_tls: tuple[bytes, ...] = ()
    mechanisms: tuple[bytes, ...] = ()
    authentication: str = ""
    reached: TlsLevel | None = None
    trouble: bytes = b""
    not_higher: bytes = b""


class ProbeVerdict(enum.Enum):
    """What all hosts of a next hop come to."""

    GOOD = "each host that answers shows what is demanded"
    MISSED = "a host answers, and does not show it, or takes no mail"
    SILENT = "no host answers"


def judge(reports: Sequence[HostReport]) -> ProbeVerdict:
    """What these hosts come to. A host that does not answer counts only if no other does: not every network has IPv6."""
    answered = [report for report in reports if report.has_answered]
    if not answered:
        return ProbeVerdict.SILENT
    return ProbeVerdict.MISSED if any(report.trouble for report in answered) else ProbeVerdict.GOOD
