"""Any subset of the marks of a round is lost: a start finds the same, and another one behind it too. A quarter of
the subsets each time."""

from __future__ import annotations

from itertools import combinations

import pytest

from mailismus.queue.interface import Area
from tests.durability.crash.acts import Kind
from tests.durability.crash.explorer import Explorer, Tally, _knowledge
from tests.durability.crash.knowledge import Knowledge
from tests.durability.crash.log_operations import round_of_marks, use_segments
from tests.durability.crash.states import Crash, Story
from tests.durability.crash.world import ANY, World
from tests.durability.subjects.log import LOG

MARKS = 10


def world_with_marks() -> World:
    """Ten messages in one segment: some delivered, one deferred, one in part, one still on its way."""
    world = World(LOG)
    with LOG.exploring():
        world.commit([world.send(2 if not at % 3 else 1) for at in range(MARKS)])
        world.settle_down()
        taken = world.take(lambda _: True, ANY, (Area.INCOMING,))
        for at, message in enumerate(taken[:-1]):
            area = Area.DEFERRED if at == 4 else None
            world.settle(message, message.entries[: 1 if at == 6 else 2], area)
        world.settle_down()
        for _ in range(2):
            use_segments(world)
            round_of_marks(world)
    return world


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in (1, 2, 3))])
def test_any_subset_of_ten_marks_may_be_lost(part: int, tally: Tally) -> None:
    story = Story(world_with_marks().disk.acts)
    levels = _knowledge(story.acts, Knowledge())
    writes = [at for at, act in enumerate(story.acts) if act.kind is Kind.WRITE and len(act.data) == 1]
    segment = story.acts[writes[0]].inode
    length = next(at for at in range(writes[0], len(story.acts)) if story.acts[at].kind is Kind.SYNC)
    marks = [at for at in writes if at < length and story.acts[at].inode == segment]
    assert len(marks) >= MARKS - 1
    explorer = Explorer(LOG)
    subsets = [set(lost) for count in range(len(marks) + 1) for lost in combinations(marks, count)]
    for lost in subsets[part::4]:
        crash = Crash(length, frozenset(lost))
        tally.crashes += 1
        explorer._check(story.tree(crash), levels[length], is_last=False)
