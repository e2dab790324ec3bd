"""Acts of a start. In step with `journal.opening`, and `recovery.opening` and `recovery.denied` of the provider.

last batch written again in a new segment --barrier--> marks of denied batches written --synced--> up
"""

from __future__ import annotations

from tests.durability.log_model.replay import Found, denied_marks, recover, segments_of
from tests.durability.log_model.requests import begin_segment, put_batch
from tests.durability.log_model.state import LIVE, OVER, Batch, Fate, Memory, Other
from tests.durability.log_model.world import World
from tests.durability.model.disk import Key


def start(world: World) -> None:
    """To its barrier."""
    found = recover(world.disk, world.setting)
    last = found.last
    sequence = last.sequence if last is not None else found.horizon + 1
    failed = _failed(world, found)
    is_kept = world.keeps("a start makes the positions durable by which it ignores segments")
    if found.positions is not None and found.positions.ignored and is_kept:
        for at in range(2):
            world.disk.exchange(("P", at), found.positions)
        world.disk.sync(lambda key: key[0] == "P")
    if last is not None and not world.keeps("a start acts on nothing before its own barrier"):
        slot = world.scenario.slots  # what was found is believed, and the next segment follows
        world.remember(Memory(2, found.number, slot, last.sequence, last.sequence, found.horizon, failed=failed))
        return _believe(world, found)
    world.remember(Memory(0, found.number, 0, sequence, sequence, found.horizon, failed=failed))
    begin_segment(world, found.number + 1, sequence - 1)
    if last is not None and not world.keeps("a batch that is written again keeps its marks"):
        last = last._replace(marked=frozenset())
    put_batch(world, last if last is not None else Batch(sequence, (Other(-1),)))
    return None


def _failed(world: World, found: Found) -> frozenset[int]:
    """The failed segments that positions told of, and that are there still."""
    if found.positions is None:
        return frozenset()
    return frozenset(found.positions.ignored) & {one.header.number for one in found.segments}


def has_barrier(world: World) -> None:
    """Its barrier has returned: what it denies is marked."""
    memory = world.memory
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.segment)
    segments = segments_of(world.disk, world.setting)
    marks: frozenset[Key] = frozenset()
    if world.keeps("a start marks the former copy of the last batch"):
        marks = denied_marks(memory.segment, segments)
    for key in marks:
        world.disk.put(key, True)
    world.know(stage=1, denied=marks)


def has_started(world: World) -> None:
    """These marks are durable: it is up."""
    denied = world.memory.denied
    world.disk.sync(lambda key: key in denied)
    world.know(stage=2, denied=frozenset())
    _believe(world, recover(world.disk, world.setting))


def _believe(world: World, found: Found) -> None:
    """What a start found and synced is the truth from here on."""
    garbage = found.garbage
    if not world.keeps("a start writes and syncs the marks of its suffix again"):
        garbage = frozenset(one for one in garbage if not world.disk.now("K", one.segment, one.place))  # a copy has none
    world.know(envelopes=frozenset(found.envelopes.items()), garbage=garbage)
    alive = {(known.message, number): attempts for known in found.envelopes.values() for number, attempts in known.entries}
    for number, one in enumerate(world.sent):
        if one.status not in "sar":
            continue
        here = [alive.get((number, recipient)) for recipient in range(len(one.fates))]
        fates: tuple[Fate, ...] = tuple(
            (OVER, *fate[1:]) if attempts is None else (LIVE, attempts, attempts)
            for attempts, fate in zip(here, one.fates, strict=True)
        )
        is_here = one.status == "a" or any(attempts is not None for attempts in here)
        world.sent[number] = one._replace(status="a" if is_here else "x", fates=fates)
