"""Transactions are filled: an envelope is taken in parts, and its recipients at one next hop share transactions."""

from __future__ import annotations

import random

import pytest

from mailismus.deliver import taking
from mailismus.deliver.schedule.destination import Destination
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, relay, stopped
from tests.deliver.schedule.jobs import HOP, job
from tests.fakes.sink import Act

HOPS, EACH, PART = 10, 40, 20


def shuffled(hops: int, each: int) -> list[bytes]:
    recipients = [b"r%d@d%d.example" % (index, hop) for hop in range(hops) for index in range(each)]
    random.Random(24).shuffle(recipients)
    return recipients


def bench_with_hops(patch: pytest.MonkeyPatch, **changes: object) -> Bench:
    """Ten next hops; the queue gives twenty entries at once."""
    patch.setattr(taking, "BATCH", PART)
    relays = [relay(f"192.0.2.{hop}", 25, b"d%d.example" % hop) for hop in range(HOPS)]
    return Bench(*relays, maxrecips=10, **changes)  # type: ignore[arg-type]  # by name


def test_an_envelope_in_random_order_goes_in_full_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_hops(monkeypatch)
    sinks = [bench.sink(host=f"192.0.2.{hop}") for hop in range(HOPS)]
    bench.network.latency_s = 0.05
    bench.put(*shuffled(HOPS, EACH))
    bench.task.start()
    bench.run(5)
    for hop, sink in enumerate(sinks):
        sizes = [len(message.recipients) for message in sink.received]
        assert sorted(sink.acknowledged()) == sorted(b"r%d@d%d.example" % (index, hop) for index in range(EACH))
        assert max(sizes) == 10
        assert sum(sizes) / len(sizes) >= 9, sizes
    assert bench.task.held == 0
    assert bench.statuses() == {"sent": HOPS * EACH}


def test_of_two_messages_each_fills_its_own_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_hops(monkeypatch)
    sinks = [bench.sink(host=f"192.0.2.{hop}") for hop in range(HOPS)]
    bench.network.latency_s = 0.05
    senders = (b"one@a.example", b"two@a.example")
    for sender in senders:
        bench.put(*shuffled(HOPS, EACH), sender=sender)
    bench.task.start()
    bench.run(5)
    taken = sorted((message.sender, each) for sink in sinks for message in sink.received for each in message.recipients)
    assert taken == sorted(
        (sender, each) for sender in (b"one@a.example", b"two@a.example") for each in shuffled(HOPS, EACH)
    )


def test_recipients_that_joined_a_job_share_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_hops(monkeypatch)
    for hop in range(HOPS):
        bench.sink({"dot": b"451 4.3.0 not now\r\n"}, host=f"192.0.2.{hop}")
    bench.put(*shuffled(HOPS, EACH))
    bench.task.start()
    bench.run(5)
    assert bench.statuses() == {"deferred": HOPS * EACH}
    assert bench.task.held == 0
    assert bench.count(Area.DEFERRED) == HOPS * EACH


def test_a_stop_gives_back_what_joined_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_hops(monkeypatch)
    for hop in range(HOPS):
        bench.sink({"greeting": Act.SILENCE}, host=f"192.0.2.{hop}")
    bench.put(*shuffled(HOPS, EACH))
    bench.task.start()
    bench.run(1)
    assert bench.task.held == HOPS * EACH
    over = stopped(bench, 5.0)
    bench.run(6)
    assert over
    assert (bench.task.held, bench.queue.out_count) == (0, 0)
    assert bench.count(Area.INCOMING) == HOPS * EACH


# The rule


def test_a_new_job_fills_the_last_one_of_its_message_first() -> None:
    destination = Destination(HOP)
    first, second = job(recipients=7), job(recipients=5)
    assert not destination.join(first, 10)
    assert not destination.join(second, 10)
    assert (len(first.entries), len(first.recipients), first.left) == (10, 10, 10)
    assert [entry.number for entry in second.entries] == [4, 5]
    assert (len(second.recipients), second.left) == (2, 2)
    third = job(recipients=8)
    assert destination.join(third, 10)
    assert [entry.number for entry in second.entries] == [4, 5, *range(1, 9)]


def test_a_job_that_has_begun_gets_no_more_entries() -> None:
    destination = Destination(HOP)
    first = job(recipients=1)
    destination.join(first, 10)
    destination.close(first)
    second = job(recipients=1)
    assert not destination.join(second, 10)
    assert len(first.entries) == 1
    destination.close(first)
    assert destination.join(job(recipients=1), 10)
    assert len(second.entries) == 2


def test_a_lower_limit_takes_nothing_away() -> None:
    destination = Destination(HOP)
    first = job(recipients=7)
    destination.join(first, 10)
    second = job(recipients=2)
    assert not destination.join(second, 5)
    assert (len(first.entries), len(second.entries)) == (7, 2)


def test_messages_do_not_share_jobs() -> None:
    destination = Destination(HOP)
    first = job(1, recipients=1)
    destination.join(first, 10)
    assert not destination.join(job(2, recipients=1), 10)
    assert len(first.entries) == 1
