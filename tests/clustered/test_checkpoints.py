"""Checkpoints of the clustered queue: when what stays is written behind, and when all is at rest."""

from __future__ import annotations

from collections.abc import ValuesView

import attrs

from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.format.slots import slot_of
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.replay import load
from tests.clustered.harness import SEGMENT, ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses, ids

LONG_DOMAIN = b".".join([b"d" * 60] * 3)
SENDER = b"%" * 60 + b"@" + LONG_DOMAIN
RECIPIENTS = tuple(b"%s%d@%s" % (b"u" * 55, number, LONG_DOMAIN) for number in range(500))
LONG_REPLY = Reply(451, b"4.7.0", b"later " * 160)


def running() -> tuple[ClusteredHarness, Bench]:
    harness = ClusteredHarness()
    return harness, Bench(harness, harness.make())


def is_at_rest(harness: ClusteredHarness) -> bool:
    """Whether nothing is written when nobody asks for anything."""
    harness.clock.pump([0.01] * 2500)
    before = len(harness.disk.acts)
    for _ in range(200):
        harness.clock.advance(0.25)
    return all(act not in ("write", "sync") for act, _ in harness.disk.acts[before:])


def test_a_journal_full_of_long_addresses_is_at_rest_when_nobody_sends() -> None:
    harness, bench = running()
    for _ in range(40):
        bench.put(RECIPIENTS, sender=SENDER)
    assert is_at_rest(harness)


def test_a_journal_full_of_long_replies_is_at_rest_when_nobody_sends() -> None:
    harness, bench = running()
    for _ in range(10):
        bench.put(RECIPIENTS)
    bench.defer(ids(bench.take()), harness.now() + 3600, reply=LONG_REPLY)
    assert is_at_rest(harness)


def test_what_is_over_makes_room_even_where_lines_are_long() -> None:
    harness, bench = running()
    for _ in range(40):
        bench.put(RECIPIENTS, sender=SENDER)
    bench.remove(ids(bench.take(limit=35 * len(RECIPIENTS))))
    harness.clock.pump([0.01] * 2500)
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    assert queue.parts.segments.used_bytes <= 2 * SEGMENT
    again = Bench(harness, harness.crash(queue))
    assert len(ids(again.take_until(Area.INCOMING, 5 * len(RECIPIENTS)))) == 5 * len(RECIPIENTS)


def clusters(harness: ClusteredHarness, area: str) -> list[str]:
    return sorted(n for n in harness.disk.names if n.startswith(f"/q/{area}/") and n.endswith(".mqc"))


def test_nothing_is_written_behind_before_its_age() -> None:
    harness, bench = running()
    bench.put()
    harness.clock.pump([0.25] * 8)
    assert clusters(harness, "incoming") == []
    harness.clock.pump([0.25] * 8)
    assert len(clusters(harness, "incoming")) == 1


def test_what_was_delivered_young_never_costs_a_file() -> None:
    harness, bench = running()
    for _ in range(20):
        bench.put()
        bench.remove(bench.take_ids())
    harness.clock.pump([0.25] * 60)
    assert not [n for n in harness.disk.names if n.endswith((".mqc", ".msg"))]


def test_no_cluster_is_larger_than_allowed() -> None:
    harness = ClusteredHarness(attrs.evolve(queue_settings(), maxclustersize=4000))
    bench = Bench(harness, harness.make())
    for _ in range(3):
        bench.put(addresses(100))
    harness.clock.pump([0.25] * 20)
    found = clusters(harness, "incoming")
    assert len(found) > 5
    assert all(len(harness.disk.content_of(name)) <= 4000 for name in found)


def test_with_no_limit_a_cluster_takes_all() -> None:
    harness = ClusteredHarness(attrs.evolve(queue_settings(), maxclustersize=0))
    bench = Bench(harness, harness.make())
    for _ in range(3):
        bench.put(addresses(300))
    harness.clock.pump([0.25] * 20)
    assert len(clusters(harness, "incoming")) == 1


def test_deferred_entries_lie_in_the_slots_of_their_due_times() -> None:
    harness, bench = running()
    bench.put(addresses(3))
    first, second, third = bench.take_ids()
    now = bench.now()
    for queue_id, wait_s in ((first, 120.0), (second, 300.0), (third, 20_000.0)):
        bench.commit((), [Settlement(queue_id, Area.DEFERRED, now + wait_s, 1)])
    harness.clock.pump([0.25] * 20)
    slots = {name.split("/")[3] for name in clusters(harness, "deferred")}
    assert slots == {slot_of(now + 120.0, harness.now()), slot_of(now + 20_000.0, harness.now())} | {
        slot_of(now + 300.0, harness.now())
    }
    harness.advance(121.0)
    assert bench.take_ids(Area.DEFERRED) == [first]
    harness.advance(20_000.0)
    assert sorted(ids(bench.take_until(Area.DEFERRED, 2))) == [second, third]


