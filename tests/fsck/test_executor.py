"""What the executor of a repair do is durable when they return, and in the journal before anything rests on it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import pytest

from mailismus.disk.interface import IFile
from mailismus.journal.segment import SMALLEST
from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.files import LOST_REPLY
from mailismus.queue.fsck.local import actions as shared
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.format.record import Checkpoint
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry
from mailismus.queue.providers.clustered.fsck.repairs import actions
from mailismus.queue.providers.clustered.fsck.repairs import executor as module
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load
from mailismus.spool.message_file import encode_trailer
from mailismus.spool.silo import message_path
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import Doing, behind_one_who_was_killed, made_by, moments, moments_over
from tests.durability.crash.states import Crash, Story
from tests.durability.crash.tree import Tree
from tests.fsck.copies import copies_of
from tests.fsck.worlds import Stopped, executor_on, lines_on, tree_of

PATH = message_path("/s", SpoolId(5))
OTHER = "/s/06/other.msg"
OLD = b"old " * 2500


def files(disk: TreeDisk) -> None:
    for path in ("/q", "/q/corrupt", "/s", "/s/05"):
        disk.make_directory(path)
    disk.create(PATH).write_at(0, [OLD])


def with_silo(disk: TreeDisk) -> None:
    files(disk)
    disk.make_directory("/s/06")


def data(tree: Tree, path: str) -> bytes | None:
    return tree.data_of(path) if path in tree.names.files else None


# files


def test_other_bytes_in_place_are_durable() -> None:
    for tree, is_over in moments(files, lambda disk: executor_on(disk).write(PATH, 4, b"new ")):
        assert data(tree, PATH) == b"old new " + OLD[8:] or not is_over


def test_the_end_of_a_file_is_durable() -> None:
    for tree, is_over in moments(files, lambda disk: executor_on(disk).cut(PATH, 100)):
        assert data(tree, PATH) in ([OLD[:100]] if is_over else [OLD, OLD[:100]])


def unlinked(disk: TreeDisk) -> None:
    executor_on(disk).unlink(PATH)


@pytest.mark.parametrize("act", [unlinked, behind_one_who_was_killed(unlinked)], ids=["first", "behind-one-who-was-killed"])
def test_a_name_that_goes_is_gone_for_good(act: Doing) -> None:
    seen = set()
    for tree, is_over in moments(files, act):
        assert data(tree, PATH) in ([None] if is_over else [None, OLD])
        seen.add(data(tree, PATH))
    assert seen == {None, OLD}


def test_another_name_is_durable() -> None:
    for tree, is_over in moments(with_silo, lambda disk: executor_on(disk).link(PATH, OTHER)):
        assert data(tree, PATH) == OLD
        assert data(tree, OTHER) in ([OLD] if is_over else [None, OLD])


def renamed(disk: TreeDisk) -> None:
    executor_on(disk).rename(PATH, OTHER)


def renamed_behind_one_who_made_the_silo(disk: TreeDisk) -> None:
    disk.make_directory("/s/06")
    renamed(disk)


@pytest.mark.parametrize(
    ("before", "act"),
    [(files, renamed), (with_silo, renamed), (files, renamed_behind_one_who_made_the_silo)],
    ids=["new-directory", "old-directory", "directory-not-durable"],
)
def test_a_file_that_is_renamed_is_in_one_place_or_the_other(before: Doing, act: Doing) -> None:
    for tree, is_over in moments(before, act):
        found = [data(tree, PATH), data(tree, OTHER)]
        assert found in ([[None, OLD]] if is_over else [[OLD, None], [None, OLD]])


PIECES = (b"one ", b"two")


def written(disk: TreeDisk) -> None:
    executor_on(disk).write_message(SpoolId(6), iter(PIECES))


def written_behind_one_who_made_the_silo(disk: TreeDisk) -> None:
    disk.make_directory("/s/06")
    written(disk)


@pytest.mark.parametrize(
    ("before", "act"),
    [(files, written), (with_silo, written), (files, written_behind_one_who_made_the_silo)],
    ids=["new-silo", "old-silo", "silo-not-durable"],
)
def test_a_message_file_is_whole_and_durable(before: Doing, act: Doing) -> None:
    whole = b"one two" + encode_trailer(7, zlib.crc32(b"one two"))
    for tree, is_over in moments(before, act):
        assert not is_over or data(tree, message_path("/s", SpoolId(6))) == whole


def test_a_message_file_that_can_not_be_written_is_none() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one "
        raise OSError(5, "can't be read")

    disk = TreeDisk(made_by(with_silo))
    with pytest.raises(OSError, match="can't be read"):
        executor_on(disk).write_message(SpoolId(6), pieces())
    assert disk.list_directory("/s/06") == []


# the journal


@pytest.fixture(scope="module")
def queue() -> Tree:
    """Without its free segments, which take time alone."""
    disk = Stopped().disk
    for path in [path for path in disk.names if "ready" in path]:
        del disk.names[path]
    return tree_of(disk)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record is a batch."""
    monkeypatch.setattr(module, "BATCH_BYTES", 1)


