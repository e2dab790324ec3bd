"""Damages of a stopped queue of chunks: each is found, explained, repaired, and what can be saved is delivered.

Every damage is done to a queue with messages in S4 and S5, bounces among them. A check changes nothing; after a repair a
start finds nothing to complain of, and what the damage has not touched is as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs
import pytest

from mailismus.errors import Corrupt, StartError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.fsck.files import LOST_REPLY
from mailismus.queue.fsck.finding import Done, Severity
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.chunk.fsck.check import checking_of, report_of
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind as Kind
from mailismus.queue.providers.chunk.fsck.repair import ChunkRepairReport
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.contracts.bench import LATER_REPLY, NO_REPLY, Bench
from tests.contracts.samples import letter
from tests.durability.faults.disk import FaultyDisk, Killed
from tests.fakes.disk import MemoryDisk, _Inode

NOW = 1_700_000_100.0


class Stopped:
    """A queue that no server runs on: a message in S4, one in S5 with local, remote and a bounce, a deferred one."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.harness = ChunkHarness()
        self.disk = self.harness.disk = disk or MemoryDisk()
        bench = Bench(self.harness, self.harness.make())
        self.mixed = bench.put([b"joe@home.example", b"a@d.example", b"b@d.example", b"c@d.example"], letter(1, 900))
        ids = bench.take_ids()
        bench.commit(
            (),
            [
                Settlement(ids[1], Area.DEFERRED, bench.now() + 60, 2, LATER_REPLY, b"mx[192.0.2.9]:25"),
                Settlement(ids[2], Area.BOUNCES, bench.now(), 1, NO_REPLY),
                Settlement(ids[3], None),
            ],
        )
        self.deferred = bench.put([b"d@d.example"], letter(2, 700))
        bench.commit((), [Settlement(QueueId(self.deferred, 1), Area.DEFERRED, bench.now() + 90, 1, LATER_REPLY)])
        self.harness.settle_down()
        self.new = bench.put([b"sue@d.example", b"joe@home.example"], letter(3, 800))
        self.contents = {self.mixed: letter(1, 900), self.deferred: letter(2, 700), self.new: letter(3, 800)}
        self.entries = {QueueId(message.spool_id, entry.number) for message, entry in bench.search()}
        self.harness.clock.calls.clear()
        self.disk.power_cut()

    def path(self, name: str, spool_id: SpoolId) -> str:
        """Its file in this directory."""
        marks = b"%016X" % spool_id
        (number,) = {
            path.rpartition("/")[2]
            for path in self.disk.names
            if path.split("/")[2] in ("todo", "info") and marks in self.disk.content_of(path)
        }
        part = f"/{int(number) % SPLIT}" if name in ("mess", "info", "local", "remote") else ""
        return f"/q/{name}{part}/{number}"

    def check(self) -> list[str]:
        """The kinds of findings, which change nothing."""
        before = {path: bytes(inode.data) for path, inode in self.disk.names.items()}
        findings = list(report_of(checking_of(self.harness.settings, self.disk, NOW)))
        assert {path: bytes(inode.data) for path, inode in self.disk.names.items()} == before
        assert not self.disk.locks
        assert all(finding.what and finding.repair for finding in findings)
        return [finding.kind for finding in findings if finding.severity is not Severity.NOTE]

    def repair(self) -> list[str]:
        """The kinds of findings of a repair, all of which were repaired."""
        findings = list(ChunkRepairReport(self.harness.settings, self.disk, NOW))
        assert [finding for finding in findings if finding.done is Done.FAILED] == []
        return [finding.kind for finding in findings if finding.severity is not Severity.NOTE]

    def live(self, lost: SpoolId | None = None) -> set[QueueId]:
        """What a start finds; the contents of it are right, but of the message `lost`: its entries are bounces."""
        self.disk.power_cut()
        bench = Bench(self.harness, self.harness.open())
        found = {QueueId(message.spool_id, entry.number) for message, entry in bench.search()}
        for spool_id, _ in found:
            if spool_id != lost:
                assert bench.read(spool_id) == self.contents[spool_id]
        if lost is not None:
            told = [(entry.area, entry.reply) for message, entry in bench.search() if message.spool_id == lost]
            assert {area for area, _ in told} == {Area.BOUNCES}
            assert {reply for _, reply in told} <= {LOST_REPLY, NO_REPLY}
            with pytest.raises(Corrupt):
                bench.read(lost)
        self.harness.clock.calls.clear()
        self.disk.kill()
        return found

    def without(self, *spool_ids: SpoolId) -> set[QueueId]:
        """All entries but those of these messages."""
        return {queue_id for queue_id in self.entries if queue_id.spool_id not in spool_ids}

    def flip(self, path: str, offset: int, count: int = 1) -> None:
        data = self.disk.content_of(path)[offset : offset + count]
        self.disk.damage(path, offset, bytes(byte ^ 1 for byte in data))

    def put(self, path: str, data: bytes = b"") -> None:
        self.disk.names[path] = self.disk.durable_names[path] = inode = _Inode(self.disk.numbers.take())
        inode.data, inode.durable = bytearray(data), data

    def remove(self, path: str) -> None:
        self.disk.remove_tree(path)

    def rename(self, path: str, new_path: str) -> None:
        self.disk.rename(path, new_path)
        if path in self.disk.durable_names:
            self.disk.durable_names[new_path] = self.disk.durable_names.pop(path)


