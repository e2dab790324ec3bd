"""The assessment: from the connections with one address of a host to its report (pure).

*Rules*: the first connection is what the server would make. Where it leaves open how high the host reaches, there is a
second one:

    the first                                        the second
    verify, and the certificate is not trusted       encrypt: to see the certificate
    encrypt or opportunistic, over TLS               verify: to learn whether it would hold
    opportunistic, and TLS fails                     none: as the server would go on
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.config.values.auth import TOKEN_TYPES, AuthSettings
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.authentication.failure import not_offered
from mailismus.probe.report import HostReport, TlsFacts
from mailismus.probe.transcript import GREETING, Transcript
from mailismus.smtp.auth.selection import choose
from mailismus.smtp.client.starttls import TlsFault

_AUTH = b"AUTH "


@attrs.frozen
class ProbedConnection:
    """One connection. `level`: what was demanded; `tls` None: no handshake was completed; `fault`: how TLS failed; `reply`:
    why there is no session, as the log says it; empty: there is one; `words`: its text without who demands it."""

    level: TlsLevel
    transcript: Transcript
    tls: TlsFacts | None
    fault: TlsFault | None
    reply: bytes
    words: bytes


def next_level(first: ProbedConnection) -> TlsLevel | None:
    """The level of a second connection; None: there is none."""
    match first.level:
        case TlsLevel.VERIFY if first.fault is TlsFault.UNTRUSTED:
            return TlsLevel.ENCRYPT
        case TlsLevel.ENCRYPT | TlsLevel.OPPORTUNISTIC if first.tls is not None and not first.reply:
            return TlsLevel.VERIFY
        case TlsLevel.OPPORTUNISTIC if first.fault is not None and first.fault is not TlsFault.INJECTED:
            return TlsLevel.NONE
    return None


def assess(host: HostReport, attempts: Sequence[ProbedConnection]) -> HostReport:
    """Complete a report of a host about which nothing else is known."""
    first, last = attempts[0], attempts[-1]
    best = next((attempt for attempt in attempts if attempt.tls is not None), first)
    transcript = best.transcript
    reached = _reached(attempts)
    offers = transcript.offers(1) or transcript.offers(0)
    is_immediate = best.tls is not None and not transcript.reply_to(b"STARTTLS")
    under_tls = transcript.offers(0 if is_immediate else 1)
    return attrs.evolve(
        host,
        has_answered=any(attempt.transcript.has_bytes for attempt in attempts),
        greeting=transcript.reply_to(GREETING),
        offers=() if is_immediate else transcript.offers(0),
        starttls=transcript.reply_to(b"STARTTLS"),
        tls=best.tls,
        offers_under_tls=under_tls,
        mechanisms=_mechanisms(offers),
        reached=reached,
        trouble=last.reply if last.level is TlsLevel.NONE else first.reply,
        not_higher=b"" if reached is TlsLevel.VERIFY else _why_not_higher(attempts),
    )


def assess_authentication(report: HostReport, credentials: AuthSettings | None, label: bytes) -> HostReport:
    """Complete a report by what is known of the credentials that mail would show there, without showing them: whether the
    host offers a mechanism for them. `label`: the host as logged. That the channel can be bound is taken for granted."""
    if credentials is None or report.trouble:
        return report
    offered = {mechanism.decode("ascii", "replace") for mechanism in report.mechanisms}
    mechanism = choose(credentials.types, offered, can_bind=True)
    if mechanism is None:
        words = f"none of {' '.join(credentials.types)} is offered"
        return attrs.evolve(report, authentication=words, trouble=bytes(not_offered(label, offered).reply))
    shown = "token" if mechanism in TOKEN_TYPES else "password"
    verb = "use" if mechanism.startswith("SCRAM") else "show"
    return attrs.evolve(report, authentication=f"not tried (it would {verb} the {shown})")


def _reached(attempts: Sequence[ProbedConnection]) -> TlsLevel | None:
    if any(one.level is TlsLevel.VERIFY and one.tls is not None and one.fault is None for one in attempts):
        return TlsLevel.VERIFY
    if any(one.tls is not None and one.fault in (None, TlsFault.WRONG_NAME) for one in attempts):
        return TlsLevel.ENCRYPT
    if any(one.fault is not None or not one.reply for one in attempts):
        return TlsLevel.NONE
    return None


def _why_not_higher(attempts: Sequence[ProbedConnection]) -> bytes:
    first = attempts[0]
    for one in attempts:
        if one.level is TlsLevel.VERIFY:
            return one.words
    if first.words:
        return first.words
    if first.level is TlsLevel.NONE:
        return b"TLS is not used"
    reply = first.transcript.reply_to(b"STARTTLS")
    return b"host refused to start TLS: " + reply.replace(b"\n", b" ") if reply else b"TLS was not offered"


def _mechanisms(offers: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(word for line in offers if line.upper().startswith(_AUTH) for word in line.upper().split()[1:])
