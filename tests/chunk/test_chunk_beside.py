"""Writers beside the server: what they commit is found at once, what they leave goes, what they still write stays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from mailismus.errors import StartError, StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.writers import lock_out_writers, share_with_writers
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.beside import BesideDraft, ChunkBesideWriter, open_beside
from mailismus.queue.providers.chunk.control.adoption import SWEEP_S
from mailismus.queue.providers.chunk.recovery.abandoned import remove_unfinished
from mailismus.queue.providers.chunk.recovery.directories import ensure_directories
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import take_epoch, take_spool_id
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.chunk.test_chunk_start import files_of
from tests.contracts.bench import Bench, addresses, ids
from tests.fakes.disk import MemoryDisk

CONTENT = b"Subject: x\r\n\r\nbody\r\n"


class Ends:
    """What the listener of commits is told."""

    def __init__(self) -> None:
        self.durable = 0
        self.errors: list[StorageError] = []

    def on_durable(self, marks: Sequence[object], gone: Sequence[Sequence[SpoolId]]) -> None:
        self.durable += len(marks)

    def on_failed(self, marks: Sequence[object], error: StorageError) -> None:
        self.errors.append(error)


@pytest.fixture(autouse=True)
def the_owner_is_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # the owner of all files of a disk in memory


@pytest.fixture
def writer(harness: ChunkHarness) -> Iterator[ChunkBesideWriter]:
    writer = open_other(harness)
    yield writer
    writer.close()


def open_other(harness: ChunkHarness) -> ChunkBesideWriter:
    return open_beside(harness.settings, harness.disk, harness.now)


def begin(writer: ChunkBesideWriter, content: bytes = CONTENT) -> BesideDraft:
    draft = writer.draft()
    draft.write(content)
    assert isinstance(draft, BesideDraft)
    return draft


def put(writer: ChunkBesideWriter, recipients: Sequence[bytes] = (b"sue@a.example",), content: bytes = CONTENT) -> SpoolId:
    """Put a message into the queue by another process. Return its id."""
    ends, draft = Ends(), begin(writer, content)
    writer.accept(draft, Envelope(b"joe@b.example", tuple(recipients)), ends, None)
    assert ends.durable == 1
    assert not ends.errors
    return draft.spool_id


def test_without_a_server_a_message_waits_for_its_start(harness: ChunkHarness) -> None:
    writer = open_other(harness)  # the queue was never opened before
    spool_id = put(writer, addresses(3))
    writer.close()
    harness.disk.power_cut()
    bench = Bench(harness, harness.make())
    (message,) = bench.take()
    assert message.spool_id == spool_id
    assert len(message.entries) == 3
    assert bench.read(spool_id) == CONTENT


def test_a_running_server_hears_of_a_message_by_a_look(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    spool_id = put(writer)
    ready = bench.queue.ready(Area.INCOMING)
    assert not ready.called
    assert harness.queue is not None
    harness.queue.parts.adoption.look()
    harness.wait(ready)
    (message,) = bench.take()
    assert message.spool_id == spool_id
    assert bench.read(spool_id) == CONTENT
    bench.remove(ids([message]))
    harness.settle_down()
    assert files_of(harness.disk) == []


def test_a_lost_signal_costs_a_second(harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter) -> None:
    spool_ids = {put(writer) for _ in range(3)}
    ready = bench.queue.ready(Area.INCOMING)
    harness.advance(1.01)
    harness.settle_down()
    assert ready.called
    assert {message.spool_id for message in bench.take()} == spool_ids


def test_a_message_of_another_program_stays_and_survives_as_any_other(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    put(writer, [b"joe@home.example", b"sue@a.example"])
    for _ in range(8):
        harness.advance(1)
    harness.settle_down()
    assert {path.split("/")[2] for path in files_of(harness.disk)} == {"mess", "info", "local", "remote"}
    writer.close()
    bench = Bench(harness, harness.crash(bench.queue))
    assert len(bench.take()[0].entries) == 2


def test_the_servers_own_messages_are_never_taken_for_those_of_others(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    assert harness.queue is not None
    adoption = harness.queue.parts.adoption
    for turn in range(30):
        bench.put(addresses(2))
        adoption.look()
        if turn % 3 == 0:
            put(writer)
        if turn % 2:
            taken = bench.take(limit=5)
            adoption.look()
            bench.remove(ids(taken))
        harness.advance(0.3)
    harness.settle_down()
    assert adoption.adopted == 10
    while taken := bench.take():
        for message in taken:
            bench.remove(ids([message]))
    harness.settle_down()
    assert files_of(harness.disk) == []


def test_a_message_is_the_servers_when_its_writer_gives_up_the_lock_and_not_before(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    draft = begin(writer)
    draft.writer.finish()
    seen: list[int] = []

    def look(act: str, path: str) -> OSError | None:
        if act == "sync directory" and path == "/q/todo":  # its name in todo is there, and not durable
            harness.disk.fault = None
            assert harness.queue is not None
            harness.queue.parts.adoption.look()
            harness.settle_down()
            seen.append(harness.queue.parts.adoption.adopted)
        return None

    harness.disk.fault = look
    ends = Ends()
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), ends, None)
    assert ends.durable == 1
    assert seen == [0]
    harness.advance(1.01)
    harness.settle_down()
    assert len(bench.take()) == 1


@pytest.mark.parametrize("step", ["content", "envelope"])
def test_what_a_killed_writer_left_goes_and_what_a_living_one_has_stays(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter, step: str
) -> None:
    living, killed = begin(writer), begin(writer)
    if step == "envelope":
        for draft in (living, killed):
            assert harness.opened is not None
            harness.opened.directories.of("intd").create(str(draft.writer.number)).close()
    killed.writer.file.close()  # as the end of its process does
    harness.advance(SWEEP_S + 1.5)
    harness.settle_down()
    left = {path.rpartition("/")[2] for path in files_of(harness.disk) if "/pid/" not in path}
    assert left == {str(living.writer.number)}
    assert sum("/pid/" in path for path in files_of(harness.disk)) == 1
    ends = Ends()
    if step == "content":
        writer.accept(living, Envelope(b"", (b"sue@a.example",)), ends, None)
        assert ends.durable == 1


def test_what_could_not_be_removed_of_a_killed_writer_goes_with_a_later_look(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    killed = begin(writer)
    assert harness.opened is not None
    harness.opened.directories.of("intd").create(str(killed.writer.number)).close()
    killed.writer.file.close()
    failed: list[str] = []

    def fail_once(act: str, path: str) -> OSError | None:
        if act != "unlink" or not path.startswith("/q/intd/") or failed:
            return None
        failed.append(path)
        return OSError(5, "Input/output error")

    harness.disk.fault = fail_once
    for _ in range(2):
        harness.advance(SWEEP_S + 1.5)
        harness.settle_down()
    assert failed
    assert not files_of(harness.disk)


def test_a_name_in_pid_of_a_committed_message_costs_nothing_but_itself(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter
) -> None:
    harness.disk.fault = lambda act, path: OSError(5, "x") if act == "unlink" and path.startswith("/q/pid/") else None
    spool_id = put(writer)
    harness.disk.fault = None
    assert any("/pid/" in path for path in files_of(harness.disk))
    harness.advance(SWEEP_S + 1.5)
    harness.settle_down()
    assert not any("/pid/" in path for path in files_of(harness.disk))
    assert bench.take()[0].spool_id == spool_id


def test_a_start_leaves_alone_what_is_committed_meanwhile(harness: ChunkHarness, bench: Bench) -> None:
    writer = open_other(harness)
    draft = begin(writer)
    number = draft.writer.number
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), Ends(), None)
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    assert not remove_unfinished(directories, number, BornNumbers())  # a start had seen it in S2
    directories.close()
    writer.close()
    bench = Bench(harness, harness.restart(bench.queue))
    assert len(bench.take()) == 1


@pytest.mark.parametrize("place", ["/q/intd", "/q/todo"])
def test_a_failed_barrier_is_a_refusal_that_leaves_nothing(
    harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter, place: str
) -> None:
    ends, draft = Ends(), begin(writer)

    def fail_once(act: str, path: str) -> OSError | None:
        if act == "sync directory" and path == place:
            harness.disk.fault = None
            return OSError(5, "Input/output error")
        return None

    harness.disk.fault = fail_once
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), ends, None)
    assert harness.disk.fault is None
    assert len(ends.errors) == 1
    assert files_of(harness.disk) == []
    harness.advance(2)
    harness.settle_down()
    assert bench.take() == []


def test_a_full_disk_is_told_as_one(harness: ChunkHarness, bench: Bench, writer: ChunkBesideWriter) -> None:
    ends, draft = Ends(), begin(writer)
    harness.disk.fault = lambda act, path: OSError(28, "No space left") if act == "create" else None
    writer.accept(draft, Envelope(b"", (b"sue@a.example",)), ends, None)
    harness.disk.fault = None
    assert getattr(ends.errors[0], "full", None) is True
    assert files_of(harness.disk) == []


def test_ids_of_all_processes_differ(harness: ChunkHarness, bench: Bench) -> None:
    writers = [open_other(harness) for _ in range(3)]
    spool_ids = [put(writer) for _ in range(4) for writer in writers]
    bench.put(addresses(1))
    bench = Bench(harness, harness.restart(bench.queue))
    bench.put(addresses(1))
    spool_ids += [put(writer) for writer in writers]
    for writer in writers:
        writer.close()
    harness.advance(1.01)
    harness.settle_down()
    found = [message.spool_id for message in bench.take(limit=100)]
    assert len(found) == len(set(found)) == len(spool_ids) + 2
    assert set(spool_ids) < set(found)


def test_single_ids_and_epochs_never_meet() -> None:
    disk = MemoryDisk()
    disk.make_directory("/q")
    disk.make_directory("/q/ids")
    ids = disk.open_directory("/q/ids")
    assert [take_spool_id(ids), take_spool_id(ids)] == [1 << 32 | 1, 1 << 32 | 2]
    assert take_epoch(ids, 0) == 2
    assert take_spool_id(ids) == 3 << 32 | 1
    assert take_epoch(ids, 9) == 10
    assert take_spool_id(ids) == 11 << 32 | 1
    ids.create("0000000b.ffffffff").close()
    assert take_spool_id(ids) == 12 << 32 | 1
    assert ids.names() == ["0000000c.00000001"]
    ids.close()


def test_no_writer_works_beside_a_repair_and_none_begins_one(harness: ChunkHarness, bench: Bench) -> None:
    held = lock_out_writers(harness.disk, "/q", lambda _: None)
    with pytest.raises(StartError) as refused:
        open_other(harness)
    assert refused.value.status == os.EX_TEMPFAIL
    held.release()
    writers = [share_with_writers(harness.disk, "/q") for _ in range(2)]
    waits: list[float] = []
    with pytest.raises(StartError) as refused:
        lock_out_writers(harness.disk, "/q", waits.append)
    assert refused.value.status == os.EX_TEMPFAIL
    assert waits
    for one in writers:
        one.release()
    lock_out_writers(harness.disk, "/q", waits.append).release()


def test_the_number_of_parts_does_not_change_under_a_writer(
    harness: ChunkHarness, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    harness.wait(bench.queue.close())
    writer = open_other(harness)
    with pytest.raises(StartError) as refused:
        ensure_directories(harness.disk, "/q", SPLIT + 1)
    assert refused.value.status == os.EX_TEMPFAIL
    writer.close()
    ensure_directories(harness.disk, "/q", SPLIT + 1)
    writer = open_other(harness)
    put(writer)
    writer.close()
    harness.clock.calls.clear()
    harness.split = SPLIT + 1
    assert len(Bench(harness, harness.open()).take()) == 1


def test_another_user_than_the_owner_is_refused(
    harness: ChunkHarness, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    with pytest.raises(StartError) as refused:
        open_other(harness)
    assert refused.value.status == os.EX_NOPERM


def test_signals_without_a_pause_keep_no_mail_out(harness: ChunkHarness, bench: Bench) -> None:
    assert harness.queue is not None
    adoption = harness.queue.parts.adoption
    is_flooding = True

    def flood() -> None:
        adoption.look()
        if is_flooding:
            harness.clock.callLater(0.0005, flood)

    flood()
    bench.put(addresses(2))
    message = bench.take()[0]
    bench.remove(ids([message]))
    is_flooding = False
    harness.settle_down()
    assert files_of(harness.disk) == []