Damaging = Callable[[Stopped], None]


@attrs.frozen
class Damage:
    """A damage, the findings, and which entries are left."""

    do: Damaging
    kinds: tuple[Kind, ...]
    left: Callable[[Stopped], set[QueueId]] = lambda stopped: stopped.entries
    lost: Callable[[Stopped], SpoolId | None] = lambda stopped: None
    """The message whose sender is told that its content is lost."""


def _copied(stopped: Stopped) -> None:
    """Every file has another inode: the numbers of two messages are those of the other one's file now."""
    numbers = sorted(int(path.rpartition("/")[2]) for path in stopped.disk.names if "/mess/" in path)
    others = dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True))
    for path in [
        path
        for path in stopped.disk.names
        if path.split("/")[2] in ("mess", "todo", "info", "local", "remote", "bounce", "intd")
    ]:
        home, number = path.split("/")[2], int(path.rpartition("/")[2])
        part = f"/{others[number] % SPLIT}" if path.count("/") == 4 else ""
        stopped.rename(path, f"/q/{home}{part}/{others[number]}.moved")
    for path in [path for path in stopped.disk.names if path.endswith(".moved")]:
        stopped.rename(path, path.removesuffix(".moved"))


def _second_copy(stopped: Stopped) -> None:
    path = stopped.path("mess", stopped.new)
    stopped.put("/q/mess/0/99", stopped.disk.content_of(path))
    number = stopped.disk.names["/q/mess/0/99"].number
    stopped.rename("/q/mess/0/99", f"/q/mess/{number % SPLIT}/{number}")
    stopped.put(f"/q/todo/{number}", stopped.disk.content_of(stopped.path("todo", stopped.new)))


def _gone_and_taken(stopped: Stopped) -> None:
    """The number of the content that is gone is that of another file."""
    stopped.remove(stopped.path("mess", stopped.mixed))
    stopped.put("/q/lost+found")


def _gone_beside_leftovers(stopped: Stopped) -> None:
    """Of a message in S4 one recipient is done, and what a crash left of its preprocessing says that he is not."""
    path = stopped.path("todo", stopped.new)
    lines = stopped.disk.content_of(path).splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if b"joe@home" in line)
    stopped.put(path.replace("/q/todo/", f"/q/local/{int(path[8:]) % SPLIT}/"), lines[at])
    stopped.disk.damage(path, sum(map(len, lines[:at])), b"x")
    stopped.remove(stopped.path("mess", stopped.new))


