"""What a take brings beyond the share of its next hop: it goes back for a moment, and mail that has room does not."""

from __future__ import annotations

import pytest

from mailismus.deliver import taking
from mailismus.deliver.giving_back import MAX_DELAY_S, SURPLUS_DELAY_S, SURPLUS_PER_S, surplus_delay_s
from mailismus.deliver.schedule.destination import Destination
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, relay
from tests.deliver.schedule.jobs import HOP
from tests.deliver.test_taking import SlowTakes

NOW = 1000.0


def full_bench(count: int, **changes: object) -> Bench:
    """So many entries of one sender for b.example are deferred for an hour; `new.example` has a relay of its own, which is
    30 ms away."""
    relays = (relay("192.0.2.1"), relay("198.51.100.1", 25, b"new.example"))
    bench = Bench(*relays, delays_s=(3600.0,), **changes)  # type: ignore[arg-type]  # by name
    sink = bench.sink({"dot": b"450 later\r\n"})
    bench.task.start()
    for number in range(count // 50):
        bench.put(*[b"r%d.%d@b.example" % (number, index) for index in range(50)])
    bench.run(5)
    assert bench.count(Area.DEFERRED) == count
    sink.script.clear()
    bench.network.latency_s = 0.03
    return bench


def test_new_mail_goes_on_beside_a_take_that_reads_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = full_bench(3000)
    new = bench.sink(host="198.51.100.1")
    monkeypatch.setattr(taking, "BATCH", 2500)
    slow = SlowTakes(bench, monkeypatch)
    bench.queue.visit_all(None)
    bench.run(0.1, 0.01)
    assert slow.limits[-1] == (Area.DEFERRED, 2494)
    bench.network.latency_s = 0.005
    for number in range(90):
        bench.put(b"r%d@new.example" % number, sender=b"s%d@c.example" % number)
        if number % 3 == 2:
            bench.run(0.05, 0.01)
    bench.run(0.1, 0.01)
    assert len(new.acknowledged()) == 90
    assert bench.task.counters.given_back == 0


def test_mail_that_went_back_comes_again_as_soon_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = full_bench(0, queuecache=100)
    new = bench.sink(host="198.51.100.1")
    for number in range(40):
        bench.put(*[b"r%d@b.example" % index for index in range(2)], sender=b"b%d@a.example" % number)
    bench.run(0.02, 0.01)
    for number in range(60):
        bench.put(b"r%d@new.example" % number, sender=b"s%d@c.example" % number)
    bench.run(1.2, 0.01)
    assert bench.task.counters.given_back > 0
    assert len(new.acknowledged()) == 60


def test_mail_for_others_does_not_wait_behind_what_goes_back_again_and_again() -> None:
    """A dead host has nearly all room, and most of the mail is for it: what is left of the room is asked about quickly."""
    bench = Bench(relay("192.0.2.1"), relay("198.51.100.1", 25, b"new.example"), queuecache=100)
    bench.network.black_holes.add("192.0.2.1")
    new = bench.sink(host="198.51.100.1")
    bench.task.start()
    for turn in range(100):
        for number in range(12):
            bench.put(b"r%d.%d@slow.example" % (turn, number), sender=b"s%d.%d@a.example" % (turn, number))
        for number in range(3):
            bench.put(b"r%d.%d@new.example" % (turn, number), sender=b"n%d.%d@c.example" % (turn, number))
        bench.run(0.01, 0.001)
    assert len(new.acknowledged()) >= 290


@pytest.mark.parametrize("count", [500, 3000])
def test_mail_that_finds_no_room_for_long_is_seldom_carried_to_and_fro(count: int) -> None:
    bench = Bench(relay("192.0.2.1"), queuecache=100)
    bench.network.black_holes.add("192.0.2.1")
    for number in range(count):
        bench.put(b"r%d@slow.example" % number, sender=b"s%d@a.example" % number)
    bench.task.start()
    bench.run(25, 0.02)
    assert bench.task.counters.given_back <= 8 * count


def test_what_goes_back_first_comes_again_first_and_no_faster_than_a_host_takes_it() -> None:
    destination = Destination(HOP)
    assert surplus_delay_s(destination, SURPLUS_PER_S, NOW) == pytest.approx(SURPLUS_DELAY_S)
    assert surplus_delay_s(destination, 5, NOW) == pytest.approx(SURPLUS_DELAY_S + 1)
    assert surplus_delay_s(destination, 5, NOW + 0.5) == pytest.approx(SURPLUS_DELAY_S + 0.5 + 5 / SURPLUS_PER_S)
    assert surplus_delay_s(destination, 5, NOW + 2) == pytest.approx(SURPLUS_DELAY_S)


def test_it_never_stays_away_for_longer_than_a_minute() -> None:
    destination = Destination(HOP)
    for _ in range(100):
        surplus_delay_s(destination, 10 * SURPLUS_PER_S, NOW)
    assert surplus_delay_s(destination, 1, NOW) == MAX_DELAY_S
    assert surplus_delay_s(destination, 1, NOW + MAX_DELAY_S) == pytest.approx(SURPLUS_DELAY_S)


def test_mail_for_a_slow_next_hop_comes_again_later() -> None:
    destination = Destination(HOP)
    destination.note_moved(NOW, 8.0)
    assert surplus_delay_s(destination, 1, NOW) == pytest.approx(SURPLUS_DELAY_S), "nothing of it waits any more"
    destination.entries = 1
    assert surplus_delay_s(destination, 1, NOW + 1) == 4.0
    assert surplus_delay_s(destination, 1, NOW + 30) == 15.0
    assert surplus_delay_s(destination, 1, NOW + 300) == MAX_DELAY_S
