"""Hard links in place of counting: a name for each live recipient; the last one takes the bytes along."""

from __future__ import annotations

import errno

import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses

LARGE = 3000


class Linked:
    """A queue with hard links; its settings may change from start to start."""

    def __init__(self, *, hardlinks: bool = True) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=hardlinks))
        self.bench = Bench(self.harness, self.harness.make())

    def names(self) -> dict[str, int]:
        """Names of message files, and how many names each file has."""
        found = {path: id(inode) for path, inode in self.harness.disk.names.items() if path.endswith(".msg")}
        files = list(found.values())
        return {path.rpartition("/")[2]: files.count(inode) for path, inode in sorted(found.items())}

    def rest(self) -> None:
        """Time for checkpoints and walks."""
        self.harness.clock.pump([0.25] * 80)

    def start_with(self, *, hardlinks: bool) -> None:
        self.harness.settings = queue_settings(largemsgsize=LARGE, hardlinks=hardlinks)
        self.bench = Bench(self.harness, self.harness.restart(self.bench.queue))

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue


@pytest.fixture
def linked() -> Linked:
    return Linked()


@pytest.mark.parametrize("size", [100, 4 * LARGE], ids=["small", "large"])
def test_each_live_recipient_has_a_name_and_the_last_one_takes_the_bytes_along(linked: Linked, size: int) -> None:
    spool_id = linked.bench.put(addresses(3), b"x" * size)
    linked.rest()
    stem = f"{spool_id:016X}"
    assert linked.names() == {f"{stem}-{n}.msg": 3 for n in (1, 2, 3)}
    for number, left in ((2, {1, 3}), (1, {3}), (3, set[int]())):
        assert QueueId(spool_id, number) in linked.bench.take_ids(area=Area.INCOMING) or number != 2
        assert linked.bench.read(spool_id) == b"x" * size
        over = linked.bench.remove([QueueId(spool_id, number)])
        assert over == ([] if left else [spool_id])
        linked.rest()
        assert linked.names() == {f"{stem}-{n}.msg": len(left) for n in left}
    assert linked.queue.parts.release.references.scans <= 1


def test_a_message_with_one_recipient_keeps_its_one_name(linked: Linked) -> None:
    spool_id = linked.bench.put()
    linked.rest()
    assert linked.names() == {f"{spool_id:016X}.msg": 1}
    linked.bench.take_ids()
    linked.bench.remove([QueueId(spool_id, 1)])
    linked.rest()
    assert linked.names() == {}


def test_who_was_settled_before_the_file_was_written_gets_no_name(linked: Linked) -> None:
    spool_id = linked.bench.put(addresses(3))
    linked.bench.take_ids()
    linked.bench.remove([QueueId(spool_id, 1)])
    linked.rest()
    assert list(linked.names()) == [f"{spool_id:016X}-2.msg", f"{spool_id:016X}-3.msg"]
    assert linked.bench.read(spool_id)


@pytest.mark.parametrize("before", [True, False], ids=["links-given-up", "links-begun"])
@pytest.mark.parametrize("size", [100, 4 * LARGE], ids=["small", "large"])
def test_either_setting_reads_and_removes_what_the_other_left(before: bool, size: int) -> None:
    linked = Linked(hardlinks=before)
    spool_ids = [linked.bench.put(addresses(3), b"x" * size) for _ in range(3)]
    linked.start_with(hardlinks=not before)
    linked.rest()
    queue_ids = linked.bench.take_ids()
    assert len(queue_ids) == 9
    for spool_id in spool_ids:
        linked.bench.remove([QueueId(spool_id, 1), QueueId(spool_id, 3)])
    linked.rest()
    assert [linked.bench.read(spool_id) for spool_id in spool_ids] == [b"x" * size] * 3
    linked.bench.remove([QueueId(spool_id, 2) for spool_id in spool_ids])
    linked.rest()
    assert linked.names() == {}


def test_names_that_a_crash_left_behind_their_settle_go_after_the_first_look(linked: Linked) -> None:
    spool_id = linked.bench.put(addresses(3))
    linked.rest()
    linked.bench.take_ids()
    gone = linked.harness.disk.names[f"/s/{spool_id % 32:02x}/{spool_id:016X}-2.msg"]
    linked.bench.remove([QueueId(spool_id, 2)])
    linked.rest()
    linked.harness.disk.names[f"/s/{spool_id % 32:02x}/{spool_id:016X}-2.msg"] = gone
    linked.start_with(hardlinks=True)
    linked.rest()
    assert list(linked.names()) == [f"{spool_id:016X}-1.msg", f"{spool_id:016X}-3.msg"]


def test_links_that_cannot_be_made_leave_everything_young(linked: Linked) -> None:
    spool_id = linked.bench.put(addresses(3))
    linked.harness.disk.fault = lambda act, path: OSError(errno.EMLINK, "Too many links") if act == "link" else None
    linked.rest()
    assert linked.bench.read(spool_id)
    linked.harness.disk.fault = None
    linked.rest()
    assert len(linked.names()) == 3


def test_a_large_message_whose_links_cannot_be_made_is_refused_and_leaves_nothing(linked: Linked) -> None:
    linked.harness.disk.fault = lambda act, path: OSError(errno.EIO, "Input/output error") if act == "link" else None
    with pytest.raises(Exception, match="the spool can't be written"):
        linked.bench.put(addresses(3), b"x" * 4 * LARGE)
    linked.rest()
    assert linked.names() == {}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_links_is_refused_at_start(number: int) -> None:
    harness = ClusteredHarness(queue_settings(hardlinks=True))
    harness.disk.fault = lambda act, path: OSError(number, "no") if act == "link" else None
    with pytest.raises(StartError, match=r"has no hard links .*write <hardlinks>N</hardlinks>") as refused:
        harness.open()
    assert refused.value.status == 78
    assert not harness.disk.locks
    assert not [name for name in harness.disk.names if "probe" in name]


def test_a_full_file_system_is_no_reason_to_refuse_a_start() -> None:
    harness = ClusteredHarness(queue_settings(hardlinks=True))
    harness.disk.fault = lambda act, path: OSError(errno.ENOSPC, "full") if act == "link" else None
    harness.open()


def test_the_bytes_of_a_damaged_line_stay_under_all_their_names(linked: Linked) -> None:
    spool_id = linked.bench.put(addresses(2))
    linked.harness.wait(linked.bench.queue.close())
    linked.harness.clock.calls.clear()
    disk = linked.harness.disk
    (path,) = (name for name in disk.names if name.endswith(".mqc"))
    disk.damage(path, disk.content_of(path).index(b"%016X 2" % spool_id) + 30, b"#")
    linked.bench = Bench(linked.harness, linked.harness.open())
    linked.rest()
    assert len(linked.names()) == 2
    assert SpoolId(spool_id) == spool_id
