"""Acts on message files that no entry needs any more. In step with `release`, `walk` and `mailismus.spool`."""

from __future__ import annotations

from tests.durability.model.records import Settle, SpoolId
from tests.durability.model.replay import counting_clusters
from tests.durability.model.search import Broken
from tests.durability.model.state import OVER, Walk
from tests.durability.model.world import World

Name = tuple[SpoolId, int]


def unreferenced(world: World) -> list[Name]:
    """Names that no live line needs: what counting, or a name for each recipient, tells."""
    memory = world.memory
    numbers = {one.spool_id: number for number, one in enumerate(world.sent)}
    lines = set(world.lines())
    if not world.keeps("release after durable"):
        lines -= {r.line for r in memory.waiting if isinstance(r, Settle) and not r.to}
    needed = {(spool_id, world.setting.name_of(numbers[spool_id], n)) for (spool_id, n), _ in lines if spool_id in numbers}
    kept = world.coming() | _being_written(world)
    return [name for name in world.disk.message_names() if name not in needed and name[0] not in kept]


def _being_written(world: World) -> set[SpoolId]:
    """What a checkpoint writes is looked at again when it is over."""
    moving = world.memory.moving
    if moving is None:
        return set()
    contents = {spool_id for spool_id, _ in world.memory.contents}
    return {queue_id[0] for queue_id, _ in moving.moved if queue_id[0] in contents}


def unlink(world: World, names: list[Name]) -> None:
    """Not synced: nothing needs it to be. Raises `Broken` (I6)."""
    for spool_id, name in names:
        for number, one in enumerate(world.sent):
            if one.status == "a" and one.spool_id == spool_id:
                for recipient, (fate, _, _) in enumerate(one.fates):
                    if fate != OVER and world.setting.name_of(number, recipient) == name:
                        raise Broken(f"I6: bytes of message {number} go before its last durable settle")
        world.disk.put(("M", spool_id, name), None)
    world.disk.sweep()


def walk(world: World) -> None:
    """Begins with the young, reads a cluster at a time, at last unlinks what it saw no line of."""
    memory = world.memory
    going = memory.walk
    if going is None:
        clusters = tuple(counting_clusters(world.disk, memory))
        names = {spool_id for spool_id, _ in world.disk.message_names()}
        unsure = frozenset(names - world.coming() - _being_written(world))
        young = {queue_id[0] for queue_id, _ in memory.young}
        world.know(walk=Walk(clusters, unsure, frozenset(young if world.keeps("the walk sees the young") else ())))
    elif going.clusters:
        cluster, *rest = going.clusters
        seen = {queue_id[0] for (queue_id, _), place in world.lines().items() if place is not None and place[0] == cluster}
        world.know(walk=going._replace(clusters=tuple(rest), seen=going.seen | seen))
    else:
        world.know(walk=None)
        over = going.unsure - going.seen
        unlink(world, [name for name in world.disk.message_names() if name[0] in over])
