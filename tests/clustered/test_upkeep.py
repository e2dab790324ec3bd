"""One file that can't be changed, read or trusted holds up nothing, and what is owed to it is not forgotten."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.clustered.checkpoint.policy import AGAIN_S
from mailismus.queue.providers.clustered.checkpoint.segments import MOST_TRIES
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import moments

EIO = OSError(errno.EIO, "Input/output error")


class Resting:
    """Three entries that rest in an open cluster."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=3000))
        self.bench = Bench(self.harness, self.harness.open())
        self.spool_id = self.bench.put(addresses(3))
        self.checkpoint()
        (self.path,) = self.clusters()

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue

    def clusters(self) -> list[str]:
        return [name for name in self.harness.disk.names if name.endswith(".mqc")]

    def checkpoint(self) -> None:
        self.queue.checkpoints.run()
        self.harness.settle_down()
        self.harness.clock.advance(AGAIN_S)

    def fail(self, *acts: str, where: Callable[[str], bool] | None = None) -> None:
        here = where or (lambda path: path == self.path)
        self.harness.disk.fault = lambda act, path: EIO if act in acts and here(path) else None

    def heal(self) -> None:
        self.harness.disk.fault = None

    def deliver(self, count: int) -> None:
        self.bench.remove(self.bench.take_ids(limit=count))

    def restart(self) -> None:
        """Without power."""
        self.harness.clock.calls.clear()
        self.harness.disk.power_cut()
        self.bench = Bench(self.harness, self.harness.open())
        self.harness.settle_down()

    def live(self) -> list[int]:
        return sorted(entry.number for message, entry in self.bench.search() if message.spool_id == self.spool_id)


@pytest.fixture
def resting() -> Resting:
    return Resting()


@pytest.mark.parametrize("act", ["open", "write"])
def test_a_cluster_that_can_not_be_marked_holds_up_no_checkpoint_and_its_entries_stay_over(
    resting: Resting, act: str
) -> None:
    resting.deliver(2)
    resting.fail(act)
    resting.bench.put()
    resting.checkpoint()  # comes to nothing: it is the open cluster
    for _ in range(3):
        made = resting.queue.checkpoints.counts.made
        resting.bench.put()
        resting.checkpoint()
        assert resting.queue.checkpoints.counts.made == made + 1
    resting.heal()
    resting.restart()
    assert resting.live() == [3]
    resting.checkpoint()
    resting.restart()
    assert resting.live() == [3]


def test_a_cluster_that_can_not_be_unlinked_stays_empty(resting: Resting) -> None:
    resting.deliver(3)
    resting.fail("unlink", "open")
    for _ in range(2):
        resting.checkpoint()
    resting.heal()
    resting.restart()
    assert resting.live() == []
    resting.bench.put()
    resting.checkpoint()
    resting.checkpoint()
    assert resting.path not in resting.clusters()


def test_lines_that_can_not_be_cut_off_never_count(resting: Resting) -> None:
    resting.bench.put(addresses(2))
    resting.fail("sync")
    resting.checkpoint()
    assert resting.queue.checkpoints.counts.abandoned == 1
    resting.fail("truncate", "create", where=lambda path: path.startswith(resting.path))
    for _ in range(2):
        resting.bench.put()
        resting.checkpoint()
    assert resting.queue.checkpoints.counts.made == 3
    resting.heal()
    resting.restart()
    assert resting.bench.entry_count() == 3 + 2 + 2
    resting.bench.put()
    resting.checkpoint()
    resting.restart()
    assert resting.bench.entry_count() == 3 + 2 + 2 + 1


def test_a_file_of_a_checkpoint_that_never_was_does_not_come_alive_because_it_can_not_be_unlinked(
    resting: Resting,
) -> None:
    before = set(resting.clusters())
    resting.bench.defer(resting.bench.take_ids(limit=1), resting.bench.now() + 3600)
    resting.fail("sync", where=lambda path: path.endswith(".mqc"))
    resting.checkpoint()
    (dead,) = set(resting.clusters()) - before
    resting.fail("unlink", where=lambda path: path == dead)
    for _ in range(2):
        resting.checkpoint()
    for _ in range(2):
        resting.restart()
        assert resting.live() == [1, 2, 3]
        resting.bench.put()
        resting.checkpoint()
    resting.heal()
    resting.bench.put()
    resting.checkpoint()
    assert dead not in resting.clusters()


def test_a_cluster_whose_sync_failed_is_written_anew(resting: Resting) -> None:
    resting.deliver(1)
    disk = resting.harness.disk
    untrusted = disk.names[resting.path]
    resting.fail("sync")
    resting.checkpoint()
    resting.heal()
    resting.checkpoint()
    assert disk.names[resting.path] is not untrusted
    assert untrusted.durable != bytes(untrusted.data)
    assert resting.live() == [2, 3]
    resting.restart()
    assert resting.live() == [2, 3]
    assert not [name for name in disk.names if name.endswith(".new")]


