"""A start of the clustered queue: what it refuses, what it sets aside, what it never uses twice."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import attrs
import pytest

from mailismus.errors import StartError, Unavailable
from mailismus.journal.batch import BLOCK
from mailismus.journal.spool_ids import SpoolIds
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from mailismus.spool.silo import message_path
from tests.clustered.harness import SEGMENT, ClusteredHarness, queue_settings
from tests.contracts.bench import Bench
from tests.durability.crash.server import LookingWorker


def running(harness: ClusteredHarness) -> Bench:
    return Bench(harness, harness.make())


def put_until_refused(bench: Bench, content: bytes) -> Unavailable:
    for _ in range(100):
        try:
            bench.put(content=content)
        except Unavailable as error:
            return error
    raise AssertionError("never refused")


def test_a_second_server_on_the_same_queue_is_refused_with_75() -> None:
    harness = ClusteredHarness()
    harness.open()
    with pytest.raises(StartError, match="another server holds /q") as refused:
        harness.open()
    assert refused.value.status == 75


def test_a_second_server_on_the_same_spool_is_refused_and_leaves_the_queue_free() -> None:
    harness = ClusteredHarness()
    harness.disk.locks.add("/s/lock")
    with pytest.raises(StartError, match="another server holds /s"):
        harness.open()
    assert harness.disk.locks == {"/s/lock"}


def test_an_unsafe_directory_is_refused_with_77_and_the_command_that_mends_it() -> None:
    harness = ClusteredHarness()
    harness.disk.unsafe["/q"] = "/q is open to others; run: chmod 700 /q"
    with pytest.raises(StartError, match="chmod 700 /q") as refused:
        harness.open()
    assert refused.value.status == 77


def test_a_disk_that_can_not_be_written_is_refused_with_74() -> None:
    harness = ClusteredHarness()
    harness.disk.fault = lambda act, path: OSError(5, "Input/output error") if act == "sync" else None
    with pytest.raises(StartError) as refused:
        harness.open()
    assert refused.value.status == 74
    assert harness.disk.locks == set()


@pytest.mark.parametrize("rests", [False, True])
def test_mail_without_a_journal_is_refused_with_65_and_left_as_it_is(rests: bool) -> None:
    """Else all of it would be taken for what a checkpoint or a client has left that never came to its end."""
    harness = ClusteredHarness()
    bench = running(harness)
    bench.put(content=b"x" * 300_000 + b"\r\n")
    if rests:
        bench.wait(bench.queue.close())
    harness.clock.calls.clear()
    harness.disk.locks.clear()
    for name in [name for name in harness.disk.names if name.startswith("/q/journal/")]:
        harness.disk.unlink(name)
    before = sorted(harness.disk.names)
    assert [name for name in before if name.endswith(".mqc" if rests else ".msg")]
    with pytest.raises(StartError, match=r"the journal is gone: .* run mailismus fsck --repair") as refused:
        harness.open()
    assert refused.value.status == 65
    assert sorted(harness.disk.names) == before
    assert harness.disk.locks == set()


@pytest.mark.parametrize("area", ["incoming", "deferred", "bounces"])
def test_a_start_without_the_directory_of_an_area_is_refused_with_65_and_changes_nothing(area: str) -> None:
    """Else the message files of its entries would be removed as strays."""
    harness = ClusteredHarness()
    bench = running(harness)
    bench.put(content=b"x" * 300_000 + b"\r\n")
    bench.wait(bench.queue.close())
    harness.clock.calls.clear()
    harness.disk.locks.clear()
    directory = f"/q/{area}"
    for name in [name for name in harness.disk.names if name.startswith(directory + "/")]:
        harness.disk.unlink(name)
    harness.disk.directories -= {name for name in harness.disk.directories if (name + "/").startswith(directory + "/")}
    before = sorted(harness.disk.names)
    with pytest.raises(
        StartError, match=rf"{directory} is gone, .*: move it back, .* run mailismus fsck --repair"
    ) as refused:
        harness.open()
    assert refused.value.status == 65
    assert sorted(harness.disk.names) == before
    assert directory not in harness.disk.directories
    assert harness.disk.locks == set()


def test_no_spool_id_is_used_twice_over_starts_that_accept_nothing() -> None:
    harness = ClusteredHarness()
    seen = set()
    queue = harness.open()
    for _ in range(4):
        spool_id = queue.draft().spool_id
        assert spool_id not in seen
        seen.add(spool_id)
        harness.clock.calls.clear()
        harness.disk.power_cut()
        queue = harness.open()


def test_the_next_epoch_is_durable_before_its_first_use() -> None:
    ids = SpoolIds(7)
    ids._counter = SpoolIds.RESERVE_AT
    assert ids.wants_epoch()
    ids._counter = 0xFFFF_FFFF
    assert ids.next() is None
    ids.reserved_epoch = 8
    assert ids.next() == (8 << 32) | 1


def test_a_queue_whose_counter_is_full_goes_on_in_the_next_epoch() -> None:
    harness = ClusteredHarness()
    queue = harness.open()
    queue.parts.naming._spool_ids._counter = 0xFFFF_FFFE
    last = queue.draft().spool_id
    with pytest.raises(Unavailable):
        queue.draft()
    harness.settle_down()
    first = queue.draft().spool_id
    assert first >> 32 == (last >> 32) + 1
    harness.disk.power_cut()
    harness.clock.calls.clear()
    assert harness.open().draft().spool_id >> 32 > first >> 32


def test_a_damaged_batch_is_set_aside_with_its_bytes_and_costs_nobody_else() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    spool_ids = [bench.put(content=b"message %d" % n) for n in range(4)]
    path = "/q/journal/00000001.mqj"
    content = harness.disk.content_of(path)
    place = content.index(b"message 1")
    harness.disk.damage(path, place, b"MESSAGE")
    harness.clock.calls.clear()
    harness.disk.power_cut()
    again = Bench(harness, harness.open())
    assert [queue_id.spool_id for queue_id in again.take_ids()] == [spool_ids[0], *spool_ids[2:]]
    (kept,) = [name for name in harness.disk.names if name.startswith("/q/corrupt/")]
    assert b"MESSAGE 1" in harness.disk.content_of(kept)
    assert harness.disk.content_of(kept).startswith(b"from /q/journal/00000001.mqj at ")


def test_what_is_damaged_is_set_aside_before_its_segment_may_go() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    bench.put(content=b"message 1")
    bench.put(content=b"message 2")
    path = "/q/journal/00000001.mqj"
    harness.disk.damage(path, 0, b"no header")
    harness.disk.damage(path, BLOCK, b"no batch")
    harness.clock.calls.clear()
    harness.disk.kill()
    at_once = LookingWorker()
    at_once.is_looking = True
    journal = attrs.evolve(harness.settings.journal, segmentsize=2 * SEGMENT)  # those of another size are removed
    random_bytes = itertools.count(1000)
    open_queue(
        attrs.evolve(harness.settings, journal=journal),
        harness.disk,
        at_once,
        harness.clock,
        lambda size: next(random_bytes).to_bytes(size, "big"),
    )
    (kept,) = [name for name in harness.disk.names if name.startswith("/q/corrupt/")]
    assert b"message 2" in harness.disk.content_of(kept)
    assert path not in harness.disk.names


def test_a_start_says_the_last_batch_again_before_it_acts_on_it() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    spool_id = bench.put(content=b"the last one")
    harness.clock.calls.clear()
    harness.disk.kill()
    harness.disk.acts.clear()
    again = Bench(harness, harness.open())
    first_write = next(path for act, path in harness.disk.acts if act == "write" and path.startswith("/q/journal"))
    assert first_write != "/q/journal/00000001.mqj"
    harness.clock.calls.clear()
    harness.disk.names = {n: i for n, i in harness.disk.names.items() if n != "/q/journal/00000001.mqj"}
    harness.disk.locks.clear()
    assert again.read(spool_id) == b"the last one"
    last = Bench(harness, harness.open())
    assert last.read(spool_id) == b"the last one"


def test_a_large_draft_that_was_never_committed_is_swept_after_the_next_start() -> None:
    harness = ClusteredHarness(queue_settings(largemsgsize=1000))
    queue = harness.open()
    draft = queue.draft()
    draft.write(b"x" * 50_000)
    harness.settle_down()
    path = message_path("/s", draft.spool_id)
    assert path in harness.disk.names
    harness.clock.calls.clear()
    harness.disk.kill()
    harness.open()
    harness.settle_down()
    assert path not in harness.disk.names


def test_a_large_message_loses_its_file_with_its_last_entry() -> None:
    harness = ClusteredHarness(queue_settings(largemsgsize=1000))
    bench = running(harness)
    spool_id = bench.put([b"a@b.example", b"c@d.example"], b"x" * 50_000)
    path = message_path("/s", spool_id)
    first, second = bench.take_ids()
    bench.commit((), [Settlement(first, None)])
    harness.settle_down()
    assert path in harness.disk.names
    bench.commit((), [Settlement(second, None)])
    harness.settle_down()
    assert path not in harness.disk.names


def test_segments_are_used_again_and_the_journal_stays_short() -> None:
    harness = ClusteredHarness(queue_settings(maxsize=4 << 20))
    bench = running(harness)
    for _ in range(60):
        bench.put(content=b"y" * 100_000)
        bench.commit((), [Settlement(queue_id, None) for queue_id in bench.take_ids()])
    harness.settle_down()
    segments = [name for name in harness.disk.names if name.startswith("/q/journal")]
    assert len(segments) <= 12
    assert BLOCK * 60 < 60 * 100_000


def test_what_stays_is_written_behind_and_the_journal_is_free() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    stays = bench.put([b"stays@d.example", b"goes@d.example"], b"stays")
    ids = bench.take_ids()
    bench.commit((), [Settlement(ids[0], Area.DEFERRED, bench.now() + 3600, 1), Settlement(ids[1], None)])
    harness.clock.pump([0.25] * 20)
    assert message_path("/s", stays) in harness.disk.names
    assert [name for name in harness.disk.names if name.startswith("/q/deferred/") and name.endswith(".mqc")]
    harness.clock.calls.clear()
    harness.disk.power_cut()
    again = Bench(harness, harness.open())
    assert again.read(stays) == b"stays"
    ((message, entry),) = again.search()
    assert (message.spool_id, entry.number, entry.area, entry.attempts) == (stays, 1, Area.DEFERRED, 1)


def test_files_go_with_the_last_entry_that_needs_them() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    for number in (1, 3):
        bench.put([b"r%d@d.example" % n for n in range(number)])
    harness.clock.pump([0.25] * 20)
    assert len([name for name in harness.disk.names if name.endswith(".msg")]) == 2
    taken = bench.take_ids()
    assert len(taken) == 4
    bench.commit((), [Settlement(queue_id, None) for queue_id in taken])
    harness.clock.pump([0.25] * 60)
    assert not [name for name in harness.disk.names if name.endswith((".msg", ".mqc"))]


def test_mail_is_refused_when_the_disk_is_far_behind_and_taken_again_when_it_is_not() -> None:
    harness = ClusteredHarness(queue_settings(maxsize=4 << 20))
    bench = running(harness)
    harness.settle_down()
    full = OSError(28, "No space left on device")
    harness.disk.fault = lambda act, path: full if act == "create" and path.endswith((".msg", ".mqc")) else None
    assert put_until_refused(bench, b"z" * 100_000).full
    bench.commit((), [Settlement(queue_id, None) for queue_id in bench.take_ids()])
    harness.disk.fault = None
    harness.clock.pump([0.25] * 60)
    bench.put(content=b"z" * 100_000)


def test_mail_is_refused_below_minfree_while_settling_goes_on() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    bench.put()
    harness.disk.free_bytes = harness.disk.total_bytes // 100
    harness.clock.pump([0.5] * 4)
    with pytest.raises(Unavailable) as refused:
        bench.queue.draft()
    assert refused.value.full
    bench.commit((), [Settlement(queue_id, None) for queue_id in bench.take_ids()])
    harness.disk.free_bytes = harness.disk.total_bytes // 2
    harness.clock.pump([0.5] * 4)
    bench.put()


def test_a_disk_without_room_for_segments_refuses_mail_and_still_settles() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    harness.settle_down()
    full = OSError(28, "No space left on device")
    harness.disk.fault = lambda act, path: full if act == "create" else None
    assert put_until_refused(bench, b"z" * 120_000).full
    taken = bench.take_ids()
    assert len(taken) > 5
    bench.commit((), [Settlement(queue_id, None) for queue_id in taken])
    harness.disk.fault = None
    harness.clock.pump([1.0] * 10)
    bench.put(content=b"z" * 120_000)


def test_directories_are_made_however_deep_they_lie() -> None:
    settings = queue_settings()
    deep = attrs.evolve(settings, rootpath="/a/b/q", spool=attrs.evolve(settings.spool, rootpath="/c/d/s"))
    harness = ClusteredHarness(deep)
    assert running(harness).put()


def test_a_start_writes_over_nothing_that_only_the_last_batch_freed() -> None:
    harness = ClusteredHarness()
    bench = running(harness)
    spool_ids = [bench.put(content=b"%d" % number + b"x" * 100_000) for number in range(12)]
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    freed: list[str] = []
    with patch.object(queue.parts.segments, "free", side_effect=lambda horizon, _: freed.extend(used(queue, horizon))):
        harness.wait(queue.checkpoints.run())
    files = [harness.disk.names[name] for name in freed]
    assert files
    for name in [name for name in harness.disk.names if name.startswith("/q/journal/ready")]:
        harness.disk.unlink(name)
    harness.clock.calls.clear()
    harness.disk.kill()
    again = harness.open()
    assert again.parts.opened.writer.current is not None
    assert harness.disk.names[again.parts.opened.writer.current.path] not in files
    assert sorted(message.spool_id for message, _ in Bench(harness, again).search()) == spool_ids


def used(queue: ClusteredQueue, horizon: int) -> list[str]:
    """Segments that hold nothing behind it."""
    return [one.path for one in queue.parts.opened.writer.segments.values() if one.last_sequence <= horizon]
