"""The table of situations, played by a fake name server over real sockets."""

from __future__ import annotations

import random
from typing import Any

import pytest
from dns.rdatatype import RdataType
from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor

from mailismus.dns.answer import Answer, Exchange
from mailismus.dns.choice import MxHost
from mailismus.dns.client import DnsClient
from mailismus.dns.servers import NameServer
from mailismus.mail.outcome import Outcome
from tests.fakes.dnsserver import FakeNameServer
from tests.fakes.reactors import close_reactor
from tests.scenarios.dns_table import LIMIT_S, SITUATIONS, Situation, play, shown


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.title for situation in SITUATIONS])
def test_what_becomes_of_mail(situation: Situation) -> None:
    played = play(situation)
    found, expected = shown(played.result), situation.expected
    if not isinstance(played.result, Outcome):
        assert all(isinstance(host, MxHost) for host in played.result)
        if situation.any_order:
            found, expected = tuple(sorted(found)), tuple(sorted(expected))
        assert found == expected
    else:
        assert found[:2] == expected[:2]
        assert expected[2] in found[2]
    asked_by_tcp = sum(number for (_, _, transport), number in played.server.asked.items() if transport == "TCP")
    assert (asked_by_tcp > 0) == situation.asked_by_tcp


def test_ids_and_ports_are_drawn_anew_for_each_question() -> None:
    situation = next(one for one in SITUATIONS if one.title == "thirty hosts")
    played = play(situation)
    assert len(played.server.sources) == 41
    assert len(set(played.server.sources)) > 30
    assert len(set(played.server.ids)) > 35
    ordered = sorted(played.server.sources)
    assert ordered != played.server.sources


@pytest.mark.parametrize(("acts", "is_secure"), [("", [False] * 3), ("d.example * !ad\n", [True, True, False])])
def test_the_ad_flag_of_a_name_server_on_this_host_makes_an_answer_secure(acts: str, is_secure: list[bool]) -> None:
    reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
    fake = FakeNameServer(reactor, acts + "d.example CNAME e.example\ne.example MX 10 m.example\n")
    client = DnsClient(reactor, lambda: [NameServer("127.0.0.1", fake.port)], 20.0, random.SystemRandom(), reactor.seconds)
    answers: list[Answer] = []

    async def ask() -> None:
        for domain in ("d.example", "d.example", "e.example"):
            answers.append(await client.query(domain, RdataType.MX))
        fake.close()
        client.close()
        reactor.callLater(0.01, reactor.stop)

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(ask()))
    guard = reactor.callLater(LIMIT_S, reactor.stop)
    reactor.run(installSignalHandlers=False)
    guard.cancel()
    close_reactor(reactor)
    assert [answer.is_secure for answer in answers] == is_secure
    assert {answer.exchanges for answer in answers} == {(Exchange(10, "m.example"),)}


def test_what_is_known_is_not_asked_again() -> None:
    for title in ("one MX host with both families", "NXDOMAIN", "a domain that is an alias", "SERVFAIL"):
        played = play(next(one for one in SITUATIONS if one.title == title))
        assert played.asked_again == 0
        assert played.again == played.result