def test_what_is_written_anew_is_durable_by_itself(resting: Resting) -> None:
    resting.deliver(1)
    resting.fail("sync")
    resting.checkpoint()
    resting.fail("create", where=lambda path: path.endswith(".new"))
    resting.bench.put()
    resting.harness.disk.acts.clear()
    resting.checkpoint()  # durable, and with it the whole file system; the cluster is not trusted still
    assert not {("write", resting.path), ("sync", resting.path)} & set(resting.harness.disk.acts)
    resting.heal()
    untrusted = resting.harness.disk.names[resting.path]
    resting.checkpoint()
    assert resting.harness.disk.names[resting.path] is not untrusted
    resting.harness.disk.power_cut()
    assert resting.harness.disk.names[resting.path] is not untrusted
    resting.restart()
    assert resting.live() == [2, 3]


def test_lines_that_are_cut_off_late_stay_away(resting: Resting) -> None:
    resting.bench.put(addresses(2))

    def fault(act: str, path: str) -> OSError | None:
        is_record = act == "sync" and "/journal/" in path and not resting.queue.checkpoints.counts.abandoned
        return EIO if is_record or act == "truncate" else None

    resting.harness.disk.fault = fault
    resting.checkpoint()
    assert resting.queue.checkpoints.counts.abandoned == 1
    resting.bench.put()
    resting.checkpoint()  # durable, and with it the whole file system
    assert resting.queue.checkpoints.counts.made == 2
    resting.heal()
    written = len(resting.harness.disk.content_of(resting.path))
    resting.bench.put()
    resting.checkpoint()
    resting.harness.disk.power_cut()
    assert len(resting.harness.disk.content_of(resting.path)) < written
    resting.restart()
    assert resting.bench.entry_count() == 3 + 2 + 1 + 1


def test_a_crash_in_a_renewal_leaves_the_old_bytes_or_the_new_ones() -> None:
    def before(disk: TreeDisk) -> None:
        disk.make_directory("/q")
        disk.create("/q/1-1.mqc").write_at(0, [b"line\nline\nrest"])

    def act(disk: TreeDisk) -> None:
        CheckpointWriter(disk, "/q", "/s", 1000).rewrite(PendingCheckpoint(1, 0, 0.0), "/q/1-1.mqc", 10, [5])

    found = {tree.data_of("/q/1-1.mqc") for tree, _ in moments(before, act)}
    assert found == {b"line\nline\nrest", b"line\nxine\n"}


def test_what_a_renewal_left_behind_is_gone_with_the_next_start_that_finds_it(resting: Resting) -> None:
    disk = resting.harness.disk
    disk.create(resting.path + ".new").close()
    disk.sync_file_system("/")
    resting.restart()
    assert not [name for name in disk.names if name.endswith(".new")]
    assert resting.live() == [1, 2, 3]


def test_a_start_opens_no_cluster(resting: Resting) -> None:
    resting.fail("open", where=lambda path: path.endswith(".mqc"))
    resting.harness.clock.calls.clear()
    resting.harness.disk.power_cut()
    bench = Bench(resting.harness, resting.harness.open())
    bench.put()
    resting.harness.settle_down()
    resting.heal()
    assert resting.live() == [1, 2, 3]


