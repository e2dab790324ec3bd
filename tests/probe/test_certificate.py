"""Certificates as people read them, strange ones too."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from mailismus.probe.certificate import MAX_NAMES, CertificateFacts, describe
from tests.fakes.certificates import make_certificate

AT = datetime.datetime(2026, 9, 21, 14, 13, 20, tzinfo=datetime.UTC)
SIGNER = ec.generate_private_key(ec.SECP256R1())


def certificate_of(key: object, *extensions: x509.ExtensionType, name: str = "mx.example") -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key)  # type: ignore[arg-type]
    builder = builder.serial_number(7).not_valid_before(AT).not_valid_after(AT + datetime.timedelta(days=90))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(SIGNER, SHA256())


def test_what_a_certificate_says_is_told() -> None:
    root = make_certificate("root.example")
    made = make_certificate("mx.example", by=root).certificate
    assert describe(made) == CertificateFacts(
        subject="CN=mx.example",
        issuer="CN=root.example",
        names=("mx.example",),
        more_names=0,
        begins_at=made.not_valid_before_utc.timestamp(),
        ends_at=made.not_valid_after_utc.timestamp(),
        key="EC, secp256r1",
        sha256=":".join(f"{byte:02X}" for byte in made.fingerprint(SHA256())),
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rsa.generate_private_key(65537, 2048).public_key(), "RSA, 2048 bits"),
        (lambda: ec.generate_private_key(ec.SECP384R1()).public_key(), "EC, secp384r1"),
        (lambda: ed25519.Ed25519PrivateKey.generate().public_key(), "Ed25519"),
        (lambda: dsa.generate_private_key(2048).public_key(), "DSA, 2048 bits"),
    ],
)
def test_keys_are_described(make: Callable[[], object], words: str) -> None:
    assert describe(certificate_of(make())).key == words


def test_names_and_addresses_are_told_and_not_without_end() -> None:
    names = [x509.DNSName(f"{number}.example") for number in range(500)]
    address = x509.IPAddress(ipaddress.ip_address("2001:db8::1"))
    few = describe(certificate_of(SIGNER.public_key(), x509.SubjectAlternativeName([*names[:2], address])))
    assert (few.names, few.more_names) == (("0.example", "1.example", "2001:db8::1"), 0)
    many = describe(certificate_of(SIGNER.public_key(), x509.SubjectAlternativeName(names)))
    assert (len(many.names), many.more_names) == (MAX_NAMES, 500 - MAX_NAMES)
    assert describe(certificate_of(SIGNER.public_key())).names == ()


def test_an_extension_that_makes_no_sense_is_said_so() -> None:
    oid = x509.SubjectAlternativeName.oid
    facts = describe(certificate_of(SIGNER.public_key(), x509.UnrecognizedExtension(oid, b"\x30\x82\xff")))
    assert facts.names == ("can't be read",)
    assert facts.subject == "CN=mx.example"
