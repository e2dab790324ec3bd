"""Certificates made for a test: self-signed, or signed by another of these; keys of an elliptic curve, or a test's own."""

from __future__ import annotations

import base64
import datetime
import textwrap

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@attrs.frozen
class Made:
    """A certificate and its key, and both in PEM."""

    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def make_certificate(
    name: str = "mx.example",
    days: float = 90,
    begins_in_days: float = -30,
    by: Made | None = None,
    key: Key | None = None,
) -> Made:
    """For the host `name`, valid so many days from now on."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=min(begins_in_days, days - 1)))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(by.key if by else key, hashes.SHA256())
    )
    return Made(certificate, key)


@attrs.frozen
class Unreadable(Made):
    """One of an X.509 version that there is not: OpenSSL takes it where it verifies nothing, cryptography does not."""

    @property
    def pem(self) -> bytes:
        lines = textwrap.fill(base64.b64encode(self.der).decode("ascii"), 64)
        return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n".encode("ascii")

    @property
    def der(self) -> bytes:
        return super().der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05", 1)
