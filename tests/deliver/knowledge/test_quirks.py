"""The memory of what hosts can't do: it ages, it is bounded, it is by address and port."""

from __future__ import annotations

from mailismus.deliver.knowledge.quirks import NO_QUIRKS, REMEMBERED_S, HostQuirks, QuirkMemory
from mailismus.smtp.client.pipelining import Pipelining

HOST = ("192.0.2.1", 25)
BROKEN = HostQuirks(Pipelining.BROKEN)


def test_a_host_has_no_quirks_until_something_is_learned_of_it() -> None:
    quirks = QuirkMemory()
    assert quirks.of(HOST, 0.0) is NO_QUIRKS
    quirks.note(HOST, BROKEN, 0.0)
    assert quirks.of(HOST, 1.0) == BROKEN
    assert quirks.of(("192.0.2.1", 26), 1.0) is NO_QUIRKS
    quirks.note(HOST, HostQuirks(Pipelining.BROKEN, needs_helo=True), 2.0)
    assert quirks.of(HOST, 2.0).needs_helo


def test_what_was_learned_long_ago_is_forgotten_however_often_it_was_used() -> None:
    quirks = QuirkMemory()
    quirks.note(HOST, BROKEN, 5.0)
    for second in range(0, int(REMEMBERED_S) + 1, 60):
        assert quirks.of(HOST, 5.0 + second) == BROKEN
    assert quirks.of(HOST, 5.1 + REMEMBERED_S) is NO_QUIRKS
    assert len(quirks) == 0


def test_the_oldest_knowledge_gives_way() -> None:
    quirks = QuirkMemory(max_hosts=3)
    hosts = [("192.0.2.1", port) for port in range(4)]
    for host in hosts[:3]:
        quirks.note(host, BROKEN, 0.0)
    quirks.note(hosts[0], BROKEN, 1.0)
    quirks.note(hosts[3], BROKEN, 1.0)
    assert [quirks.of(host, 1.0) for host in hosts] == [BROKEN, NO_QUIRKS, BROKEN, BROKEN]
    assert len(quirks) == 3


def test_a_host_that_has_no_quirk_any_more_takes_no_room() -> None:
    quirks = QuirkMemory()
    quirks.note(HOST, HostQuirks(needs_helo=True), 0.0)
    quirks.note(HOST, HostQuirks(), 1.0)
    assert len(quirks) == 0
