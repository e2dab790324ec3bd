"""Acts of a round: marks, positions, free segments. In step with `control.rounds`.

marks written --synced--> positions: first block written --synced, second written--> half --synced--> durable --> free
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from tests.durability.log_model.state import Batch, Envelope, Positions, Round
from tests.durability.log_model.world import World
from tests.durability.model.disk import Key


def begin(world: World) -> None:
    """Marks of what is garbage, and of what is worked on, in segments that are complete."""
    world.spend(rounds=1)
    memory = world.memory
    garbage = {one for one in memory.garbage if one.segment != memory.segment and one.segment not in memory.failed}
    waits = world.keeps("a mark is written behind the record that allows it")
    going = {item.subject for item in world.coming() if item.kind == "settle"} if not waits else set()
    works = {
        (name, ("K", known.segment, known.place))
        for name, known in memory.envelopes
        if not known.is_marked
        and known.segment != memory.segment
        and known.segment not in memory.failed
        and (known.is_recorded or (not waits and (known.is_start_asked or (name in going and not known.left))))
    }
    now = Round("written", frozenset(garbage), frozenset(works))
    for key in _keys(now):
        world.disk.put(key, True)
    world.know(round=now)


def _keys(now: Round) -> set[Key]:
    return {key for _, key in now.works} | {("K", one.segment, one.place) for one in now.garbage}


def marked_segments(now: Round) -> set[int]:
    """The segments with marks that this round has written."""
    return {cast(int, key[1]) for key in _keys(now)}


def sync_marks(world: World, *, but: int = 0) -> None:
    """They are durable, but for those in the segment `but`."""
    now = world.memory.round
    assert now is not None
    now = now._replace(
        garbage=frozenset(one for one in now.garbage if one.segment != but),
        works=frozenset((name, key) for name, key in now.works if key[1] != but),
    )
    keys = _keys(now)
    if world.keeps("marks are synced before positions pass their records"):
        world.disk.sync(lambda key: key in keys)
    for name, key in now.works:
        known = dict(world.memory.envelopes).get(name)
        if known is not None and key == ("K", known.segment, known.place):
            world.know_envelope(name, known._replace(is_marked=True))
    world.know(garbage=world.memory.garbage - now.garbage, round=Round("marked"))


def find_positions(world: World) -> Positions:
    """Where the suffix begins, and before which nothing waits."""
    removable = _removable(world)
    while True:
        suffix, waits = _find_suffix(world, removable)
        before = frozenset(number for number in removable if _last(world, number) < suffix)
        if before == removable:
            break
        removable = before
    ignored = tuple(sorted(removable)) if world.keeps("positions tell which failed segments count no more") else ()
    return Positions(suffix, waits, ignored)


def _find_suffix(world: World, removable: frozenset[int]) -> tuple[int, int]:
    """Garbage in failed segments that are to be removed needs no records."""
    memory, pins = world.memory, list[int]()
    if world.keeps("garbage without a durable mark keeps its records"):
        pins += [one.pin for one in memory.garbage if one.segment not in removable]
    if world.keeps("work keeps its records in the suffix"):
        pins += [known.pin for _, known in memory.envelopes if known.pin]
    if world.keeps("the suffix waits for moves"):
        pins += [item.pin for item in world.coming() if item.kind == "move"]
    waiting = [known.place[0] for _, known in memory.envelopes if not known.is_recorded]
    if not world.keeps("positions do not pass what waits"):
        waiting = []
    return min(pins, default=memory.applied + 1), min(waiting, default=memory.applied + 1)


def _removable(world: World) -> frozenset[int]:
    """The failed segments in which nothing is needed."""
    return world.memory.failed - _needed(world)


def _needed(world: World) -> set[int]:
    """Segments with live envelopes, or with contents of such."""
    needed: set[int] = set()
    if world.keeps("a segment with a live envelope stays"):
        needed |= {known.segment for _, known in world.memory.envelopes}
    if world.keeps("the content of a live envelope stays"):
        needed |= {known.content for _, known in world.memory.envelopes}
        records = [record for item in world.coming() for record in item.records]
        needed |= {record.content for record in records if isinstance(record, Envelope)}
    return needed


def write_positions(world: World) -> None:
    """The first block, or, for the first time in this run, a new file. The same ones are not written again."""
    positions = find_positions(world)
    if positions == world.memory.written:
        world.know(round=Round("durable", positions=positions))
        return
    if not world.memory.is_trusted:
        for at in range(2):
            world.disk.exchange(("P", at), positions)
        world.know(round=Round("half", positions=positions))
    else:
        world.disk.put(("P", 0), positions)
        world.know(round=Round("begun", positions=positions))
        if not world.keeps("the first block is synced before the second is written"):
            world.disk.put(("P", 1), positions)
            world.know(round=Round("half", positions=positions))
    if not world.keeps("a segment is free when positions without it are durable"):
        free(world, positions)


def write_second_block(world: World) -> None:
    """The first one is durable."""
    now = world.memory.round
    assert now is not None
    world.disk.sync(lambda key: key == ("P", 0))
    world.disk.put(("P", 1), now.positions)
    world.know(round=now._replace(stage="half"))


def sync_positions(world: World) -> None:
    """They are durable."""
    now = world.memory.round
    assert now is not None
    world.disk.sync(lambda key: key[0] == "P")
    world.know(round=now._replace(stage="durable"), written=now.positions, is_trusted=True)


def has_removable(world: World) -> bool:
    """Whether the durable positions tell of failed segments that are there."""
    now = world.memory.round
    return now is not None and bool(world.memory.failed.intersection(now.positions.ignored))


def unlink_failed(world: World) -> None:
    """The failed segments of which the positions tell lose their names."""
    now = world.memory.round
    assert now is not None
    for number in now.positions.ignored:
        world.disk.exchange(("H", number), None)
    world.know(round=now._replace(stage="unlinked"))


def remove_failed(world: World) -> None:
    """They have lost them durably."""
    now = world.memory.round
    assert now is not None
    world.disk.sync(lambda key: key[0] == "H" and key[1] in now.positions.ignored)
    for key in [key for key in world.disk if key[0] in ("H", "B", "K") and key[1] in now.positions.ignored]:
        del world.disk[key]
    _forget(world, now)


def _forget(world: World, now: Round) -> None:
    """What lay in removed segments is nowhere."""
    gone = frozenset(now.positions.ignored)
    world.know(
        failed=world.memory.failed - gone,
        garbage=frozenset(one for one in world.memory.garbage if one.segment not in gone),
        round=now._replace(stage="durable"),
    )


def end(world: World) -> None:
    """Segments that nobody needs are free."""
    now = world.memory.round
    assert now is not None
    free(world, now.positions)
    world.know(round=None, horizon=max(world.memory.horizon, now.positions.suffix - 1))


def free(world: World, positions: Positions) -> None:
    """Free what lies before these positions, and nothing lives in."""
    memory = world.memory
    needed = {memory.segment} | _needed(world) | memory.failed
    needed |= _deniers(world)
    if world.keeps("a segment is free when its marks are durable"):
        needed |= {one.segment for one in memory.garbage}
    for number in sorted(cast(int, key[1]) for key in list(world.disk) if key[0] == "H"):
        is_before = _last(world, number) < positions.suffix
        is_before = is_before or not world.keeps("a segment is free when the suffix begins behind it")
        if number not in needed and is_before:
            for key in [key for key in world.disk if key[0] in ("H", "B", "K") and key[1] == number]:
                del world.disk[key]


def _deniers(world: World) -> set[int]:
    """The segments behind failed ones."""
    numbers = sorted(cast(int, key[1]) for key, cell in world.disk.items() if key[0] == "H" and cell[0])
    return {following for number, following in pairwise(numbers) if number in world.memory.failed}


def _last(world: World, number: int) -> int:
    """Sequence number of the last good batch of a segment: of the failed one nothing counts."""
    return max((batch.sequence for batch in _batches(world, number) if batch.sequence <= world.memory.applied), default=0)


def _batches(world: World, number: int) -> list[Batch]:
    found = [world.disk.now("B", number, slot) for slot in range(world.scenario.slots)]
    return [batch for batch in found if isinstance(batch, Batch)]
