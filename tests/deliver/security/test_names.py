"""Names of certificates, beside plain code that follows RFC 6125 and RFC 9525."""

from __future__ import annotations

import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.deliver.security.names import find_mismatch
from mailismus.deliver.security.profile import ReferenceNames
from tests.fakes.certificates import make_certificate

KEY = ec.generate_private_key(ec.SECP256R1())
BASE = make_certificate("x", key=KEY).certificate


def certificate(*names: str) -> x509.Certificate:
    """A certificate for these names and addresses; of a name that is no SAN, its common name alone."""
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    builder = unsigned()
    if found:
        builder = builder.add_extension(x509.SubjectAlternativeName(found), critical=False)
    return builder.sign(KEY, hashes.SHA256())


def unsigned() -> x509.CertificateBuilder:
    """A certificate without extensions that is not signed yet."""
    return (
        x509.CertificateBuilder()
        .subject_name(BASE.subject)
        .issuer_name(BASE.subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(BASE.not_valid_before_utc)
        .not_valid_after(BASE.not_valid_after_utc)
    )


def is_met(names: ReferenceNames, *of_certificate: str) -> bool:
    return not find_mismatch(certificate(*of_certificate), names)


@pytest.mark.parametrize(
    ("of_certificate", "wanted", "is_for_it"),
    [
        ("mx.example", "mx.example", True),
        ("MX.Example", "mx.example", True),
        ("mx.example", "MX.example", True),
        ("*.mail.example", "mx.mail.example", True),
        ("*.mail.example", "a.mx.mail.example", False),  # one label
        ("*.mail.example", "mail.example", False),
        ("*.mail.example", "xn--a.mail.example", False),
        ("mx.example", "mx.example.org", False),
        ("mx.example.org", "mx.example", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8:0::1", True),
    ],
)
def test_an_exact_name(of_certificate: str, wanted: str, is_for_it: bool) -> None:
    assert is_met(ReferenceNames((wanted,)), of_certificate) is is_for_it


@pytest.mark.parametrize(
    ("of_certificate", "is_for_it"),
    [
        ("bank.example", True),
        ("mx.bank.example", True),
        ("a.b.bank.example", True),
        ("*.bank.example", True),
        ("*.mail.bank.example", True),
        ("notbank.example", False),
        ("bank.example.org", False),
        ("example", False),
    ],
)
def test_a_domain_and_what_is_below_it(of_certificate: str, is_for_it: bool) -> None:
    assert is_met(ReferenceNames(domain="bank.example"), of_certificate) is is_for_it


@pytest.mark.parametrize("wide", ["*.example", "*", "mx.*.example", "*x*.mail.example"])
def test_a_wildcard_that_is_too_wide_counts_for_nothing(wide: str) -> None:
    assert not is_met(ReferenceNames(domain="example"), wide)
    assert not is_met(ReferenceNames(("mx.mail.example",)), wide)


def test_a_certificate_without_alternative_names_is_for_no_host() -> None:
    assert find_mismatch(certificate(), ReferenceNames(domain="x")) == "is for no host, not x"
    assert find_mismatch(None, ReferenceNames(("x",))) == "is for no host, not x"


def test_the_reply_says_for_whom_it_is_and_whom_it_should_be_for() -> None:
    names = ReferenceNames(("mx.example", "192.0.2.1"), "bank.example")
    found = find_mismatch(certificate("a.example", "b.example", "192.0.2.9", "c.example", "d.example"), names)
    assert found == "is for a.example, b.example, c.example and 2 more, not bank.example, mx.example, 192.0.2.1"


def test_what_a_certificate_says_can_write_no_line_of_a_log() -> None:
    found = find_mismatch(certificate("a.example\r\n0000000000000001: to=<b@c>"), ReferenceNames(("mx.example",)))
    assert found == "is for a.example??0000000000000001:?to=<b@c>, not mx.example"


def test_a_certificate_with_a_name_of_a_kind_that_nobody_reads_is_for_no_host() -> None:
    san = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30\x02\xa3\x00")  # an x400Address
    odd = unsigned().add_extension(san, critical=False).sign(KEY, hashes.SHA256())
    assert find_mismatch(odd, ReferenceNames(("mx.example",))).startswith("names nobody can rely on (")


def test_a_domain_that_can_be_no_name_is_nobodys() -> None:
    for name in ("", "bad name", "a..b", "*"):
        assert not is_met(ReferenceNames((name,)), "a.example") or not name


# ---------------------------------------------------------------------- beside plain code

LABELS = st.sampled_from(["a", "b", "mx", "xn--a"])
HOSTS = st.lists(LABELS, min_size=2, max_size=4).map(".".join)
PATTERNS = st.one_of(HOSTS, st.lists(LABELS, min_size=2, max_size=3).map(lambda labels: "*." + ".".join(labels)))


def plainly_is_for(pattern: str, host: str) -> bool:
    """RFC 9525 6.3: label by label; a wildcard stands for one whole label, the first, and for no A-label."""
    ours, theirs = pattern.split("."), host.split(".")
    if len(ours) != len(theirs) or ours[1:] != theirs[1:]:
        return False
    return ours[0] == theirs[0] or (ours[0] == "*" and not theirs[0].startswith("xn--"))


def plainly_is_below(pattern: str, domain: str) -> bool:
    """Whether all that a pattern stands for is below a domain."""
    ours, above = pattern.split("."), domain.split(".")
    return len(ours) > len(above) and ours[len(ours) - len(above) :] == above


@settings(max_examples=80)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(HOSTS, max_size=2), st.one_of(st.just(""), HOSTS))
def test_it_says_what_plain_code_says(patterns: list[str], exact: list[str], domain: str) -> None:
    wanted = [*exact, *([domain] if domain else [])]
    expected = any(plainly_is_for(pattern, host) for pattern in patterns for host in wanted) or (
        bool(domain) and any(plainly_is_below(pattern, domain) for pattern in patterns)
    )
    assert is_met(ReferenceNames(tuple(exact), domain), *patterns) is expected
