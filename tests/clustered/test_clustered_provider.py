"""The clustered provider beyond the contract: what its end waits for, whom it remembers."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.clustered.control.closing import GIVE_UP_S
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses, beyond
from tests.fakes.shares import Most


def running() -> tuple[ClusteredHarness, Bench]:
    harness = ClusteredHarness()
    return harness, Bench(harness, harness.make())


def never_mind(failure: Failure) -> None:
    failure.trap(CancelledError)  # type: ignore[no-untyped-call]  # Twisted's


def test_a_close_waits_for_a_large_message_on_its_way_to_its_silo() -> None:
    harness, bench = running()
    done = bench.queue.commit([bench.submission(content=b"x" * 300_000 + b"\r\n")], ())
    happened: list[str] = []
    done.addCallback(lambda _: happened.append("durable"))
    bench.queue.close().addCallback(lambda _: happened.append("closed"))
    harness.settle_down()
    assert happened == ["durable", "closed"]


def test_a_close_gives_up_on_a_disk_that_stays_sick() -> None:
    harness, bench = running()
    bench.put()
    taken = bench.take_ids()
    harness.break_down(bench.queue)
    bench.queue.commit((), [Settlement(taken[0], None)])
    harness.settle_down()
    closed: list[None] = []
    bench.queue.close().addCallback(closed.append)
    harness.clock.advance(GIVE_UP_S / 2)
    assert not closed
    harness.clock.advance(GIVE_UP_S)
    assert closed
    assert harness.disk.locks == set()


def test_a_close_writes_what_a_disk_that_was_sick_for_a_moment_can_take() -> None:
    harness, bench = running()
    bench.put()
    taken = bench.take_ids()
    harness.break_down(bench.queue)
    bench.queue.commit((), [Settlement(taken[0], None)])
    harness.settle_down()
    harness.disk.fault = None
    bench.wait(bench.queue.close())
    harness.clock.calls.clear()
    assert Bench(harness, harness.open()).take() == []


def test_who_waits_no_longer_is_not_remembered() -> None:
    _, bench = running()
    queue = bench.queue
    for _ in range(100):
        waiting = queue.ready(Area.DEFERRED)
        waiting.addErrback(never_mind)
        waiting.cancel()
    assert isinstance(queue, ClusteredQueue)
    assert not queue.parts.waiters.count(Area.DEFERRED)


def test_one_who_waits_may_cancel_another_when_told() -> None:
    _, bench = running()
    told: list[str] = []
    first, second, third = (bench.queue.ready(Area.INCOMING) for _ in range(3))
    second.addErrback(never_mind)
    first.addCallback(lambda _: second.cancel()).addCallback(lambda _: told.append("first"))
    third.addCallback(lambda _: told.append("third"))
    bench.put()
    assert told == ["first", "third"]


def test_room_for_a_sender_is_told_in_all_areas() -> None:
    _, bench = running()
    bench.put(addresses(3))
    now = bench.now()
    bench.defer(bench.take_ids(limit=2), now)
    assert bench.take(shares=Most(0)) == []
    assert bench.take(Area.DEFERRED, shares=Most(1)) != []
    told = [bench.queue.ready(area) for area in (Area.INCOMING, Area.DEFERRED)]
    assert not any(one.called for one in told)
    bench.queue.room_again()
    assert all(one.called for one in told)
    assert len(bench.take(shares=Most(1))) == 1
    assert len(bench.take(Area.DEFERRED, shares=Most(1))) == 1


def test_resting_entries_that_were_held_back_go_on_as_soon_as_their_sender_has_room() -> None:
    harness, bench = running()
    bench.put(addresses(50))
    harness.clock.pump([0.25] * 20)
    now = bench.now()
    assert len(bench.take_ids(shares=Most(20))) == 20
    assert bench.take(shares=Most(20)) == []
    told = bench.queue.ready(Area.INCOMING)
    assert not told.called
    bench.queue.room_again()
    assert told.called
    assert len(bench.take_ids(shares=Most(10))) == 10
    bench.queue.room_again()
    assert len(bench.take_ids(shares=Most(100))) == 20
    assert bench.now() - now < 0.5


def test_a_flush_holds_for_all_entries_of_a_message_that_goes_out_in_parts() -> None:
    harness, bench = running()
    bench.put(addresses(50))
    bench.defer(bench.take_ids(), bench.now() + 36_000)
    harness.clock.pump([0.25] * 20)
    harness.wait(bench.queue.visit_all(Filter(), bench.now()))
    count = 0
    for _ in range(20):
        bench.queue.room_again()
        taken = bench.take_ids(Area.DEFERRED, shares=Most(7))
        bench.remove(taken)
        count += len(taken)
    assert count == 50


def test_the_file_of_a_refused_message_stays_until_the_disk_can_not_tell_of_it_any_more() -> None:
    """Its batch may be on the disk whole, though its barrier failed: until a later batch denies that, it may come back."""
    harness, bench = running()
    submission = bench.submission(content=b"x" * 300_000 + b"\r\n")
    harness.settle_down()
    harness.disk.fault = lambda act, path: OSError(5, "injected") if act == "sync" and "journal" in path else None
    refused: list[Failure] = []
    bench.queue.commit([submission], ()).addErrback(refused.append)
    harness.settle_down()
    assert len(refused) == 1
    assert any(name.endswith(".msg") for name in harness.disk.names)
    harness.disk.fault = None
    harness.advance(4)
    harness.settle_down()  # the failed batch is denied
    bench.put()
    harness.settle_down()
    assert not any(name.endswith(".msg") for name in harness.disk.names)


def test_a_start_reads_no_cluster_of_what_waits_as_long_as_it_should() -> None:
    """Nobody knows what the clock did before a start, so it looks for what waits too long; a million entries that do not
    must not keep mail that comes now waiting."""
    harness, bench = running()
    four_hours = 4 * 3600.0
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + four_hours)
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 10 * four_hours)
    bench = Bench(harness, harness.restart(bench.queue))
    usual = min(name for name in harness.disk.names if name.endswith(".mqc"))
    harness.settle_down()  # the references are counted
    harness.disk.acts.clear()
    bench.queue.hasten(beyond(bench.now() + 1.1 * four_hours, bench.now()), bench.now())
    assert len(bench.take(Area.DEFERRED)) == 1
    assert [act for act in harness.disk.acts if act[1] == usual] == []
