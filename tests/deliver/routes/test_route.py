"""Routes: where a recipient goes."""

from __future__ import annotations

import attrs
import pytest

from mailismus.config.values.networks import parse_block
from mailismus.config.values.settings import DestinationSettings, RelaySettings
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.limits.domains import Destinations
from mailismus.deliver.routes.route import MAX_KNOWN, UNKNOWN_USER, HostFinding, Local, NextHop, Router
from mailismus.deliver.security.policy import TlsPolicy
from mailismus.deliver.security.profile import Profiles
from mailismus.mail.ids import SpoolId
from mailismus.mail.networks import Networks
from mailismus.queue.interface import Area, Entry, Message
from tests.deliver.harness import DIRECTORY, deliver_settings, relay


def by_sender(address: str, *senders: bytes, networks: tuple[str, ...] = ()) -> RelaySettings:
    """A relay rule for these senders."""
    blocks = Networks.of(map(parse_block, networks)) if networks else None
    return attrs.evolve(relay(address), senders=senders, sendernets=blocks)


DEFAULT = NextHop("192.0.2.1", 25)
OF_DOMAIN = NextHop("192.0.2.2", 26)
OF_JOE = NextHop("192.0.2.3", 25)
OF_HIS_DOMAIN = NextHop("192.0.2.4", 25)
OF_NETWORK = NextHop("192.0.2.5", 25)
ROUTER = Router(
    DIRECTORY,
    (
        relay("192.0.2.1"),
        relay("192.0.2.2", 26, b"B.example"),
        by_sender("192.0.2.3", b"Joe@c.example", b"ann@n.example"),
        by_sender("192.0.2.4", b"C.example"),
        by_sender("192.0.2.5", b"n.example", b"in@c.example", networks=("10.0.0.0/8", "2001:db8::/32")),
    ),
    25,
)


@pytest.mark.parametrize(
    ("recipient", "route"),
    [
        (b"joe@home.example", Local(b"joe")),
        (b"JOE@HOME.Example", Local(b"joe")),
        (b'"joe"@home.example', Local(b"joe")),
        (b"postmaster@home.example", Local(b"joe")),
        (b"PostMaster", Local(b"joe")),
        (b"nobody@home.example", UNKNOWN_USER),
        (b"joe@b.example", OF_DOMAIN),
        (b"joe@B.EXAMPLE", OF_DOMAIN),
        (b"joe@sub.b.example", DEFAULT),
        (b"joe@[192.0.2.7]", DEFAULT),
    ],
)
def test_routes_by_recipient(recipient: bytes, route: object) -> None:
    assert ROUTER.route(recipient, b"s@a.example", b"192.0.2.99") == route
    assert ROUTER.route(recipient) == route


@pytest.mark.parametrize(
    ("sender", "client", "recipient", "route"),
    [
        (b"joe@c.example", b"192.0.2.99", b"r@b.example", OF_JOE),
        (b"JOE@C.Example", b"192.0.2.99", b"r@x.example", OF_JOE),
        (b"ann@c.example", b"192.0.2.99", b"r@b.example", OF_HIS_DOMAIN),
        (b"ann@C.EXAMPLE", b"192.0.2.99", b"r@x.example", OF_HIS_DOMAIN),
        (b"joe@sub.c.example", b"192.0.2.99", b"r@b.example", OF_DOMAIN),
        (b"", b"192.0.2.99", b"r@b.example", OF_DOMAIN),
        (b"joe@c.example", b"192.0.2.99", b"ann@home.example", Local(b"ann")),
        (b"ann@n.example", b"192.0.2.99", b"r@b.example", OF_JOE),
        (b"bob@n.example", b"10.255.255.255", b"r@b.example", OF_NETWORK),
        (b"bob@n.example", b"11.0.0.0", b"r@b.example", OF_DOMAIN),
        (b"bob@n.example", b"11.0.0.0", b"r@x.example", DEFAULT),
        (b"bob@n.example", b"2001:db8:1::1", b"r@b.example", OF_NETWORK),
        (b"bob@n.example", b"::ffff:10.1.2.3", b"r@b.example", OF_NETWORK),
        (b"bob@n.example", b"-", b"r@b.example", OF_NETWORK),
        (b"in@c.example", b"10.1.2.3", b"r@b.example", OF_NETWORK),
        (b"in@c.example", b"192.0.2.99", b"r@b.example", OF_HIS_DOMAIN),
    ],
)
def test_routes_by_sender_come_first(sender: bytes, client: bytes, recipient: bytes, route: object) -> None:
    assert ROUTER.route(recipient, sender, client) == route


@pytest.mark.parametrize("recipient", [b"joe@b.example", b"joe@B.example"])
def test_what_no_relay_is_for_goes_by_mx(recipient: bytes) -> None:
    router = Router(DIRECTORY, (relay("192.0.2.2", 26, b"a.example"), by_sender("192.0.2.3", b"c.example")), 2525)
    assert router.route(recipient, b"s@d.example") == NextHop("b.example", 2525, HostFinding.MX)
    assert router.route(b"joe@[IPv6:2001:db8::1]") == NextHop("[ipv6:2001:db8::1]", 2525, HostFinding.MX)


def test_a_relay_for_domains_and_senders_is_no_default_relay() -> None:
    both = attrs.evolve(relay("192.0.2.2", 25, b"a.example"), senders=(b"c.example",))
    router = Router(DIRECTORY, (both,), 25)
    assert router.route(b"r@a.example", b"s@d.example") == NextHop("192.0.2.2", 25)
    assert router.route(b"r@x.example", b"s@c.example") == NextHop("192.0.2.2", 25)
    assert router.route(b"r@x.example", b"s@d.example") == NextHop("x.example", 25, HostFinding.MX)


