"""The table of situations, played by a fake name server over real sockets."""

from __future__ import annotations

import pytest

from mailismus.dns.choice import MxHost
from mailismus.mail.outcome import Outcome
from tests.scenarios.dns_table import SITUATIONS, Situation, play, shown


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


def test_what_is_known_is_not_asked_again() -> None:
    for title in ("one MX host with both families", "NXDOMAIN", "a domain that is an alias", "SERVFAIL"):
        played = play(next(one for one in SITUATIONS if one.title == title))
        assert played.asked_again == 0
        assert played.again == played.result
