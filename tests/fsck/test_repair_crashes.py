"""A repair that is stopped anywhere is begun again, and ends as if it had not been stopped.

The disk remembers every act of a repair; then the machine "stops" after each of them, in every state that the file system
may be in then, and a repair runs on that.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator

import pytest

from mailismus.queue.interface import Area
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.states import FileSystem, Story
from tests.durability.crash.tree import Tree
from tests.fsck import damages
from tests.fsck.damages import DAMAGES, Damage, Expected
from tests.fsck.worlds import Stopped, disk_of, kinds, repair_on, tree_of, unrepaired

SAMPLE = 5
"""States of each damage in the ordinary run."""

_BEYOND = (damages.open_to_others, damages.lock_is_a_directory)
"""The disk that remembers knows no modes, and no directories that are renamed."""


def after_repair(stopped: Stopped, expected: Expected) -> None:
    """A repair runs on what there is, and all that was whole goes out."""
    assert unrepaired(stopped.repair()) == []
    assert kinds(stopped.check()) == []
    stopped.start()
    wanted = {q: area for q, area in stopped.held.entries.items() if q not in expected.gone}
    wanted.update(dict.fromkeys(expected.bounced, Area.BOUNCES))
    assert {queue_id: entry.area for queue_id, (_, entry) in stopped.look().items()} == wanted
    assert stopped.drain() == set(wanted)


def states_of(stopped: Stopped) -> Iterator[Tree]:
    """What a stop in a repair of this queue may leave; each once."""
    base = tree_of(stopped.disk)
    disk = TreeDisk(base)
    repair_on(disk, stopped.harness)
    story = Story(disk.acts, base)
    known = set()
    for system in FileSystem:
        for crash in story.crashes(0, system):
            tree = story.tree(crash)
            if tree.digest not in known:
                known.add(tree.digest)
                yield tree


def run(stopped: Stopped, expected: Expected, states: Iterable[Tree]) -> None:
    for tree in states:
        again = copy.copy(stopped)
        again.harness = copy.copy(stopped.harness)
        again.harness.disk = disk_of(tree)
        after_repair(again, expected)


CHOSEN = (
    damages.header_gone,
    damages.batch_byte,
    damages.batch_damaged,
    damages.segment_deleted,
    damages.checkpoint_record,
    damages.line_damaged,
    damages.line_damaged_for_good,
    damages.cluster_in_no_slot,
    damages.cluster_header,
    damages.cluster_copied,
    damages.message_deleted_held,
    damages.message_damaged,
    damages.message_of_another,
    damages.message_in_wrong_silo,
    damages.message_stray,
    damages.name_of_damaged_copy,
)


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d.act in CHOSEN], ids=lambda damage: damage.name)
def test_a_repair_that_is_stopped_is_begun_again(damage: Damage) -> None:
    stopped = damage.make()
    expected = damage.act(stopped)
    states = list(states_of(stopped))
    run(stopped, expected, random.Random(damage.title).sample(states, min(SAMPLE, len(states))))


@pytest.mark.exhaustive
@pytest.mark.parametrize("damage", [d for d in DAMAGES if d.act not in _BEYOND], ids=lambda damage: damage.name)
def test_a_repair_that_is_stopped_anywhere_is_begun_again(damage: Damage) -> None:
    stopped = damage.make()
    expected = damage.act(stopped)
    run(stopped, expected, states_of(stopped))


def test_a_disk_made_of_a_tree_holds_what_the_tree_was_made_of() -> None:
    disk = Stopped(hardlinks=True).disk
    again = disk_of(tree_of(disk))
    assert again.directories == disk.directories
    assert {path: inode.data for path, inode in again.names.items()} == {
        path: inode.data for path, inode in disk.names.items()
    }
    linked = [path for path in disk.names if disk.describe(path).links > 1]
    assert linked
    assert all(again.describe(path).links == disk.describe(path).links for path in linked)