def test_with_no_age_at_all_every_250_has_its_file_and_its_lines() -> None:
    settings = queue_settings(largemsgsize=0)
    settings = attrs.evolve(settings, journal=attrs.evolve(settings.journal, maxage_s=0.0))
    harness = ClusteredHarness(settings)
    bench = Bench(harness, harness.make())
    waiting = [bench.queue.commit((bench.submission(addresses(2)),), ()) for _ in range(3)]
    for number, done in enumerate(waiting, 1):
        harness.wait(done)
        assert len([n for n in harness.disk.names if n.endswith(".msg")]) >= number
        lines = b"".join(harness.disk.content_of(name) for name in clusters(harness, "incoming"))
        assert lines.count(b"\n A ") >= 2 * number


def test_a_checkpoint_that_a_batch_wants_begins_behind_the_whole_batch() -> None:
    settings = queue_settings(largemsgsize=0)
    settings = attrs.evolve(settings, journal=attrs.evolve(settings.journal, maxage_s=0.0))
    harness = ClusteredHarness(settings)
    bench = Bench(harness, harness.make())
    harness.settle_down()
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    waiting = [queue.commit((bench.submission(),), ()) for _ in range(3)]
    for done in waiting:
        harness.wait(done)
    assert (queue.checkpoints.counts.made, queue.checkpoints.counts.moved) == (1, 3)


def test_an_open_cluster_goes_on_growing() -> None:
    harness, bench = running()
    for _ in range(3):
        bench.put()
        harness.clock.pump([0.25] * 20)
    assert len(clusters(harness, "incoming")) == 1


def test_a_clean_stop_leaves_nothing_live_in_the_journal() -> None:
    harness, bench = running()
    spool_id = bench.put(addresses(3), b"to be kept")
    queue = bench.queue
    harness.wait(queue.close())
    assert load(harness.disk, "/q/journal").youngs == {}
    harness.clock.calls.clear()
    again = Bench(harness, harness.open())
    assert again.read(spool_id) == b"to be kept"
    assert len(again.take_ids()) == 3


def test_a_damaged_line_is_set_aside_and_hurts_no_other() -> None:
    harness, bench = running()
    spool_ids = [bench.put() for _ in range(3)]
    harness.clock.pump([0.25] * 20)
    (path,) = clusters(harness, "incoming")
    content = harness.disk.content_of(path)
    harness.disk.damage(path, content.index(b"%016X" % spool_ids[1]) + 30, b"#")
    assert [queue_id.spool_id for queue_id in bench.take_ids()] == [spool_ids[0], spool_ids[2]]
    kept = [name for name in harness.disk.names if name.startswith("/q/corrupt/")]
    assert len(kept) == 1
    assert b"%016X" % spool_ids[1] in harness.disk.content_of(kept[0])


def test_references_that_do_not_fit_are_looked_up_by_walks_and_nothing_stays() -> None:
    settings = queue_settings()
    harness = ClusteredHarness(attrs.evolve(settings, spool=attrs.evolve(settings.spool, maxspidcache=1)))
    bench = Bench(harness, harness.make())
    for _ in range(5):
        bench.put(addresses(3))
    harness.clock.pump([0.25] * 20)
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    walks = queue.parts.release.references.scans
    first = bench.take_ids()
    for at in range(0, 15, 3):
        bench.remove(first[at : at + 2])
    harness.clock.pump([0.25] * 60)
    assert len([n for n in harness.disk.names if n.endswith(".msg")]) == 5
    bench.remove(first[2::3])
    harness.clock.pump([0.25] * 80)
    assert not [n for n in harness.disk.names if n.endswith((".msg", ".mqc"))]
    assert queue.parts.release.references.scans > walks


class CountedClusters(dict[ClusterId, Cluster]):
    """Counts how often somebody goes through all of them."""

    scans = 0

    def values(self) -> ValuesView[Cluster]:  # type: ignore[override]  # typeshed narrows it
        self.scans += 1
        return super().values()


def test_a_batch_with_new_items_goes_through_no_clusters() -> None:
    harness, bench = running()
    bench.put()
    harness.clock.pump([0.25] * 20)
    assert isinstance(bench.queue, ClusteredQueue)
    cluster_index = bench.queue.state.cluster_index
    cluster_index.clusters = counted = CountedClusters(cluster_index.clusters)
    assert counted
    bench.put()
    assert counted.scans == 0