def test_a_checkpoint_whose_own_code_fails_is_not_the_last(resting: Resting, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(resting.queue.checkpoints.sealing, "_append_record", broken)
        resting.bench.put()
        resting.checkpoint()
        assert resting.queue.checkpoints.counts.abandoned == 1
        resting.harness.settle_down()
    made = resting.queue.checkpoints.counts.made
    resting.checkpoint()
    assert resting.queue.checkpoints.counts.made == made + 1


def leave_content(resting: Resting, young: JournaledMessage) -> None:
    """As if memory were full."""
    content = young.content
    assert content is not None
    resting.queue.ledger.forget_content(young)
    young.leave_content(content)


@pytest.mark.parametrize("worn", ["fails", "ends early", "is overwritten"])
def test_a_message_that_can_not_be_read_in_the_journal_rests_without_its_content(
    resting: Resting, monkeypatch: pytest.MonkeyPatch, worn: str
) -> None:
    sick = resting.bench.put(content=b"can't be read")
    well = resting.bench.put(content=b"can be read")
    young = resting.queue.ledger.memtable.messages
    segment = young[sick].segment
    path = resting.queue.parts.opened.writer.segments[segment].path
    for spool_id in (sick, well):
        leave_content(resting, young[spool_id])
    offset = young[sick].offset
    file = resting.queue.parts.opened.writer.segments[segment].file
    read_at = file.read_at

    def read(at: int, size: int) -> bytes:
        if at != offset:
            return read_at(at, size)
        if worn == "fails":
            raise EIO
        return bytes(size) if worn == "is overwritten" else read_at(at, size - 1)

    monkeypatch.setattr(file, "read_at", read)  # one place of it is worn out
    with pytest.raises(Unavailable):
        resting.bench.read(sick)
    for _ in range(MOST_TRIES):
        resting.checkpoint()
    assert young
    resting.checkpoint()
    assert not young
    assert resting.bench.read(well) == b"can be read"
    with pytest.raises(Unavailable):
        resting.bench.read(sick)
    assert {message.spool_id for message, _ in resting.bench.search()} == {resting.spool_id, sick, well}
    filler = resting.bench.put(content=b"x" * 2000)
    while segment in resting.queue.parts.opened.writer.segments:
        filler = resting.bench.put(content=b"x" * 2000)
        if filler % 50 == 0:
            resting.checkpoint()
    resting.harness.settle_down()
    assert [name for name in resting.harness.disk.names if name.startswith("/q/corrupt/")] == [
        "/q/corrupt/" + path.rsplit("/", 1)[1]
    ]


def test_a_message_that_was_overwritten_in_the_journal_after_a_start_is_not_delivered(resting: Resting) -> None:
    sick, well = resting.bench.put(content=b"overwritten"), resting.bench.put(content=b"as it was")
    resting.restart()
    young = resting.queue.ledger.memtable.messages[sick]
    file = resting.queue.parts.opened.writer.segments[young.segment].file
    file.write_at(young.offset, [bytes(len(b"overwritten"))])
    with pytest.raises(Unavailable):
        resting.bench.read(sick)
    assert resting.bench.read(well) == b"as it was"


def test_the_file_of_a_large_message_that_was_refused_stays_until_the_journal_denies_it(resting: Resting) -> None:
    resting.fail("sync", where=lambda path: path.endswith(".mqj"))
    submission = resting.bench.submission(content=b"x" * 10_000)
    with pytest.raises(Unavailable):
        resting.bench.commit([submission])
    path = f"/s/{submission.draft.spool_id % 32:02x}/{submission.draft.spool_id:016X}.msg"
    resting.harness.settle_down()
    assert path in resting.harness.disk.names
    resting.heal()
    resting.harness.clock.pump([1.0] * 10)
    resting.bench.put()
    resting.harness.settle_down()
    assert path not in resting.harness.disk.names


def test_a_journal_that_could_not_be_written_for_long_takes_mail_soon_after(resting: Resting) -> None:
    resting.fail("sync", "create", where=lambda path: path.startswith("/q/journal"))
    for _ in range(20):
        with pytest.raises(Unavailable):
            resting.bench.commit([resting.bench.submission()])
        resting.harness.clock.pump([0.5] * 4)
    resting.heal()
    resting.harness.clock.pump([0.5] * 20)
    spool_id = resting.bench.put()
    resting.restart()
    assert QueueId(spool_id, 1) in [QueueId(m.spool_id, e.number) for m, e in resting.bench.search()]


def test_a_segment_that_can_not_be_begun_is_no_reason_to_say_anything_again(resting: Resting) -> None:
    live = resting.bench.put()
    young = resting.queue.ledger.memtable.messages[live]
    segment = young.segment
    opened = resting.queue.parts.opened
    opened.writer.turn_over()
    resting.fail("write", where=lambda path: path.endswith(".mqj"))
    with pytest.raises(Unavailable):
        resting.bench.commit([resting.bench.submission()])
    resting.heal()
    resting.bench.put()
    assert young.segment == segment
    assert resting.queue.commits.trouble is None
    assert not opened.writer.spoiled


def test_bounces_of_a_cluster_that_can_not_be_marked_are_reported_once(resting: Resting) -> None:
    ids = resting.bench.take_ids()
    resting.bench.commit((), [Settlement(queue_id, Area.BOUNCES, resting.bench.now(), 1) for queue_id in ids])
    resting.fail("open")
    resting.checkpoint()
    resting.bench.remove(resting.bench.take_ids(Area.BOUNCES))
    resting.checkpoint()
    resting.heal()
    resting.restart()
    assert resting.bench.entry_count() == 0


def test_a_stop_whose_checkpoint_fails_at_its_record_leaves_no_entry_twice(resting: Resting) -> None:
    resting.bench.put(addresses(2))
    failed: list[str] = []

    def fault(act: str, path: str) -> OSError | None:
        if act == "sync" and path.endswith(".mqj") and not failed:
            failed.append(path)
            return EIO
        return None

    resting.harness.disk.fault = fault
    resting.harness.wait(resting.queue.close())
    assert failed
    resting.heal()
    resting.restart()
    assert resting.bench.entry_count() == 3 + 2
    resting.deliver(10)
    resting.checkpoint()
    resting.restart()
    assert resting.bench.entry_count() == 0
