"""The overview of deliveries: which next hops it shows, why their mail waits, and the last failures."""

from __future__ import annotations

import pytest

from mailismus.deliver.knowledge.recent import FailureNote, RecentOutcomes
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.why.overview import LOCAL_NAME, DeliveryOverview, name_of_hop
from mailismus.observe.overview import MAX_FAILURES, MAX_NEXT_HOPS, NextHopFigures
from mailismus.queue.outcome.disposition import Disposition
from tests.deliver.harness import Bench
from tests.fakes.sink import Act


def started(**changes: object) -> Bench:
    bench = Bench(**changes)  # type: ignore[arg-type]  # settings by name
    bench.task.start()
    return bench


def only_hop(overview: DeliveryOverview) -> NextHopFigures:
    (found,) = overview.next_hops
    return found


def test_a_server_without_mail_shows_nothing() -> None:
    assert started().task.overview() == DeliveryOverview((), (), ())


def test_mail_that_waits_is_shown_with_its_hold() -> None:
    bench = started(maxserverconnections=1)
    bench.sink({"dot": Act.SILENCE})
    for number in range(3):
        bench.put(b"r%d@b.example" % number)
    bench.run(3)
    found = bench.task.overview()
    hop = only_hop(found)
    assert (hop.name, hop.entries, hop.connections) == ("192.0.2.1", 3, 1)
    assert hop.hold == "slow"
    assert "it has not replied for" in hop.reason
    assert hop.waits_s >= 3
    assert [one.hold for one in found.holds] == ["slow"]


def test_outcomes_are_counted_by_next_hop_and_failures_are_kept() -> None:
    bench = started()
    factory = bench.sink()
    bench.put(b"ann@b.example")
    bench.run(1)
    factory.script = {"RCPT": b"452 4.2.2 mailbox full\r\n"}
    bench.put(b"full@b.example")
    bench.put(b"joe@home.example")
    bench.put(b"nobody@home.example")
    bench.run(1)
    found = bench.task.overview()
    by_name = {hop.name: hop for hop in found.next_hops}
    relay, local = by_name["192.0.2.1"], by_name[LOCAL_NAME]
    assert (relay.delivered, relay.deferred, relay.failed) == (1, 1, 0)
    assert relay.hold == "later"
    assert "452 4.2.2 mailbox full" in relay.reason
    assert (local.delivered, local.deferred, local.failed) == (1, 0, 1)
    failures = {one.recipient: one for one in found.failures}
    assert failures["full@b.example"].status == "deferred"
    assert 0 <= bench.clock.seconds() - failures["full@b.example"].at <= 2
    assert failures["nobody@home.example"].status == "bounced"
    assert failures["nobody@home.example"].next_hop == LOCAL_NAME


def test_a_limit_is_told_where_more_mail_waits_than_a_connection_has() -> None:
    bench = started(maxserverconnections=1)
    bench.sink({"dot": Act.SILENCE})
    for number in range(9):
        bench.put(b"r%d@b.example" % number)
    bench.run(3)
    assert only_hop(bench.task.overview()).hold == "connections"


@pytest.mark.parametrize("behind_s", [1, 60])
def test_a_dead_host_is_told_also_when_its_next_hop_has_been_forgotten(behind_s: float) -> None:
    bench = started()
    bench.put(b"ann@b.example")
    bench.run(behind_s)
    found = bench.task.overview()
    assert only_hop(found).deferred == 1
    assert only_hop(found).hold == "dead"
    assert "next try at" in only_hop(found).reason
    assert [(one.hold, one.subject) for one in found.holds] == [("dead", "192.0.2.1")]
    bench.run(400)
    assert only_hop(bench.task.overview()).hold == "later"
    assert bench.task.overview().holds == ()


@pytest.mark.parametrize("behind_s", [1, 60])
def test_a_dead_host_has_its_name_and_mail_that_was_not_tried_with_it_names_no_host(behind_s: float) -> None:
    bench = started(has_relay=False)
    bench.names.mx("b.example", (10, "mx.b.example", "192.0.2.1"))
    bench.put(b"ann@b.example")
    bench.run(1)
    bench.put(b"ben@b.example")
    bench.run(behind_s)
    found = bench.task.overview()
    assert [(one.hold, one.subject) for one in found.holds] == [("dead", "mx.b.example")]
    assert only_hop(found).hold == "dead"
    hosts = {one.recipient: one.host for one in found.failures}
    assert hosts == {"ann@b.example": "mx.b.example[192.0.2.1]:25", "ben@b.example": ""}
    bench.run(400)
    assert only_hop(bench.task.overview()).reason.startswith("451 4.4.1 ")


def test_what_is_shown_has_a_bound() -> None:
    recent = RecentOutcomes(max_hops=7)
    for number in range(1000):
        hop = NextHop(f"h{number}.example", 25)
        recent.of_hop[hop].add_delivered(2)
        note = FailureNote(float(number), Disposition.BOUNCED, hop, b"a@b.example", 3, b"h", b"550 no")
        recent.note_failed(note)
    assert len(recent.failures) == MAX_FAILURES
    assert [hop.host for hop in recent.of_hop] == [f"h{number}.example" for number in range(993, 1000)]
    assert {(one.delivered, one.failed, one.last) for one in recent.of_hop.values()} >= {(2, 3, note)}


def test_of_many_next_hops_the_fullest_are_shown() -> None:
    bench = started(has_relay=False)
    bench.sink({"dot": Act.SILENCE})
    for number in range(MAX_NEXT_HOPS + 20):
        bench.names.mx(f"d{number}.example", (10, f"mx{number}.example", "192.0.2.1"))
        bench.put(b"a@d%d.example" % number)
    bench.put(b"b@d7.example")
    bench.run(0.5)
    shown = bench.task.overview().next_hops
    assert len(shown) <= MAX_NEXT_HOPS
    assert (shown[0].name, shown[0].entries) == ("d7.example", 2)


def test_a_relay_is_named_by_its_host_and_port() -> None:
    assert name_of_hop(NextHop("relay.example", 587)) == "relay.example:587"
    assert name_of_hop(NextHop("relay.example\x1b", 25)) == "relay.example\\x1b"
