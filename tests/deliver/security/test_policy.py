"""The policy: relay, first matching destination, client; and which names count."""

from __future__ import annotations

import attrs
import pytest

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.config.values.settings import DestinationSettings
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.security.policy import TlsPolicy, requirement_of
from mailismus.deliver.security.profile import NO_NAMES, Profiles, ReferenceNames
from tests.deliver.harness import deliver_settings, relay

ANY = TlsSettings(TlsLevel.OPPORTUNISTIC)
OF_BANK = TlsSettings(TlsLevel.VERIFY, "<tls> in line 7")
OF_RELAY = TlsSettings(TlsLevel.ENCRYPT, "<tls> in line 3")


def policy(*destinations: DestinationSettings, profiles: Profiles | None = None, client: TlsSettings = ANY) -> TlsPolicy:
    settings = deliver_settings(destinations=destinations, client_tls=client)
    return TlsPolicy(settings, Profiles() if profiles is None else profiles)


def destination(domains: str, tls: TlsSettings | None) -> DestinationSettings:
    return DestinationSettings(tuple(domains.encode().split(b",")), None, None, None, 1, tls)


BANK = destination("bank.example,*.bank.example", OF_BANK)


@pytest.mark.parametrize(
    ("domain", "level"),
    [
        (b"bank.example", TlsLevel.VERIFY),
        (b"mail.bank.example", TlsLevel.VERIFY),
        (b"BANK.example", TlsLevel.VERIFY),
        (b"notbank.example", TlsLevel.OPPORTUNISTIC),
    ],
)
def test_a_destination_counts_before_the_client(domain: bytes, level: TlsLevel) -> None:
    assert policy(BANK).of_domain(domain).level is level


def test_the_first_destination_that_matches_counts_if_it_says_nothing_too() -> None:
    quiet = destination("mail.bank.example", None)
    assert policy(quiet, BANK).of_domain(b"mail.bank.example").level is TlsLevel.OPPORTUNISTIC
    assert policy(BANK, quiet).of_domain(b"mail.bank.example").level is TlsLevel.VERIFY


def test_a_relay_counts_before_a_destination_and_that_before_the_client() -> None:
    plain, private = relay("relay.example"), attrs.evolve(relay("relay.example"), tls=OF_RELAY)
    found = policy(BANK)
    assert found.of_relay(private, b"bank.example").level is TlsLevel.ENCRYPT
    by_destination = found.of_relay(plain, b"bank.example").requirement
    assert (by_destination.level, by_destination.names) == (TlsLevel.VERIFY, ReferenceNames(("relay.example",)))
    assert found.of_relay(plain, b"other.example").level is TlsLevel.OPPORTUNISTIC


def test_below_verify_all_domains_have_one_profile() -> None:
    found = policy(BANK)
    assert found.of_domain(b"a.example") is found.of_domain(b"b.example")
    assert found.of_domain(b"a.example") is found.of_relay(relay("relay.example"), b"c.example")
    assert found.of_domain(b"bank.example") is not found.of_domain(b"mail.bank.example")


def test_equal_configurations_have_the_same_profiles_and_others_have_others() -> None:
    profiles = Profiles()
    before = policy(BANK, profiles=profiles)
    same = policy(BANK, profiles=profiles)
    other = policy(destination("bank.example", attrs.evolve(OF_BANK, names=("mx.example",))), profiles=profiles)
    profile = before.of_domain(b"bank.example")
    assert same.of_domain(b"bank.example") is profile
    assert other.of_domain(b"bank.example") is not profile
    assert other.of_domain(b"a.example") is before.of_domain(b"a.example")


@pytest.mark.parametrize(
    ("relay_host", "domain", "written", "names", "server_name"),
    [
        ("", "bank.example", (), ReferenceNames(domain="bank.example"), ""),
        ("", "[192.0.2.1]", (), ReferenceNames(("192.0.2.1",)), ""),
        ("", "[ipv6:2001:db8::1]", (), ReferenceNames(("2001:db8::1",)), ""),
        ("relay.example", "bank.example", (), ReferenceNames(("relay.example",)), ""),
        ("192.0.2.1", "bank.example", (), ReferenceNames(("192.0.2.1",)), ""),
        (
            "relay.example",
            "bank.example",
            ("a.ex", "b.ex"),
            ReferenceNames(("a.ex", "b.ex")),
            "a.ex",
        ),
        ("", "bank.example", ("a.example",), ReferenceNames(("a.example",)), "a.example"),
    ],
)
def test_the_names_that_count(
    relay_host: str, domain: str, written: tuple[str, ...], names: ReferenceNames, server_name: str
) -> None:
    tls = attrs.evolve(OF_BANK, names=written)
    found = requirement_of(tls, relay_host, domain)
    assert (found.names, found.server_name) == (names, server_name)
    weaker = requirement_of(attrs.evolve(tls, level=TlsLevel.ENCRYPT), relay_host, domain)
    assert weaker.names == NO_NAMES


def test_a_domain_in_utf_8_counts_in_a_labels() -> None:
    found = policy(client=OF_BANK).of_domain("bücher.example".encode())
    assert found.requirement.names.domain == "xn--bcher-kva.example"


def test_an_mx_name_counts_only_by_a_secure_answer_and_where_no_name_is_written() -> None:
    of_domain, written = ReferenceNames(domain="bank.example"), ReferenceNames(("a.example",))
    assert of_domain.with_host("mx.example", is_secure=False) is of_domain
    assert of_domain.with_host("mx.example", is_secure=True) == ReferenceNames(("mx.example",), "bank.example")
    assert written.with_host("mx.example", is_secure=True) is written


def test_mail_with_credentials_never_goes_plain() -> None:
    profiles = Profiles()
    requirement = requirement_of(ANY, "relay.example", "a.example")
    assert profiles.of(requirement).may_fall_back
    credentials = AuthSettings(("PLAIN",), "joe", SecretSource("relay.secret", b"1"), None)
    assert not profiles.of(requirement, credentials).may_fall_back
    assert not profiles.of(requirement_of(OF_RELAY, "relay.example", "a.example")).may_fall_back
