"""Advice: certificates that end soon, have ended or have not begun (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mailismus.config.advice.sentence import Advice, warn
from mailismus.config.values.certificates import NamedCertificate, find_trouble


def advise_certificates(certificates: Iterable[NamedCertificate], now: float) -> Iterator[Advice]:
    """A warning for each that needs to be replaced. `now`: UTC seconds."""
    for certificate in certificates:
        trouble = find_trouble(certificate, now)
        if trouble:
            yield warn(certificate.line, trouble)
