"""Seed 003, sentence by sentence: each test cites what it shows. The maildir's steps and the queue's states."""

from __future__ import annotations

import pytest

from mailismus.chunks.access import AccessPoint, NoFreeName
from mailismus.chunks.generator import NameGenerator, process_generator
from mailismus.chunks.names import InodeStrategy, PartStrategy
from mailismus.config.table.queue import CONF_SPLIT
from mailismus.maildir.delivery import Delivery, begin_delivery
from mailismus.maildir.store import MaildirStore
from mailismus.queue.interface import Area, Settlement
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import NO_REPLY, Bench, addresses
from tests.contracts.samples import letter
from tests.fakes.disk import MemoryDisk

NOW = 1_700_000_000.25
QUEUE = ("pid", "intd", "todo", "bounce", "mess", "info", "local", "remote")


class Queue:
    """A queue of chunks, and the names of its files by directory."""

    def __init__(self) -> None:
        self.harness = ChunkHarness()
        self.bench = Bench(self.harness, self.harness.make())
        self.disk = self.harness.disk

    def directories(self) -> set[str]:
        """Those with a file of a message."""
        return {path.split("/")[2] for path in self.disk.names} & set(QUEUE)

    def paths(self, name: str) -> list[str]:
        """The files in one of them."""
        return [path for path in self.disk.names if path.split("/")[2] == name]

    def acts(self, since: int = 0) -> list[tuple[str, str]]:
        """What changed or synced names and files of messages, with the first directory."""
        changes = ("create", "link", "unlink", "rename", "write", "sync", "sync directory")
        return [(act, path.split("/")[2]) for act, path in self.disk.acts[since:] if act in changes and path.count("/") > 1]


@pytest.fixture
def queue() -> Queue:
    return Queue()


def maildir(disk: MemoryDisk) -> MaildirStore:
    return MaildirStore(disk, PartStrategy("MPQ", b"h"), NameGenerator(lambda: 42))


# the pattern


def test_different_delivery_processes_never_touch_the_same_file() -> None:
    """ "Different delivery processes never touch the same file.\""""
    disk = MemoryDisk()
    disk.make_directory("/made")
    made = disk.open_directory("/made")
    one, other = (AccessPoint(made, PartStrategy("MPQ", b"h"), NameGenerator(pid)) for pid in (lambda: 1, lambda: 2))
    chunks = [writer.begin(NOW) for writer in (one, other) for _ in range(10)]
    assert len({chunk.made_name for chunk in chunks}) == len(made.names()) == 20


def test_the_generator_is_a_singleton() -> None:
    """ "UniqueFileNameGenerator - A Singleton (GoF) for generation of unique file name.\""""
    assert process_generator() is process_generator()


def test_names_are_chosen_by_a_strategy() -> None:
    """ "Strategy (GoF) pattern for unique filename creation algorithms\""""
    stamp = process_generator().next(NOW)
    assert PartStrategy("RP", b"h").made_name(stamp) != PartStrategy("MPQ", b"h").made_name(stamp)
    assert InodeStrategy().final_name(stamp, 457) == "457"


@pytest.mark.parametrize("act", ["write", "sync", "link"])
def test_only_after_all_steps_are_committed_is_the_task_done(act: str) -> None:
    """ "Only after all the steps are committed can the task dubbed as 'done'.\""""
    disk = MemoryDisk()
    delivery = begin_delivery(maildir(disk), "/ms", b"joe", "Maildir", NOW, b"")
    disk.fault = lambda one, path: OSError(5, "EIO") if one == act else None
    with pytest.raises(OSError, match="EIO"):
        _write_all(delivery)
    disk.fault = None
    delivery.abandon()
    assert disk.names == {}


def _write_all(delivery: Delivery) -> None:
    delivery.write(b"x\r\n")
    delivery.finish()


# the maildir


def test_the_directories_of_a_maildir_are_on_one_file_system() -> None:
    """ "A directory in 'maildir' format has three subdirectories, all on the same filesystem: tmp, new, and cur.\""""
    disk = MemoryDisk()
    maildir(disk).open("/ms", b"joe", "Maildir").close()
    assert {f"/ms/joe/Maildir/{name}" for name in ("tmp", "new", "cur")} <= disk.directories