def journal(disk: TreeDisk) -> ReplayedQueue:
    return load(disk, "/q/journal")


_told: dict[bytes, ReplayedQueue] = {}


def told_by(tree: Tree) -> ReplayedQueue:
    """What a start finds."""
    if tree.digest not in _told:
        _told[tree.digest] = journal(TreeDisk(tree))
    return _told[tree.digest]


def resting_line(disk: TreeDisk, loaded: ReplayedQueue, area: Area = Area.INCOMING, recipient: int = 1) -> LiveEntry:
    """One in a cluster of this area."""
    found = (line for line in lines_on(disk, loaded) if line.source.cluster is not None and line.source.area is area)
    return next(line for line in found if line.queue_id.number >= recipient)


def place_of(line: LiveEntry) -> Place:
    assert line.source.cluster is not None
    return Place(line.source.cluster, line.offset)


def is_copied(line: LiveEntry, base: Tree, tree: Tree) -> bool:
    wanted = base.data_of(line.source.path)[line.offset :].partition(b"\n")[0]
    return any(offset == line.offset and copy == wanted for offset, copy in copies_of(line.source.path, tree))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("act", [RepairExecutor.mark, RepairExecutor.end])
def test_a_line_that_is_said_to_be_over_has_been_copied(
    queue: Tree, act: Callable[[RepairExecutor, LiveEntry], None]
) -> None:
    """A start that finds it said marks the line, and removes its cluster when all of it is over."""
    line = resting_line(TreeDisk(queue), told_by(queue))
    assert place_of(line) not in told_by(queue).owed

    def doing(disk: TreeDisk) -> None:
        act(executor_on(disk, journal(disk)), line)

    seen = set()
    for tree, is_over in moments_over(queue, doing):
        is_told = place_of(line) in told_by(tree).owed
        assert is_told <= is_copied(line, queue, tree)
        assert is_over <= is_told
        seen.add((is_told, is_copied(line, queue, tree)))
    assert seen == {(False, False), (False, True), (True, True)}


def test_what_clusters_count_is_durable_when_it_is_said(queue: Tree) -> None:
    """Clusters are moved and put right behind it, and then they do not tell any more what this one knew."""
    newest = told_by(queue).checkpoint + 5
    for first in (queue, without_segments(queue)):
        for tree, is_over in moments_over(first, lambda disk: say_checkpoint(executor_on(disk, journal(disk)), newest)):
            loaded = told_by(tree)
            assert loaded.checkpoint == newest or not is_over
            # Nor is there ever a journal that tells of no checkpoint where there was none.
            assert loaded.checkpoint == newest or first is queue or not loaded.journal.used


def without_segments(tree: Tree) -> Tree:
    disk = TreeDisk(tree)
    for name in disk.list_directory("/q/journal"):
        disk.unlink(f"/q/journal/{name}")
    return tree_on(disk)


def tree_on(disk: TreeDisk) -> Tree:
    """What is on it now."""
    return Story(disk.acts, disk.tree).tree(Crash(len(disk.acts)))


def say_checkpoint(executor: RepairExecutor, newest: int, lengths: int = 0) -> None:
    assert executor.loaded is not None
    many = {ClusterId(Area.DEFERRED, "20990101T0000", 1, number): 100 for number in range(lengths)}
    executor.say_checkpoint(Checkpoint(executor.loaded.horizon, executor.loaded.epoch, newest, many), ())


def test_what_does_not_fit_into_a_segment_gets_one_of_its_own(queue: Tree) -> None:
    disk = TreeDisk(queue)
    executor = executor_on(disk, journal(disk))
    say_checkpoint(executor, 7)
    say_checkpoint(executor, 8, lengths=30_000)
    loaded = journal(disk)
    assert (loaded.checkpoint, len(loaded.lengths)) == (8, 30_000)
    assert max(segment.size_bytes for segment in loaded.journal.used) > SMALLEST


# the end


