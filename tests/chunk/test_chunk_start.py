"""A start: what it makes of each state, which queues it refuses, and whom it leaves alone."""

from __future__ import annotations

import errno

import pytest

from mailismus.chunks.generator import NameGenerator
from mailismus.errors import StartError
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.chunk.recovery.opening import open_chunks
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import format_epoch, parse_epoch, take_epoch
from mailismus.queue.providers.chunk.write.mess import MessWriters, StreamedMess
from mailismus.spool.message_file import TRAILER_SIZE
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import NO_REPLY, Bench, addresses
from tests.fakes.disk import MemoryDisk

EMPTY = {"pid", "intd", "todo", "bounce", "mess", "info", "local", "remote"}


def files_of(disk: MemoryDisk) -> list[str]:
    """Those of messages."""
    return sorted(path for path in disk.names if path.split("/")[2] in EMPTY)


def test_a_message_passes_through_the_states(harness: ChunkHarness, bench: Bench) -> None:
    bench.put([b"joe@home.example", b"sue@a.example"])
    (number,) = {path.rpartition("/")[2] for path in files_of(harness.disk)}
    part = int(number) % SPLIT
    new = [f"/q/intd/{number}", f"/q/mess/{part}/{number}", f"/q/todo/{number}"]
    assert files_of(harness.disk) == new
    local, remote = bench.take_ids()
    bench.commit((), [Settlement(remote, Area.DEFERRED, bench.now() + 60, 1, NO_REPLY)])
    harness.settle_down()
    stays = [f"/q/{name}/{part}/{number}" for name in ("info", "local", "mess", "remote")]
    assert files_of(harness.disk) == stays
    bench.remove([local])
    assert files_of(harness.disk) == stays
    bench.commit((), [Settlement(remote, Area.BOUNCES, bench.now(), 2, NO_REPLY)])
    assert files_of(harness.disk) == sorted([*stays, f"/q/bounce/{number}"])
    bench.remove([remote])
    harness.settle_down()
    assert files_of(harness.disk) == []


def test_a_message_that_stays_is_preprocessed(harness: ChunkHarness, bench: Bench) -> None:
    bench.put(addresses(2))
    for _ in range(6):
        harness.advance(1)
    harness.settle_down()
    assert {path.split("/")[2] for path in files_of(harness.disk)} == {"mess", "info", "local", "remote"}


def test_a_living_writer_is_left_alone_and_a_dead_one_is_not(harness: ChunkHarness) -> None:
    harness.open()
    assert harness.opened is not None
    harness.opened.release()
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    writers = MessWriters(directories, NameGenerator(lambda: 7), harness.now)
    living, dead = writers.begin(), writers.begin()
    for writer in (living, dead):
        writer.append((b"content",))
        directories.of("intd").create(str(writer.number)).close()
    directories.of("pid").create("left").close()
    dead.file.close()
    harness.clock.calls.clear()
    harness.open()
    left = files_of(harness.disk)
    assert left == [f"/q/intd/{living.number}", f"/q/mess/{living.number % SPLIT}/{living.number}"]


def test_a_file_that_lost_its_name_before_it_was_locked_is_made_again(harness: ChunkHarness) -> None:
    harness.open()
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    lost: list[str] = []

    def take_away(act: str, path: str) -> OSError | None:
        if act == "lock file" and not lost:
            lost.append(path)
            harness.disk.unlink(path)
        return None

    harness.disk.fault = take_away
    writer = MessWriters(directories, NameGenerator(lambda: 7), harness.now).begin()
    harness.disk.fault = None
    assert lost
    assert files_of(harness.disk) == [f"/q/mess/{writer.number % SPLIT}/{writer.number}"]


def test_an_empty_content_that_streams_is_a_whole_file(harness: ChunkHarness) -> None:
    harness.open()
    assert harness.opened is not None
    streamed = StreamedMess(MessWriters(harness.opened.directories, NameGenerator(lambda: 1), harness.now))
    streamed.finish()
    assert streamed.writer is not None
    assert streamed.writer.file.size() == TRAILER_SIZE
    streamed.discard()
    assert not files_of(harness.disk)