def test_the_six_steps_come_in_their_order() -> None:
    """ "stat()'s the name ... creates tmp/time.pid.host ... NFS-writes the message to the file ... link()'s the file to
    new/time.pid.host.\""""
    disk = MemoryDisk()
    store = maildir(disk)
    store.open("/ms", b"joe", "Maildir").close()
    disk.acts.clear()
    delivery = begin_delivery(store, "/ms", b"joe", "Maildir", NOW, b"")
    delivery.write(b"x\r\n")
    delivery.finish()
    files = [
        act for act, path in disk.acts if path.rpartition("/")[0].endswith(("/tmp", "/new")) and act != "open directory"
    ]
    assert files == ["describe", "create", "write", "describe", "sync", "link", "unlink"]


def test_a_name_in_tmp_that_exists_is_not_used() -> None:
    """ "if stat() returned anything other than ENOENT, the program ... tries the stat() again, a limited number of
    times.\""""
    disk = MemoryDisk()
    store = maildir(disk)
    store.open("/ms", b"joe", "Maildir").close()
    disk.create("/ms/joe/Maildir/tmp/1700000000.M250000P42Q1.h").close()
    with pytest.raises(NoFreeName):  # the caller waits for two seconds: `deliver.local.deposit.WAITS_S`
        begin_delivery(store, "/ms", b"joe", "Maildir", NOW, b"")
    delivery = begin_delivery(store, "/ms", b"joe", "Maildir", NOW, b"")
    delivery.finish()
    (name,) = (path for path in disk.names if "/new/" in path)
    assert name.endswith("Q2.h,S=0")


# the queue


def test_the_queue_has_the_directories_of_the_table(queue: Queue) -> None:
    """ "qmail's queue consists of several directories.\""""
    assert {f"/q/{name}" for name in QUEUE} <= queue.disk.directories


def test_directories_in_parts_are_numbered_from_0(queue: Queue) -> None:
    """ "a series of split subdirectories named "0", "1", ..., up to (conf-split - 1) ... (usually a prime number, default
    23)\""""
    parts = {path.rpartition("/")[2] for path in queue.disk.directories if path.startswith("/q/mess/")}
    assert parts == {str(part) for part in range(SPLIT)}
    assert CONF_SPLIT.default == "23"


def test_a_file_is_in_the_part_of_its_number(queue: Queue) -> None:
    """ "The newly created file is put in directory number (inode mod conf-split).\""""
    for _ in range(7):
        queue.bench.put()
    for path in queue.paths("mess"):
        part, number = path.split("/")[3:]
        assert int(number) % SPLIT == int(part)
        assert queue.disk.describe(path).inode[1] == int(number)


def test_a_message_passes_states_1_to_4_in_their_order(queue: Queue) -> None:
    """ "creates a file in a separate directory, pid/ ... moving to State 2 ... writes the message ... creates intd ...
    moving to State 3 ... Finally qmail-queue creates a new link, todo/457 ... At that instant the message has been
    successfully queued\""""
    queue.disk.acts.clear()
    queue.bench.put()
    names = [(act, home) for act, home in queue.acts() if act in ("create", "link", "unlink")]
    assert names[:5] == [("create", "pid"), ("link", "mess"), ("unlink", "pid"), ("create", "intd"), ("link", "todo")]
    done = queue.acts()
    link = done.index(("link", "todo"))
    before = done[:link]
    assert {("sync", "pid"), ("sync", "intd"), ("sync directory", "mess"), ("sync directory", "intd")} <= set(before)
    assert ("sync directory", "todo") in done[link:]


def test_preprocessing_makes_info_local_and_remote_and_then_todo_goes(queue: Queue) -> None:
    """ "It creates info/20/457, possibly local/20/457, and possibly remote/20/457. ... Finally qmail-send removes
    todo/20/457, moving to State 5.\""""
    queue.bench.put([b"joe@home.example", b"sue@a.example"])
    queue.disk.acts.clear()
    assert queue.harness.queue is not None
    queue.harness.queue.parts.upkeep.run()
    queue.harness.settle_down()
    assert queue.directories() == {"mess", "info", "local", "remote"}
    acts = queue.acts()
    gone = acts.index(("unlink", "todo"))
    for name in ("info", "local", "remote"):
        assert acts.index(("sync", name)) < gone
        assert acts.index(("sync directory", name)) < gone


def test_a_message_without_local_recipients_has_no_local_file(queue: Queue) -> None:
    """ "possibly local/20/457, and possibly remote/20/457\""""
    queue.bench.put([b"sue@a.example"])
    assert queue.harness.queue is not None
    queue.harness.queue.parts.upkeep.run()
    queue.harness.settle_down()
    assert queue.directories() == {"mess", "info", "remote"}


