"""Acts of a start. In step with `mailismus.journal.opening`.

It acts on nothing before its own barrier: a fresh file, whose header raises the epoch and denies the last batch found,
which is said again in it. Then it is up, and what the last checkpoint does not speak of goes.
"""

from __future__ import annotations

from tests.durability.model.checkpoint import cut_off
from tests.durability.model.journal import begin_segment, free_files
from tests.durability.model.records import Arrival, Batch
from tests.durability.model.replay import recover, segments
from tests.durability.model.state import LIVE, OVER, Fate
from tests.durability.model.world import World


def can_start(world: World) -> bool:
    """There is a free file. (A bound of the model: the server makes one.)"""
    found = recover(world.disk, world.setting)
    probe = World(world.state(), world.setting)
    probe.remember(found.memory)
    return not world.keeps("a start trusts no tail") or bool(free_files(probe, found.sure_horizon))


def start(world: World) -> None:
    """To its barrier."""
    found = recover(world.disk, world.setting)
    memory, last = found.memory, found.last
    if last is not None and not world.keeps("a start trusts no tail"):
        return _go_on_behind(world, memory.sequence)
    world.remember(memory._replace(epoch=memory.epoch + world.keeps("epoch")))
    is_again = last is not None
    if is_again and not world.keeps("a start says the last batch again"):
        world.disk.sync(lambda key: key[0] in ("H", "B"))
        is_again = False
    sequence = memory.sequence + (not is_again)
    begin_segment(world, sequence - 1, found.sure_horizon)
    file, nonce = world.memory.file, world.memory.nonce
    records = last.records if is_again and last is not None else ()
    world.disk.put(("B", file, 0), Batch(nonce, sequence, records))
    here = {record.spool_id for record in records if isinstance(record, Arrival) and not record.in_silo}
    homes = {(spool_id, world.memory.segment if spool_id in here else home) for spool_id, home in memory.homes}
    world.know(slot=1, sequence=sequence + 1, homes=frozenset(homes))
    return None


def _go_on_behind(world: World, sequence: int) -> None:
    """(A mutant.) What was found is believed, and written behind."""
    found = recover(world.disk, world.setting)
    header, file, batches, _ = segments(world.disk, world.setting)[-1]
    used = len(batches)
    is_fresh = used == world.scenario.slots
    world.remember(found.memory._replace(file=file, slot=used, segment=header.number, nonce=header.nonce, is_fresh=is_fresh))
    world.know(sequence=sequence + 1)
    _come_up(world)


def has_started(world: World) -> None:
    """Its barrier has returned."""
    memory = world.memory
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.file)
    _come_up(world)
    _believe(world)


def fails(world: World) -> None:
    """Its barrier failed: the process says so and ends, and nobody remembers which file is sick."""
    file = world.memory.file
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == file, fails=True)
    world.stop()


def _come_up(world: World) -> None:
    memory = world.memory
    for cluster in sorted(memory.dead):
        world.disk.put(("C", cluster), None)
    world.disk.sweep()
    cut_off(world, dict(memory.lengths))
    world.know(is_up=True, dead=frozenset())


def _believe(world: World) -> None:
    """What a start found and synced is the truth from here on."""
    generations = dict(world.lines().keys())
    for number, one in enumerate(world.sent):
        if one.status in "sar" and one.spool_id is not None:
            alive = [generations.get((one.spool_id, recipient)) for recipient in range(len(one.fates))]
            fates: tuple[Fate, ...] = tuple(
                (OVER, *fate[1:]) if generation is None else (LIVE, generation, generation)
                for generation, fate in zip(alive, one.fates, strict=True)
            )
            status = "a" if one.status == "a" or any(generation is not None for generation in alive) else "x"
            world.sent[number] = one._replace(status=status, fates=fates)