def with_last_batch_unsynced(tree: Tree) -> tuple[Tree, Doing]:
    """The queue without the last batch of its journal, and who writes that, and is killed before his barrier."""
    loaded = told_by(tree)
    assert loaded.last is not None
    assert loaded.last_segment is not None
    path, start, end = loaded.last_segment.path, loaded.last.offset, loaded.last_segment.end
    batch = tree.data_of(path)[start:end]
    disk = TreeDisk(tree)
    disk.open(path).write_at(start, [bytes(len(batch))])
    return tree_on(disk), lambda disk: disk.open(path).write_at(start, [batch])


AT_END: dict[str, Callable[[RepairExecutor, str], None]] = {
    "written": lambda executor, path: executor.write_at_end(path, 0, b"#"),
    "removed": lambda executor, path: executor.remove_at_end(path),
    "moved": lambda executor, path: executor.move_at_end(path),
}


@pytest.mark.parametrize("act", AT_END.values(), ids=AT_END)
def test_what_is_replaced_goes_when_what_replaces_it_is_durable(
    queue: Tree, act: Callable[[RepairExecutor, str], None]
) -> None:
    """What was said, and all that was found in the journal, whose last batch may be in the page cache alone."""
    base, before = with_last_batch_unsynced(queue)
    last = told_by(queue).last_sequence
    line = resting_line(TreeDisk(queue), told_by(queue), Area.BOUNCES)
    for is_said in (False, True):

        def doing(disk: TreeDisk, is_said: bool = is_said) -> None:
            before(disk)
            executor = executor_on(disk, journal(disk))
            act(executor, line.source.path)
            if is_said:
                executor.mark(line)
            executor.finish()

        seen = set()
        for tree, is_over in moments_over(base, doing):
            is_here = data(tree, line.source.path) == queue.data_of(line.source.path)
            assert is_here or told_by(tree).last_sequence >= last
            assert is_here or not is_said or place_of(line) in told_by(tree).owed
            assert not (is_over and is_here)
            seen.add(is_here)
        assert seen == {False, True}


def test_a_message_is_copied_before_its_entries_are_bounces_and_goes_when_they_are(
    queue: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that finds them said removes it when they are over."""
    loaded = told_by(queue)
    disk = TreeDisk(queue)
    line = resting_line(disk, loaded)
    path = message_path("/s", line.queue_id.spool_id)
    bounce = resting_line(disk, loaded, Area.BOUNCES)
    for batch_bytes in (1, module.BATCH_BYTES):
        monkeypatch.setattr(module, "BATCH_BYTES", batch_bytes)

        def doing(disk: TreeDisk) -> None:
            executor = executor_on(disk, journal(disk))
            actions.give_up([path], [line], [bounce], executor)
            executor.finish()

        seen = set()
        for tree, is_over in moments_over(queue, doing):
            is_here = path in tree.names.files
            is_kept = (0, queue.data_of(path)) in copies_of(path, tree)
            young = told_by(tree).youngs.get(line.queue_id.spool_id)
            is_bounce = young is not None and young.entries[line.queue_id.number].reply == LOST_REPLY
            is_moved = place_of(bounce) in told_by(tree).owed
            assert is_bounce <= is_kept
            assert is_here or (is_bounce and is_moved)
            assert not (is_over and is_here)
            seen.add((is_kept, is_bounce, is_here))
        assert {(False, False, True), (True, False, True), (True, True, True), (True, True, False)} == seen


class Unreadable(TreeDisk):
    """This path can be copied by nobody."""

    bad = ""

    def open(self, path: str) -> IFile:
        if path == self.bad:
            raise OSError(5, "can't be read")
        return super().open(path)


def test_what_could_not_be_copied_stays(queue: Tree) -> None:
    """Whatever else the repair goes on with."""
    disk = Unreadable(queue)
    executor = executor_on(disk, journal(disk))
    disk.bad = resting_line(disk, told_by(queue)).source.path
    with pytest.raises(OSError, match="can't be read"):
        shared.remove_at_end(disk.bad, executor)
    executor.finish()
    assert disk.exists(disk.bad)


def test_a_message_is_not_given_up_while_one_of_its_entries_could_not_be(queue: Tree) -> None:
    disk = Unreadable(queue)
    loaded = journal(disk)
    executor = executor_on(disk, loaded)
    good, bounce = resting_line(disk, loaded), resting_line(disk, loaded, Area.BOUNCES)
    path = message_path("/s", good.queue_id.spool_id)
    disk.bad = bounce.source.path
    with pytest.raises(OSError, match="can't be read"):
        actions.give_up([path], [good], [bounce], executor)
    executor.finish()
    assert disk.exists(path)
