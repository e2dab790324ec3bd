"""The resolver of MX hosts: what it asks, and how it ends. Its decisions: `test_choice`; over sockets: scenarios."""

from __future__ import annotations

import random

from twisted.internet.defer import CancelledError

from mailismus.dns.choice import MxHost, MxPolicy
from mailismus.dns.mx import TOTAL_S, MxResolver
from mailismus.dns.question import MAX_SOCKETS
from mailismus.mail.outcome import Outcome, OutcomeKind
from tests.dns.network import Network, results_of


def make() -> tuple[Network, MxResolver]:
    network = Network()
    return network, MxResolver(network.client, MxPolicy(), network.reactor, random.Random(1))


def test_all_addresses_of_all_hosts_are_asked_for_at_once() -> None:
    network, resolver = make()
    result = results_of(resolver.locate("example.net"))
    network.udp[0].answer("example.net MX 10 a.example.net", "example.net MX 20 b.example.net")
    assert len(network.open) == 4
    for socket, record in zip(
        network.open,
        ("a.example.net A 192.0.2.1", "a.example.net AAAA 2001:db8::1", "b.example.net A 192.0.2.2"),
        strict=False,
    ):
        socket.answer(record)
    assert result == []
    network.open[0].answer(rcode=2)
    assert result == [
        (MxHost("a.example.net", 10, ("192.0.2.1", "2001:db8::1")), MxHost("b.example.net", 20, ("192.0.2.2",)))
    ]
    assert network.is_at_rest()


def test_many_messages_for_one_domain_cost_three_questions() -> None:
    network, resolver = make()
    results = [results_of(resolver.locate("example.net")) for _ in range(100)]
    network.udp[0].answer("example.net MX 10 a.example.net")
    for socket in network.open:
        socket.answer("a.example.net A 192.0.2.1")
    assert {result[0] for result in results} == {(MxHost("a.example.net", 10, ("192.0.2.1",)),)}
    assert len(network.udp) == 3


def test_who_is_cancelled_leaves_nothing_behind() -> None:
    network, resolver = make()
    for is_late in (False, True):
        network.client.forget()
        locating = resolver.locate("example.net")
        result = results_of(locating)
        if is_late:
            network.udp[-1].answer("example.net MX 10 a.example.net", "example.net MX 20 b.example.net")
        locating.cancel()
        assert result[0].check(CancelledError)
        assert network.is_at_rest()


def test_a_chain_of_slow_answers_is_given_up_in_time() -> None:
    network, resolver = make()
    result = results_of(resolver.locate("0.example"))
    number = 0
    while not result and number < 100:
        network.advance(8)
        if network.open:
            network.open[0].answer(f"{number}.example CNAME {number + 1}.example")
            number += 1
    assert isinstance(result[0], Outcome)
    assert result[0].kind is OutcomeKind.DEFERRED
    assert network.reactor.seconds() <= TOTAL_S
    assert network.is_at_rest()


def test_hosts_that_never_answer_are_given_up_in_time() -> None:
    network, resolver = make()
    result = results_of(resolver.locate("example.net"))
    network.udp[0].answer("example.net MX 10 a.example.net")
    network.advance(TOTAL_S)
    assert isinstance(result[0], Outcome)
    assert result[0].reply.text.startswith(b"no address for example.net now: no answer from 192.0.2.1:53 in ")
    assert network.is_at_rest()


def test_what_the_cache_tells_is_known_without_a_question() -> None:
    network, resolver = make()
    assert resolver.known("example.net") is None
    assert network.udp == []
    resolver.locate("example.net")
    network.udp[0].answer("example.net MX 10 a.example.net")
    assert resolver.known("example.net") is None
    network.open[0].answer("a.example.net A 192.0.2.1")
    assert resolver.known("example.net") is None
    network.open[0].answer("a.example.net AAAA 2001:db8::1")
    assert len(network.udp) == 3
    assert resolver.known("EXAMPLE.net") == (MxHost("a.example.net", 10, ("192.0.2.1", "2001:db8::1")),)
    assert resolver.known("[192.0.2.9]") == (MxHost("192.0.2.9", 0, ("192.0.2.9",)),)
    assert len(network.udp) == 3
    assert network.is_at_rest()


def test_a_look_up_does_not_take_too_long_while_its_questions_wait_for_sockets() -> None:
    network, resolver = make()
    for number in range(20 * MAX_SOCKETS):
        network.ask(f"{number}.dead.example")
    result = results_of(resolver.locate("example.net"))
    while len(network.udp) <= 20 * MAX_SOCKETS:
        network.advance(1)
    assert network.reactor.seconds() > 1.5 * TOTAL_S
    network.udp[-1].answer("example.net MX 10 a.example.net")
    for _ in range(2):  # one after the other, by the only socket
        network.udp[-1].answer("a.example.net A 192.0.2.1")
    assert result == [(MxHost("a.example.net", 10, ("192.0.2.1",)),)]
