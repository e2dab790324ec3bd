"""Certificates that the configuration names: for what each is used, and when it ends (pure).

*Rules*: an end is told as a UTC date and in whole days. A certificate that ends, or has ended, is a warning and refuses no
start: a server that restarts at night must not stay down because of a date.
"""

from __future__ import annotations

import datetime

import attrs

DAY_S = 86400.0
WARN_DAYS = 30
"""Days before its end from which on a certificate is warned about."""


@attrs.frozen
class NamedCertificate:
    """A file of certificates. `use`: what it is for (`listener SMTP`); `line`: where the configuration names it; valid from
    `begins_at` to `ends_at` (UTC seconds), of a chain what ends first."""

    path: str
    use: str
    line: int
    begins_at: float
    ends_at: float


def describe_end(ends_at: float, now: float) -> str:
    """`ends 2027-01-03, in 42 days`, `ended 2026-11-19, 3 days ago`."""
    days = int(abs(ends_at - now) // DAY_S)
    text = f"{days} day" if days == 1 else f"{days} days"
    date = _utc(ends_at).date()
    return f"ends {date}, in {text}" if ends_at >= now else f"ended {date}, {text} ago"


def find_trouble(certificate: NamedCertificate, now: float) -> str:
    """What is to be done about a certificate, as a sentence; empty: nothing."""
    title = f"the certificate {certificate.path} of {certificate.use}"
    if certificate.ends_at - now < WARN_DAYS * DAY_S:
        return f"{title} {describe_end(certificate.ends_at, now)}: replace it and send SIGHUP"
    if certificate.begins_at > now:
        date = f"{_utc(certificate.begins_at):%Y-%m-%d %H:%M:%S}"
        return f"{title} is not valid before {date} UTC: look at the clock of this host, or put one there that is valid now"
    return ""


def _utc(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC)