def message_to(*recipients: bytes, sender: bytes = b"s@a.example") -> Message:
    entries = [Entry(number, recipient, Area.INCOMING, 0.0) for number, recipient in enumerate(recipients, 1)]
    return Message(SpoolId(1), sender, b"192.0.2.99", False, 0.0, 100, len(entries), entries)


RECIPIENTS = (
    *(b"a@b.example", b"b@b.example", b"joe@home.example", b"c@b.example", b"d@x.example", b"e@B.Example"),
    *(b"r@postmaster", b"postmaster", b"nobody@home.example", b"f@x.example"),
)


@pytest.mark.parametrize("router", [ROUTER, Router(DIRECTORY, (relay("192.0.2.2", 26, b"b.example"),), 25)])
@pytest.mark.parametrize(
    "recipients",
    [
        RECIPIENTS,
        (b"a@b.example", b"b@b.example", b"c@b.example"),
        (b"a@b.example", b"b@sub.b.example", b"c@bb.example"),
        (b"joe@home.example", b"ann@home.example", b"nobody@home.example"),
        (b"postmaster", b"r@postmaster"),
    ],
)
def test_a_message_is_split_by_next_hop_as_each_recipient_is_routed(router: Router, recipients: tuple[bytes, ...]) -> None:
    for sender in (b"s@a.example", b"ann@c.example"):
        message = message_to(*recipients, sender=sender)
        by_hop, others = router.split(message)
        alone = [(entry, router.route(entry.recipient, sender, message.client)) for entry in message.entries]
        assert others == [(entry, route) for entry, route in alone if not isinstance(route, NextHop)]
        assert by_hop == {
            hop: [entry for entry, route in alone if route == hop] for _, hop in alone if isinstance(hop, NextHop)
        }


def test_what_is_remembered_of_a_domain_is_no_route_of_a_bare_postmaster() -> None:
    router = Router(DIRECTORY, (), 25)
    assert router.route(b"r@postmaster") == NextHop("postmaster", 25, HostFinding.MX)
    assert router.route(b"postmaster") == Local(b"joe")


def test_remembered_domains_are_bounded() -> None:
    router = Router(DIRECTORY, (), 25)
    for number in range(MAX_KNOWN + 10):
        assert router.route(b"r@d%d.example" % number) == NextHop(f"d{number}.example", 25, HostFinding.MX)
    assert len(router._known) <= MAX_KNOWN


def test_a_next_hop_has_the_profile_of_its_mail() -> None:
    bank = DestinationSettings((b"bank.example",), None, None, None, 1, TlsSettings(TlsLevel.VERIFY, "<tls> in line 7"))
    settings = deliver_settings(relay("192.0.2.2", 26, b"a.example", b"bank.example", b"b.example"), destinations=(bank,))
    router = Router(DIRECTORY, settings.relays, 25, TlsPolicy(settings, Profiles()))
    domains = b"a.example", b"b.example", b"bank.example", b"mx.example"
    found = {domain: router.route(b"r@" + domain) for domain in domains}
    hops = {domain: hop for domain, hop in found.items() if isinstance(hop, NextHop)}
    levels = ["opportunistic", "opportunistic", "verify", "opportunistic"]
    assert [hop.profile.level.value for hop in hops.values()] == levels
    assert hops[b"a.example"] is hops[b"b.example"]  # one object, so that jobs are grouped
    assert hops[b"bank.example"] != hops[b"a.example"]
    assert hops[b"bank.example"].profile.requirement.names.exact == ("192.0.2.2",)


def test_a_redirected_entry_goes_to_its_relay_whatever_its_domain() -> None:
    to_known, to_other = b"via=A2:192.0.2.2:26", b"via=A9:other.example:2525,A2:192.0.2.2:26"
    entries = [
        Entry(1, b"joe@home.example", Area.INCOMING, 0.0, words=to_other),
        Entry(2, b"x@b.example", Area.INCOMING, 0.0, words=b"act=A1"),
        Entry(3, b"y@b.example", Area.INCOMING, 0.0, words=to_other),
        Entry(4, b"z@z.example", Area.INCOMING, 0.0, words=to_known),
    ]
    message = Message(SpoolId(1), b"s@a.example", b"-", False, 0.0, 10, 4, entries)
    other = NextHop("other.example", 2525)
    by_hop, others = ROUTER.split(message)
    assert by_hop == {other: [entries[0], entries[2]], OF_DOMAIN: [entries[1], entries[3]]}
    assert others == []
    routes = [ROUTER.route(entry.recipient, message.sender, message.client, entry.words) for entry in entries]
    assert routes == [other, OF_DOMAIN, other, OF_DOMAIN]


def test_redirected_mail_has_the_limits_and_the_tls_of_its_domain() -> None:
    bank = DestinationSettings((b"bank.example",), None, 60, None, 1, TlsSettings(TlsLevel.VERIFY, "<tls> in line 7"))
    settings = deliver_settings(relay("192.0.2.2", 26, b"b.example"), destinations=(bank,))
    router = Router(DIRECTORY, settings.relays, 25, TlsPolicy(settings, Profiles()), Destinations((bank,)))
    hops = {host: router.route(b"x@bank.example", words=b"via=A1:%b:26" % host) for host in (b"192.0.2.2", b"192.0.2.9")}
    for host, hop in hops.items():
        assert isinstance(hop, NextHop)
        assert (hop.host, hop.port, hop.limited_as) == (host.decode(), 26, (b"bank.example",))
        assert hop.profile.requirement.names.exact == (host.decode(),)
        assert router.route(b"x@bank.example", words=b"via=A1:%b:26" % host) is hop