def test_a_queue_that_was_copied_is_refused(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    harness.clock.calls.clear()
    harness.disk.power_cut()
    (path,) = (path for path in files_of(harness.disk) if "/mess/" in path)
    number = int(path.rpartition("/")[2]) + SPLIT
    for name in files_of(harness.disk):
        harness.disk.rename(name, f"{name.rpartition('/')[0]}/{number}")
    before = dict(harness.disk.names)
    with pytest.raises(StartError, match="copied or restored") as caught:
        open_chunks(harness.settings, harness.disk, SPLIT)
    assert caught.value.status == 65
    assert harness.disk.names == before
    assert not harness.disk.locks


def test_other_parts_are_refused_while_there_is_mail(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    harness.clock.calls.clear()
    harness.disk.kill()
    with pytest.raises(StartError, match=r"<conf_split> is 5.* messages in 3 parts") as caught:
        open_chunks(harness.settings, harness.disk, 5)
    assert (caught.value.status, caught.value.setting) == (78, "mta/queue/conf_split")
    bench.queue = harness.open()
    bench.remove(bench.take_ids())
    harness.restart(bench.queue)
    assert harness.opened is not None
    harness.opened.release()
    opened = open_chunks(harness.settings, harness.disk, 5)
    assert opened.directories.split == 5


def test_a_damaged_number_of_parts_is_refused(harness: ChunkHarness, bench: Bench) -> None:
    harness.disk.kill()
    harness.disk.damage("/q/conf-split", 0, b"x")
    with pytest.raises(StartError, match="conf-split is damaged") as caught:
        open_chunks(harness.settings, harness.disk, SPLIT)
    assert caught.value.status == 65


def test_two_servers_do_not_hold_one_queue(harness: ChunkHarness, bench: Bench) -> None:
    with pytest.raises(StartError, match="another server holds") as caught:
        open_chunks(harness.settings, harness.disk, SPLIT)
    assert caught.value.status == 75


def test_a_damaged_envelope_stays_where_it_is(harness: ChunkHarness, bench: Bench) -> None:
    bench.put()
    (path,) = (path for path in files_of(harness.disk) if "/todo/" in path)
    harness.disk.damage(path, 30, b"?")
    before = files_of(harness.disk)
    queue = harness.crash(bench.queue)
    assert harness.wait(queue.take(Area.INCOMING, 9, harness.now(), None)) == []
    harness.settle_down()
    assert files_of(harness.disk) == before


def test_what_does_not_check_of_an_envelope_is_kept_and_the_rest_preprocessed_anew(
    harness: ChunkHarness, bench: Bench
) -> None:
    bench.put([b"joe@home.example", b"sue@a.example"])
    (path,) = (path for path in files_of(harness.disk) if "/todo/" in path)
    harness.disk.damage(path, 30, b"?")
    bench.queue = harness.crash(bench.queue)
    for _ in range(6):
        harness.advance(1)
    harness.settle_down()
    assert path not in harness.disk.names
    assert [entry.recipient for _, entry in bench.search()] == [b"sue@a.example"]
    assert any(name.startswith("/q/corrupt/") for name in harness.disk.names)


def test_a_sound_message_that_was_not_preprocessed_rests_behind_a_start(harness: ChunkHarness, bench: Bench) -> None:
    bench.put(addresses(2))
    bench.queue = harness.crash(bench.queue)
    assert harness.queue is not None
    ledger = harness.queue.parts.ledger
    assert (len(ledger.resting), len(ledger.index.messages)) == (1, 0)


def test_epochs_are_taken_by_one_process_alone() -> None:
    disk = MemoryDisk()
    for path in ("/q", "/q/ids"):
        disk.make_directory(path)
    ids = disk.open_directory("/q/ids")
    taken = [take_epoch(ids, 0) for _ in range(5)]
    assert taken == [1, 2, 3, 4, 5]
    assert take_epoch(ids, 40) == 41
    assert ids.names() == [format_epoch(41)]
    disk.power_cut()
    assert take_epoch(disk.open_directory("/q/ids"), 0) == 42
    assert parse_epoch("provider") is None


def test_an_epoch_that_another_process_has_passed_is_given_up() -> None:
    """Between the look and the act two others come: the number that was free then was used and removed."""
    disk = MemoryDisk()
    for path in ("/q", "/q/ids"):
        disk.make_directory(path)
    ids = disk.open_directory("/q/ids")
    assert take_epoch(ids, 0) == 1

    def others_come(act: str, path: str) -> OSError | None:
        if act == "create":
            disk.fault = None
            assert take_epoch(ids, 0) == 2
            assert take_epoch(ids, 0) == 3
        return None

    disk.fault = others_come
    assert take_epoch(ids, 0) == 4
    assert ids.names() == [format_epoch(4)]


def test_an_epoch_that_is_not_durable_is_none() -> None:
    disk = MemoryDisk()
    for path in ("/q", "/q/ids"):
        disk.make_directory(path)
    assert take_epoch(disk.open_directory("/q/ids"), 0) == 1
    disk.fault = lambda act, path: OSError(errno.EIO, "EIO") if act == "sync directory" else None
    with pytest.raises(OSError, match="EIO"):
        take_epoch(disk.open_directory("/q/ids"), 0)
    assert f"/q/ids/{format_epoch(1)}" in disk.names  # the one before stays until the new one is durable


def test_a_message_of_which_a_file_can_not_be_read_is_left_as_it_is(harness: ChunkHarness, bench: Bench) -> None:
    spool_id = bench.put([b"joe@home.example", b"sue@a.example"])
    assert harness.queue is not None
    harness.queue.parts.upkeep.run()
    harness.settle_down()
    before = files_of(harness.disk)
    other = bench.put()
    harness.clock.calls.clear()
    harness.disk.power_cut()
    harness.disk.fault = lambda act, path: OSError(errno.EIO, "EIO") if act == "open" and "/local/" in path else None
    bench.queue = harness.open()
    harness.disk.fault = None
    assert [queue_id.spool_id for queue_id in bench.take_ids()] == [other]
    harness.settle_down()
    assert set(before) <= set(files_of(harness.disk))
    bench.queue = harness.restart(bench.queue)
    assert {queue_id.spool_id for queue_id in bench.take_ids()} == {spool_id, other}


def test_one_error_of_the_disk_is_no_reason_to_leave_a_message(harness: ChunkHarness, bench: Bench) -> None:
    bench.put(addresses(2))
    failed: list[str] = []

    def once(act: str, path: str) -> OSError | None:
        if act == "open" and "/todo/" in path and not failed:
            failed.append(path)
            return OSError(errno.EIO, "EIO")
        return None

    harness.clock.calls.clear()
    harness.disk.power_cut()
    harness.disk.fault = once
    bench.queue = harness.open()
    assert failed
    assert len(bench.take_ids()) == 2


def test_a_line_that_does_not_check_is_kept_before_its_file_is_written_anew(harness: ChunkHarness, bench: Bench) -> None:
    bench.put(addresses(3))
    (path,) = (path for path in files_of(harness.disk) if "/todo/" in path)
    start = harness.disk.content_of(path).index(b"2/3")
    harness.disk.damage(path, start, b"????????")
    queue = bench.queue = harness.crash(bench.queue)
    left = bench.take_ids()
    assert sorted(queue_id.number for queue_id in left) == [1, 3]
    assert harness.queue is queue
    harness.queue.parts.upkeep.run()
    harness.settle_down()
    (kept,) = (path for path in harness.disk.names if path.startswith("/q/corrupt/"))
    assert b"????????" in harness.disk.content_of(kept)
