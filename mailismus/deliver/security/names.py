"""Names of certificates: whether one is for a name that counts (RFC 6125, RFC 9525). Pure.

service-identity reads the names of a certificate and compares them: subject alternative names alone, and a wildcard stands
for one whole label, the first. *Below* a domain are the names that end with a dot and the domain, wildcards too: whatever
such a wildcard stands for is below the domain.
"""

from __future__ import annotations

import ipaddress

from cryptography import x509
from service_identity.cryptography import extract_patterns
from service_identity.exceptions import CertificateError, VerificationError
from service_identity.hazmat import (
    DNS_ID,
    CertificatePattern,
    DNSPattern,
    IPAddress_ID,
    IPAddressPattern,
    verify_service_identity,
)

from mailismus.deliver.security.profile import ReferenceNames

SHOWN = 3
"""Names that a reply tells."""


def find_mismatch(certificate: x509.Certificate | None, names: ReferenceNames) -> str:
    """`is for A, not B` if a certificate is for none of these names, in printable ASCII; empty: it is for one."""
    try:
        patterns = [] if certificate is None else list(extract_patterns(certificate))
    except (CertificateError, ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        return f"names nobody can rely on ({error}), not {names.describe()}"
    if _is_below(patterns, names.domain) or any(_is_for(patterns, name) for name in (names.domain, *names.exact) if name):
        return ""
    found = [text for text in map(_show, patterns) if text]
    shown = ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
    return f"is for {shown or 'no host'}, not {names.describe()}"


def _is_for(patterns: list[CertificatePattern], name: str) -> bool:
    try:
        verify_service_identity(patterns, [_service_of(name)], [])
    except (CertificateError, VerificationError, ValueError):
        return False
    return True


def _service_of(name: str) -> DNS_ID | IPAddress_ID:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return DNS_ID(name)
    return IPAddress_ID(str(address))


def _is_below(patterns: list[CertificatePattern], domain: str) -> bool:
    suffix = b"." + domain.encode("ascii", "replace").lower()
    return bool(domain) and any(
        isinstance(pattern, DNSPattern) and pattern.pattern.endswith(suffix) and len(pattern.pattern) > len(suffix)
        for pattern in patterns
    )


def _show(pattern: CertificatePattern) -> str:
    if isinstance(pattern, DNSPattern):  # any bytes may stand in a certificate, line ends too
        return "".join(chr(byte) if 32 < byte < 127 else "?" for byte in pattern.pattern)
    return str(pattern.pattern) if isinstance(pattern, IPAddressPattern) else ""
