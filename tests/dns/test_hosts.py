"""Names of relays."""

from __future__ import annotations

import pathlib
from typing import Any

from mailismus.dns.hosts import HostResolver
from mailismus.dns.system import SystemHosts
from mailismus.mail.outcome import Outcome, OutcomeKind
from tests.dns.network import SOA, Network, results_of


class Relays:
    """A resolver in a network in memory, with a hosts file."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "hosts"
        path.write_text("192.0.2.7 known.example\n")
        self.network = Network()
        self.resolver = HostResolver(
            self.network.client, SystemHosts(self.network.reactor.seconds, str(path)), self.network.random
        )

    def find(self, host: str) -> list[Any]:
        return results_of(self.resolver.find(host))

    def outcome(self, host: str, *records: str, rcode: int = 0) -> Outcome:
        result = self.find(host)
        for socket in self.network.open:
            socket.answer(*records, rcode=rcode)
        assert isinstance(result[0], Outcome)
        return result[0]


def test_the_hosts_file_comes_first(tmp_path: pathlib.Path) -> None:
    relays = Relays(tmp_path)
    assert relays.find("Known.Example") == [("192.0.2.7",)]
    assert relays.network.udp == []


def test_both_families_are_asked_for_and_any_address_will_do(tmp_path: pathlib.Path) -> None:
    relays = Relays(tmp_path)
    result = relays.find("relay.example")
    relays.network.udp[0].answer("relay.example A 127.0.0.1")
    relays.network.udp[1].answer("relay.example AAAA 2001:db8::1")
    assert result == [("127.0.0.1", "2001:db8::1")]


def test_one_family_is_enough(tmp_path: pathlib.Path) -> None:
    relays = Relays(tmp_path)
    result = relays.find("relay.example")
    relays.network.udp[0].answer("relay.example A 192.0.2.1")
    relays.network.udp[1].answer(rcode=2)
    assert result == [("192.0.2.1",)]


def test_a_relay_without_an_address_is_a_temporary_trouble(tmp_path: pathlib.Path) -> None:
    relays = Relays(tmp_path)
    for outcome, text in (
        (relays.outcome("a.example", rcode=2), b"no address for a.example: SERVFAIL from 192.0.2.1:53"),
        (relays.outcome("b.example", SOA, rcode=3), b"no address for b.example: NXDOMAIN from 192.0.2.1:53"),
        (
            relays.outcome("c.example", SOA),
            b"no address for c.example: no A record, said by 192.0.2.1:53, no AAAA record, said by 192.0.2.1:53",
        ),
        (relays.outcome("d..example"), b"d..example is no name of a host"),
    ):
        assert (outcome.kind, outcome.reply.enhanced) == (OutcomeKind.DEFERRED, b"4.4.3")
        assert outcome.reply.text == text


def test_a_look_up_that_is_cancelled_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    relays = Relays(tmp_path)
    finding = relays.resolver.find("relay.example")
    results_of(finding)
    finding.cancel()
    assert relays.network.is_at_rest()
