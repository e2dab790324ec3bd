"""Barriers that fail: of batches, of marks, of positions, of a start.

    barrier FAILS -> the segment has failed, mail is refused, the rest is kept -> a later segment denies the failed batch
    sync of marks FAILS -> the segment has failed, what lies there stays unmarked
    sync of positions FAILS -> nothing is freed by them, and the next ones go into a new file

In step with `journal.commit`, `journal.writer`, `control.moves` and `control.rounds`. The page of a failed sync counts as
clean: later syncs of it say "good" and do nothing (`tests.durability.model.disk`).
"""

from __future__ import annotations

from tests.durability.log_model import requests, rounds, starts
from tests.durability.log_model.state import Item, Other
from tests.durability.log_model.world import World

MAY_FAIL = ("new", "other")
"""Items with a client that can be refused."""


def barrier_fails(world: World) -> None:
    """EIO: new mail is refused. All else is kept for the next batch: of the same number, in another segment."""
    world.spend(failures=1)
    memory, segment = world.memory, world.memory.segment
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == segment, fails=True)
    if not world.keeps("a barrier that failed is not tried again"):
        return requests.barrier(world)
    items = (*(memory.flight or ()), *memory.waiting)
    for item in items:
        if item.kind == "new":
            assert isinstance(item.subject, int)
            world.sent[item.subject] = world.sent[item.subject]._replace(status="r")
    kept = tuple(item for item in items if item.kind not in MAY_FAIL)
    if not kept:
        kept = (Item("denial", (Other(-2),), -1),)
    world.know(
        flight=None,
        waiting=kept,
        sequence=memory.sequence - 1,
        slot=world.scenario.slots,
        failed=memory.failed | {segment},
        is_recovering=bool(kept),
    )
    return None


def marks_fail(world: World, segment: int) -> None:
    """EIO: the marks of this segment are not durable, those of the others are."""
    world.spend(failures=1)
    world.disk.sync(lambda key: key[0] == "K" and key[1] == segment, fails=True)
    if not world.keeps("a sync of marks that failed is not tried again"):
        return rounds.sync_marks(world)
    world.know(failed=world.memory.failed | {segment})
    return rounds.sync_marks(world, but=segment)


def positions_fail(world: World) -> None:
    """EIO: the round ends."""
    world.spend(failures=1)
    now = world.memory.round
    assert now is not None
    at = [("P", 0)] if now.stage == "begun" else [("P", 0), ("P", 1)]
    world.disk.sync(lambda key: key in at, fails=True)
    if not world.keeps("positions whose sync failed count for nothing"):
        return rounds.sync_positions(world)
    is_trusted = world.memory.is_trusted and not world.keeps("positions whose sync failed are replaced by a new file")
    return world.know(round=None, is_trusted=is_trusted)


def start_fails(world: World) -> None:
    """EIO: the process says so and ends, and nobody remembers which segment has failed."""
    world.spend(failures=1)
    memory = world.memory
    if memory.stage == 0:
        world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.segment, fails=True)
    else:
        world.disk.sync(lambda key: key in memory.denied, fails=True)
    if world.keeps("a start whose barrier failed ends"):
        return world.stop()
    return starts.has_barrier(world) if memory.stage == 0 else starts.has_started(world)
