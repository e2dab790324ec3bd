"""Reports as text and as JSON (pure).

*Rules*: whatever a host says is escaped and cut, line by line: a host may send anything, and a terminal obeys much.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence

from mailismus.config.values.certificates import describe_end
from mailismus.config.values.tls import TlsLevel
from mailismus.observe.text import shown
from mailismus.probe.certificate import UNREADABLE, CertificateFacts
from mailismus.probe.report import HostReport, Way

MAX_SHOWN = 300
"""Characters of one text of a host."""


def way_lines(way: Way) -> Iterator[str]:
    """Return the lines about the next hop."""
    yield _clear(way.title)
    yield _line("route", way.route)
    yield _line("demanded", f"{way.level.value}, by {way.demanded_by}")
    if way.names:
        yield _line("names", f"{_clear(way.names)} (at verify)")


def host_lines(report: HostReport, way: Way, now: float) -> Iterator[str]:
    """Return the lines about one host. `now`: UTC seconds."""
    preference = "" if report.preference is None else f", preference {report.preference}"
    authenticated = ", by an authenticated MX answer" if report.is_secure else ""
    yield ""
    yield f"{_label(report)}{preference}{authenticated}"
    if report.greeting:
        yield from _lines("greeting", report.greeting)
    if report.offers:
        yield _line("offers", _listed(report.offers))
    if report.starttls:
        yield from _lines("STARTTLS", report.starttls)
    if report.tls is not None:
        yield _line("protocol", f"{report.tls.protocol} with cipher {report.tls.cipher}")
        for number, certificate in enumerate(report.tls.chain, 1):
            yield from _certificate_lines(certificate, number, now)
    if report.offers_under_tls:
        yield _line("under TLS", _listed(report.offers_under_tls))
    if report.mechanisms:
        yield _line("AUTH", " ".join(map(_said, report.mechanisms)))
    if report.authentication:
        yield _line("authentication", report.authentication)
    yield _line("level", _level_of(report))
    if report.not_higher and not report.trouble:
        yield _line("not higher", _said(report.not_higher))
    yield _line("mail", _mail_of(report, way))


def last_lines(reports: Sequence[HostReport]) -> Iterator[str]:
    """Return the lines behind the last host."""
    good = sum(not report.trouble for report in reports)
    yield ""
    if len(reports) == 1:
        yield f"1 address; mail {'would' if good else 'would not'} go to it"
    else:
        yield f"{len(reports)} addresses; mail would go to {good or 'none'}"


def host_json(report: HostReport, way: Way) -> str:
    """Return a report as one line of JSON. Times are UTC seconds."""
    tls = report.tls
    return json.dumps(
        {
            "host": _clear(report.name),
            "address": report.address,
            "port": report.port,
            "preference": report.preference,
            "mx_is_authenticated": report.is_secure,
            "route": way.route,
            "demanded": way.level.value,
            "demanded_by": way.demanded_by,
            "names": _clear(way.names),
            "greeting": _said(report.greeting),
            "offers": [_said(line) for line in report.offers],
            "starttls": _said(report.starttls),
            "protocol": tls.protocol if tls else None,
            "cipher": tls.cipher if tls else None,
            "chain": [_certificate_json(certificate) for certificate in tls.chain] if tls else [],
            "offers_under_tls": [_said(line) for line in report.offers_under_tls],
            "auth": [_said(mechanism) for mechanism in report.mechanisms],
            "authentication": report.authentication,
            "level": report.reached.value if report.reached else None,
            "not_higher": _said(report.not_higher),
            "trouble": _said(report.trouble),
        }
    )


def _certificate_json(certificate: CertificateFacts) -> dict[str, object]:
    return {
        "subject": _clear(certificate.subject),
        "issuer": _clear(certificate.issuer),
        "names": [_clear(name) for name in certificate.names],
        "not_before": None if certificate.begins_at is None else int(certificate.begins_at),
        "not_after": None if certificate.ends_at is None else int(certificate.ends_at),
        "key": certificate.key,
        "sha256": certificate.sha256,
    }


def _certificate_lines(certificate: CertificateFacts, number: int, now: float) -> Iterator[str]:
    yield _line(f"certificate {number}", _clear(certificate.subject) or "(no subject)")
    yield _line("  issuer", _clear(certificate.issuer))
    if certificate.names:
        more = f" and {certificate.more_names} more" if certificate.more_names else ""
        yield _line("  names", ", ".join(map(_clear, certificate.names)) + more)
    if certificate.begins_at is None or certificate.ends_at is None:
        yield _line("  dates", UNREADABLE)
    else:
        begin = datetime.datetime.fromtimestamp(certificate.begins_at, datetime.UTC).date()
        yield _line("  dates", f"from {begin}; {describe_end(certificate.ends_at, now)}")
    yield _line("  key", certificate.key)
    yield _line("  SHA-256", certificate.sha256)


def _level_of(report: HostReport) -> str:
    match report.reached:
        case None:
            return "unknown: no session"
        case TlsLevel.NONE:
            return "none: no TLS"
        case TlsLevel.ENCRYPT:
            return "encrypt: TLS, and the certificate was not verified"
        case level:
            return f"{level.value}: TLS with a certificate that was verified"


def _mail_of(report: HostReport, way: Way) -> str:
    return f"does not go here: {_said(report.trouble)}" if report.trouble else f"goes here ({way.level.value})"


def _label(report: HostReport) -> str:
    return f"{_clear(report.name)}[{report.address}]:{report.port}"


def _lines(name: str, reply: bytes) -> Iterator[str]:
    for line in reply.split(b"\n"):
        yield _line(name, _said(line.removesuffix(b"\r")))
        name = ""


def _line(name: str, value: str) -> str:
    return f"  {name + ':' if name else '':<15} {value}".rstrip()


def _listed(lines: Sequence[bytes]) -> str:
    return ", ".join(map(_said, lines))


def _said(text: bytes) -> str:
    return _cut(shown(text[: 4 * MAX_SHOWN]))


def _clear(text: str) -> str:
    return _cut(shown(text[:MAX_SHOWN].encode("utf-8", "backslashreplace")))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