LEFTOVERS = "a content of S4 is gone, beside what a crash left"
DAMAGES = {
    "nothing": Damage(lambda s: None, ()),
    "the queue was copied": Damage(_copied, (Kind.MISNUMBERED,) * 3),
    "a content is gone": Damage(lambda s: s.remove(s.path("mess", s.new)), (Kind.CONTENT_MISSING,), lost=lambda s: s.new),
    "a content of S5 is gone": Damage(
        lambda s: s.remove(s.path("mess", s.mixed)), (Kind.CONTENT_MISSING,), lost=lambda s: s.mixed
    ),
    "a content of S5 is gone, and its number is another file's": Damage(
        _gone_and_taken,
        (Kind.CONTENT_MISSING,),
        lost=lambda s: s.mixed,
    ),
    LEFTOVERS: Damage(
        _gone_beside_leftovers,
        (Kind.CONTENT_MISSING,),
        lambda s: s.entries - {QueueId(s.new, 2)},
        lambda s: s.new,
    ),
    "an info is gone": Damage(lambda s: s.remove(s.path("info", s.mixed)), (Kind.NO_STATE,), lambda s: s.without(s.mixed)),
    "a bit of an envelope": Damage(lambda s: s.flip(s.path("todo", s.new), 40), (Kind.LINE_BYTE,)),
    "a bit of a recipient": Damage(lambda s: s.flip(s.path("remote", s.mixed), 60), (Kind.LINE_BYTE,)),
    "a bit of a note": Damage(lambda s: s.flip(s.path("bounce", s.mixed), 60), (Kind.LINE_BYTE,)),
    "some bytes of an envelope": Damage(
        lambda s: s.flip(s.path("todo", s.new), 30, 20), (Kind.LINE_DAMAGED,), lambda s: s.entries - {QueueId(s.new, 1)}
    ),
    "some bytes of a recipient": Damage(
        lambda s: s.flip(s.path("local", s.mixed), 30, 20), (Kind.LINE_DAMAGED,), lambda s: s.entries - {QueueId(s.mixed, 1)}
    ),
    "some bytes of a note": Damage(
        lambda s: s.flip(s.path("bounce", s.mixed), 30, 20),
        (Kind.LINE_DAMAGED,),
        lambda s: s.entries - {QueueId(s.mixed, 3)},
    ),
    "all of an envelope": Damage(
        lambda s: s.flip(s.path("todo", s.new), 0, 1000), (Kind.ENVELOPE_EMPTY,), lambda s: s.without(s.new)
    ),
    "an empty envelope": Damage(lambda s: s.put(s.path("todo", s.new)), (Kind.ENVELOPE_EMPTY,), lambda s: s.without(s.new)),
    "a torn line": Damage(
        lambda s: s.put(s.path("local", s.mixed), s.disk.content_of(s.path("local", s.mixed)) + b" DA 0000"),
        (Kind.LINE_TORN,),
    ),
    "a torn envelope": Damage(
        lambda s: s.put(s.path("todo", s.new), s.disk.content_of(s.path("todo", s.new))[:-20]),
        (Kind.LINE_DAMAGED,),
        lambda s: s.entries - {QueueId(s.new, 2)},
    ),
    "a bit of an info": Damage(lambda s: s.flip(s.path("info", s.mixed), 5), (Kind.INFO_DAMAGED,)),
    "an info of another message": Damage(
        lambda s: s.put(s.path("info", s.mixed), s.disk.content_of(s.path("info", s.deferred))), (Kind.INFO_DAMAGED,)
    ),
    "an empty info": Damage(lambda s: s.put(s.path("info", s.deferred)), (Kind.INFO_DAMAGED,)),
    "a bit of a content": Damage(lambda s: s.flip(s.path("mess", s.new), 40), (Kind.MESSAGE_BYTE,)),
    "some bytes of a content": Damage(
        lambda s: s.flip(s.path("mess", s.new), 40, 30), (Kind.MESSAGE_LOST,), lost=lambda s: s.new
    ),
    "bytes behind a content": Damage(
        lambda s: s.disk.damage(s.path("mess", s.new), len(s.disk.content_of(s.path("mess", s.new))), b"more"),
        (Kind.MESSAGE_LONG,),
    ),
    "a content cut short": Damage(
        lambda s: s.disk.names[s.path("mess", s.mixed)].data.__delitem__(slice(300, None)),
        (Kind.MESSAGE_LOST,),
        lost=lambda s: s.mixed,
    ),
    "a file in the wrong part": Damage(
        lambda s: s.rename(
            s.path("local", s.mixed),
            f"/q/local/{(int(s.path('local', s.mixed)[9]) + 1) % SPLIT}/{s.path('local', s.mixed)[11:]}",
        ),
        (Kind.MISPLACED,),
    ),
    "a message that is there twice": Damage(_second_copy, (Kind.MESSAGE_TWICE,)),
    "no number of parts": Damage(lambda s: s.remove("/q/conf-split"), (Kind.SPLIT_DAMAGED,)),
    "a damaged number of parts": Damage(lambda s: s.disk.damage("/q/conf-split", 0, b"x"), (Kind.SPLIT_DAMAGED,)),
    "a damaged mark": Damage(lambda s: s.disk.damage("/q/provider", 0, b"\xff"), (Kind.MARK_DAMAGED,)),
    "a mark that was begun": Damage(lambda s: s.put("/q/provider.new", b"chu"), (Kind.MARK_LEFT,)),
    "a file that others may read": Damage(
        lambda s: s.disk.modes.update({s.path("mess", s.new): 0o644}), (Kind.NOT_PRIVATE,)
    ),
    "a file of another user": Damage(lambda s: s.disk.owners.update({s.path("todo", s.new): 7}), (Kind.WRONG_OWNER,)),
    "what a writer left in S1": Damage(lambda s: s.put("/q/pid/1.2.3"), (Kind.BEGUN,)),
    "no epochs": Damage(lambda s: s.remove("/q/ids/00000001"), (Kind.EPOCH_LOST,)),
    "a name in intd": Damage(
        lambda s: s.put(f"/q/intd/{s.path('info', s.mixed).rpartition('/')[2]}", b"x"), (Kind.LEFT_BEHIND,)
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_repaired_and_the_rest_delivered(name: str) -> None:
    damage, stopped = DAMAGES[name], Stopped()
    wanted, lost = damage.left(stopped), damage.lost(stopped)
    expected = [kind.code for kind in damage.kinds]
    damage.do(stopped)
    for path, inode in stopped.disk.names.items():
        inode.durable = bytes(inode.data)
        stopped.disk.durable_names[path] = inode
    assert stopped.check() == expected
    assert stopped.repair() == expected
    assert stopped.check() == []
    assert stopped.live(lost) == wanted


def test_the_old_queue_of_a_conversion_is_nothing_foreign() -> None:
    stopped = Stopped()
    stopped.disk.make_directory("/q/conversion")
    assert stopped.check() == []


def test_a_missing_directory_is_told_and_no_server_starts() -> None:
    stopped = Stopped()
    stopped.remove("/q/todo")
    assert stopped.check() == [Kind.DIRECTORY_MISSING.code]
    with pytest.raises(StartError, match=r"/q/todo is not there: put it back"):
        stopped.harness.open()
    assert not stopped.disk.locks
    with pytest.raises(StartError, match=r"/q/todo is not there"):
        stopped.repair()
    assert stopped.path("mess", stopped.mixed) in stopped.disk.names


KILLED = (
    *("the queue was copied", "a content is gone", "a content of S5 is gone, and its number is another file's"),
    LEFTOVERS,
    *("some bytes of a content", "a message that is there twice", "some bytes of a recipient"),
)
CHANGES = {"create", "write", "truncate", "link", "rename", "unlink", "sync", "sync directory", "sync file system"}


def _damaged(damage: Damage, disk: FaultyDisk) -> Stopped:
    stopped = Stopped(disk)
    damage.do(stopped)
    for path, inode in disk.names.items():
        inode.durable = bytes(inode.data)
        disk.durable_names[path] = inode
    disk.calls.clear()
    return stopped


def _cut(disk: FaultyDisk) -> None:
    disk.power_cut()


def _cut_behind_todo(disk: FaultyDisk) -> None:
    """The power is cut when the names in todo, and no others, have reached the medium by themselves."""
    disk.dies_at = 0
    disk.sync_directory("/q/todo")
    disk.power_cut()


@pytest.mark.parametrize("name", KILLED)
def test_a_repair_that_is_killed_anywhere_is_begun_again(name: str) -> None:
    """Killed before every call that changes something, with and without the power cut."""
    damage, disk = DAMAGES[name], FaultyDisk()
    _damaged(damage, disk).repair()
    changes = [call for call, (act, _) in enumerate(disk.calls, 1) if act in CHANGES]
    assert len(changes) > 20
    ends = (FaultyDisk.kill, _cut, _cut_behind_todo) if name == LEFTOVERS else (FaultyDisk.kill, _cut)
    for call in changes:
        for end in ends:
            disk = FaultyDisk()
            stopped = _damaged(damage, disk)
            disk.dies_at = call
            with pytest.raises(Killed):
                stopped.repair()
            end(disk)
            stopped.repair()
            disk.kill()
            assert stopped.live(damage.lost(stopped)) == damage.left(stopped), f"{end.__name__} at call {call}"


KEPT = {
    "some bytes of a note": lambda s: s.path("bounce", s.mixed),
    "some bytes of a recipient": lambda s: s.path("local", s.mixed),
    "a torn line": lambda s: s.path("local", s.mixed),
    "an empty envelope": lambda s: s.path("todo", s.new),
    "a bit of an info": lambda s: s.path("info", s.mixed),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_a_repair_changes_is_set_aside_as_it_was(name: str) -> None:
    stopped = Stopped()
    path = KEPT[name](stopped)
    DAMAGES[name].do(stopped)
    damaged = stopped.disk.content_of(path)
    stopped.repair()
    kept = [stopped.disk.content_of(path) for path in stopped.disk.names if path.startswith("/q/corrupt/")]
    assert any(data == damaged or data.endswith(b"\n" + damaged) for data in kept)


def test_a_repair_leaves_the_number_of_parts_whatever_the_configuration_says() -> None:
    stopped = Stopped()
    wanted = stopped.without()
    DAMAGES["the queue was copied"].do(stopped)
    stopped.harness.settings = attrs.evolve(stopped.harness.settings, conf_split=SPLIT + 2)
    assert stopped.repair() != []
    assert stopped.live() == wanted


def test_a_server_that_runs_is_not_checked() -> None:
    stopped = Stopped()
    stopped.put("/q/lock")
    stopped.harness.open()
    with pytest.raises(StartError) as caught:
        stopped.check()
    assert caught.value.status == os.EX_TEMPFAIL
