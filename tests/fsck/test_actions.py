"""Nothing goes without a copy: each act of a repair, and whole repairs, over every state that a crash may leave."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.local import actions as shared
from mailismus.queue.providers.clustered.fsck import repair
from mailismus.queue.providers.clustered.fsck.evidence.history import HeldMessage
from mailismus.queue.providers.clustered.fsck.repairs import actions
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.spool.message_file import encode_trailer
from mailismus.spool.silo import message_path
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import made_by, moments_over
from tests.durability.crash.states import FileSystem, Story
from tests.fsck import damages
from tests.fsck.copies import gone
from tests.fsck.damages import DAMAGES, Damage
from tests.fsck.worlds import executor_on, repair_on, tree_of

RIGHT = message_path("/s", SpoolId(5))
NAMED = message_path("/s", SpoolId(5), 2)
WRONG = RIGHT.replace("/05/", "/06/")
BROKEN = b"broken " * 1000
CONTENT = b"whole " * 1000
GOOD = CONTENT + encode_trailer(len(CONTENT), zlib.crc32(CONTENT))


def files(disk: TreeDisk) -> None:
    for path in ("/q", "/s", "/s/05", "/s/06"):
        disk.make_directory(path)
    disk.create(RIGHT).write_at(0, [BROKEN])
    disk.create(NAMED).write_at(0, [BROKEN + b"too"])
    disk.create(WRONG).write_at(0, [GOOD])


class HeldElsewhere(HeldMessage):
    """The content, wherever it is."""

    def __init__(self) -> None:
        pass

    def pieces(self) -> Iterator[bytes]:
        return iter((CONTENT[:10], CONTENT[10:]))


def put_right(executor: RepairExecutor) -> None:
    shared.put_right(RIGHT, 10, b"##", 8, 16, executor)


def cut_off(executor: RepairExecutor) -> None:
    shared.cut_off(RIGHT, 100, executor)


def remove(executor: RepairExecutor) -> None:
    shared.remove(RIGHT, executor)


def relink(executor: RepairExecutor) -> None:
    shared.relink(RIGHT, WRONG, executor)


def move_message(executor: RepairExecutor) -> None:
    shared.move_message(WRONG, RIGHT, (RIGHT, NAMED), executor)


def restore_message(executor: RepairExecutor) -> None:
    actions.restore_message(SpoolId(5), HeldElsewhere(), (RIGHT, NAMED), executor)


ACTS: dict[Callable[[RepairExecutor], None], dict[str, bytes | None]] = {
    put_right: {RIGHT: BROKEN[:10] + b"##" + BROKEN[12:]},
    cut_off: {RIGHT: BROKEN[:100]},
    remove: {RIGHT: None},
    relink: {RIGHT: GOOD, WRONG: GOOD},
    move_message: {RIGHT: GOOD, NAMED: None, WRONG: None},
    restore_message: {RIGHT: GOOD, NAMED: None},
}
"""And what is there when they are done."""


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_nothing_goes_without_a_copy(act: Callable[[RepairExecutor], None]) -> None:
    base = made_by(files)
    changed = set()
    for tree, is_over in moments_over(base, lambda disk: act(executor_on(disk))):
        assert gone(base, tree) == []
        found = {path: tree.data_of(path) if path in tree.names.files else None for path in ACTS[act]}
        assert not is_over or found == ACTS[act]
        changed.add(found == ACTS[act])
    assert changed == {False, True}


@pytest.mark.parametrize(
    "act",
    [
        lambda executor: executor.unlink(RIGHT),
        lambda executor: executor.cut(RIGHT, 10),
        lambda executor: executor.write(RIGHT, 9, b"#"),
    ],
    ids=["unlink", "cut", "write"],
)
def test_what_went_without_a_copy_is_seen(act: Callable[[RepairExecutor], None]) -> None:
    base = made_by(files)
    found = [gone(base, tree) for tree, is_over in moments_over(base, lambda disk: act(executor_on(disk))) if is_over]
    assert found
    assert all(paths == [RIGHT] for paths in found)


BEYOND = (damages.open_to_others, damages.lock_is_a_directory, damages.mark_is_a_directory)
"""The disk that remembers knows no modes, and no directories that are renamed."""


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d.act not in BEYOND], ids=lambda damage: damage.name)
def test_a_repair_changes_nothing_without_a_copy(damage: Damage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the start at its end, which keeps what it must by its own rules."""
    stopped = damage.make()
    damage.act(stopped)
    base = tree_of(stopped.disk)
    disk = TreeDisk(base)
    ends = []

    def start(*arguments: object) -> None:
        ends.append(len(disk.acts))

    monkeypatch.setattr(repair, "start_and_stop", start)
    repair_on(disk, stopped.harness)
    (end,) = ends
    story = Story(disk.acts[:end], base)
    for crash in story.crashes(0, FileSystem.POSIX):
        assert gone(base, story.tree(crash)) == [], crash