def test_each_address_is_marked_not_done_or_done(queue: Queue) -> None:
    """ "Each address in local/20/457 and remote/20/457 is marked either NOT DONE or DONE.\""""
    queue.bench.put(addresses(3))
    assert queue.harness.queue is not None
    queue.harness.queue.parts.upkeep.run()
    queue.harness.settle_down()
    (path,) = queue.paths("remote")
    before = queue.disk.content_of(path)
    assert {line[:1] for line in before.splitlines()} == {b" "}
    ids = queue.bench.take_ids()
    queue.bench.remove([ids[2]])
    after = queue.disk.content_of(path)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
    assert {line[:1] for line in after.splitlines()} == {b" ", b"x"}


def test_a_note_is_there_before_the_address_is_marked(queue: Queue) -> None:
    """ "qmail-send first appends a note to bounce/457, creating bounce/457 if necessary; then it marks the address as
    DONE.\""""
    queue.bench.put([b"sue@a.example", b"bob@a.example"])
    assert queue.harness.queue is not None
    queue.harness.queue.parts.upkeep.run()
    queue.harness.settle_down()
    ids = queue.bench.take_ids()
    queue.disk.acts.clear()
    queue.bench.commit((), [Settlement(ids[0], Area.BOUNCES, queue.bench.now(), 1, NO_REPLY)])
    acts = [act if act == "sync file system" else (act, path.split("/")[2]) for act, path in queue.disk.acts]
    noted, marked = acts.index(("write", "bounce")), acts.index(("write", "remote"))
    between = acts[noted:marked]
    assert "sync file system" in between or {("sync", "bounce"), ("sync directory", "bounce")} <= set(between)


def test_the_message_goes_with_its_last_address(queue: Queue) -> None:
    """ "When local/20/457 and remote/20/457 are gone ... deletes info/20/457, moving to State 2, and finally mess/20/457,
    moving to State 1.\""""
    queue.bench.put([b"joe@home.example", b"sue@a.example"])
    assert queue.harness.queue is not None
    queue.harness.queue.parts.upkeep.run()
    queue.harness.settle_down()
    ids = queue.bench.take_ids()
    queue.disk.acts.clear()
    queue.bench.remove(ids)
    queue.harness.settle_down()
    gone = [home for act, home in queue.acts() if act == "unlink"]
    assert gone.index("local") < gone.index("info") < gone.index("mess")
    assert gone.index("remote") < gone.index("info")
    assert queue.directories() == set()


@pytest.mark.parametrize("left", [("mess",), ("mess", "intd")])
def test_what_a_crash_left_in_state_2_or_3_is_deleted(queue: Queue, left: tuple[str, ...]) -> None:
    """ "When qmail-send sees a message in state 2 or 3, it deletes intd/20/457 if that exists, then deletes mess/20/457. Any
    qmail-queue handling the message must be dead at that point.\""""
    queue.bench.put()
    for home in set(queue.directories()) - set(left):
        queue.disk.remove_tree(queue.paths(home)[0])
    queue.harness.clock.calls.clear()
    queue.disk.kill()
    queue.disk.acts.clear()
    queue.harness.open()
    gone = [home for act, home in queue.acts() if act == "unlink" and home in left]
    assert queue.directories() == set()
    assert gone == [name for name in ("intd", "mess") if name in left]


def test_a_message_that_was_not_marked_is_sent_again(queue: Queue) -> None:
    """ "if the computer crashes just before qmail-send marks a message as DONE, the new qmail-send must assume the worst and
    send the message again.\""""
    spool_id = queue.bench.put(content=letter(1, 500))
    assert len(queue.bench.take_ids()) == 1
    queue.bench.queue = queue.harness.crash(queue.bench.queue)
    assert [queue_id.spool_id for queue_id in queue.bench.take_ids()] == [spool_id]


def test_mail_that_was_not_sent_is_never_deleted(queue: Queue) -> None:
    """The one sentence that is refused: "If some file is not sent after a certain limit ... qmail-clean deletes them
    anyway.\""""
    spool_id = queue.bench.put()
    for _ in range(40):
        queue.harness.advance(86400.0)
        queue.harness.settle_down()
    queue.bench.queue = queue.harness.restart(queue.bench.queue)
    assert [queue_id.spool_id for queue_id in queue.bench.take_ids()] == [spool_id]
