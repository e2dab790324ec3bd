"""A certificate as people read it (pure).

*Rules*: everything in a certificate was written by somebody else, and any field may be missing, wrong or very long: what
can't be read is said so in its place, and lists are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtensionOID
from OpenSSL import crypto

T = TypeVar("T")
U = TypeVar("U")

MAX_NAMES = 30
"""Names of a certificate that are shown."""
UNREADABLE = "can't be read"


@attrs.frozen
class CertificateFacts:
    """What a certificate says. `names`: DNS names and IP addresses, at most `MAX_NAMES`; `more_names`: how many there are
    besides. `begins_at`, `ends_at`: UTC seconds; None: they can't be read."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    more_names: int
    begins_at: float | None
    ends_at: float | None
    key: str
    sha256: str


def describe(certificate: x509.Certificate) -> CertificateFacts:
    """Read what a certificate says. Raises nothing."""
    names = _read(lambda: _names_of(certificate), (UNREADABLE,))
    return CertificateFacts(
        subject=_read(lambda: certificate.subject.rfc4514_string(), UNREADABLE),
        issuer=_read(lambda: certificate.issuer.rfc4514_string(), UNREADABLE),
        names=tuple(names[:MAX_NAMES]),
        more_names=max(0, len(names) - MAX_NAMES),
        begins_at=_read(lambda: certificate.not_valid_before_utc.timestamp(), None),
        ends_at=_read(lambda: certificate.not_valid_after_utc.timestamp(), None),
        key=_read(lambda: _key_of(certificate), UNREADABLE),
        sha256=certificate.fingerprint(SHA256()).hex(":").upper(),
    )


def describe_shown(certificate: crypto.X509) -> CertificateFacts:
    """The same of one that a host showed: OpenSSL takes some that can't be read at all. Raises nothing."""
    try:
        return describe(certificate.to_cryptography())
    except (ValueError, x509.InvalidVersion):
        sha256 = certificate.digest("sha256").decode("ascii")
        return CertificateFacts(UNREADABLE, UNREADABLE, (UNREADABLE,), 0, None, None, UNREADABLE, sha256)


def _names_of(certificate: x509.Certificate) -> Sequence[str]:
    try:
        found = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        return ()
    assert isinstance(found, x509.SubjectAlternativeName)
    addresses = found.get_values_for_type(x509.IPAddress)
    return [*found.get_values_for_type(x509.DNSName), *map(str, addresses)]


def _key_of(certificate: x509.Certificate) -> str:
    match certificate.public_key():
        case rsa.RSAPublicKey(key_size=bits):
            return f"RSA, {bits} bits"
        case ec.EllipticCurvePublicKey(curve=curve):
            return f"EC, {curve.name}"
        case ed25519.Ed25519PublicKey():
            return "Ed25519"
        case ed448.Ed448PublicKey():
            return "Ed448"
        case dsa.DSAPublicKey(key_size=bits):
            return f"DSA, {bits} bits"
        case other:
            return type(other).__name__


def _read(read: Callable[[], T], otherwise: U) -> T | U:
    # The library parses as late as possible, and has errors of many classes for bytes that make no sense.
    try:
        return read()
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return otherwise
