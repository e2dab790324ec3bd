"""Ends of certificates: a metric for each file that the configuration names, and a line in the log once a day when one ends
soon.

*Not here*: reading certificates (`config.read.certificates`), and the sentences (`config.values.certificates`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.config.values.certificates import DAY_S, NamedCertificate, find_trouble
from mailismus.observe.metrics import Metric, gauge


class CertificateEnds:
    """Watches the certificates of one server. `clock`: UTC seconds, and timers that do not jump."""

    _log = Logger()

    def __init__(self, certificates: Iterable[NamedCertificate], clock: IReactorTime) -> None:
        self._clock = clock
        self._certificates = _each_once(certificates)
        self._timer: IDelayedCall | None = None

    def start(self) -> None:
        """Log those that end soon, now and once a day."""
        for certificate in self._certificates.values():
            trouble = find_trouble(certificate, self._clock.seconds())
            if trouble:
                self._log.warn("{trouble}", trouble=trouble[0].upper() + trouble[1:])
        self._timer = self._clock.callLater(DAY_S, self.start)

    def adopt(self, certificates: Iterable[NamedCertificate]) -> None:
        """Watch these from now on: the configuration was reloaded."""
        self.stop()
        self._certificates = _each_once(certificates)
        self.start()

    def stop(self) -> None:
        """Log nothing more."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def by_path(self) -> Mapping[tuple[str, ...], float]:
        """UTC seconds of each end."""
        return {(path,): certificate.ends_at for path, certificate in self._certificates.items()}


def _each_once(certificates: Iterable[NamedCertificate]) -> dict[str, NamedCertificate]:
    """Certificates by path: of those for several uses, the first."""
    found: dict[str, NamedCertificate] = {}
    for certificate in certificates:
        found.setdefault(certificate.path, certificate)
    return found


METRICS: tuple[Metric[CertificateEnds], ...] = (
    gauge(
        "mailismus_certificate_expiry_timestamp_seconds",
        "When the certificate in a file ends, in UTC seconds; of a chain, what ends first.",
        lambda ends: ends.by_path(),
        "path",
    ),
)
