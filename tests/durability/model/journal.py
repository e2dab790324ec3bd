"""Acts of the journal: what arrives and what becomes of it, batch by batch.

    gathering --written--> in flight --barrier--> durable, untold --told--> in the indexes, answered
                                     \\--failed--> the file is sick; new messages are refused, the rest is said again

In step with `mailismus.journal.commit`, `.writer` and the queue's `ledger`. The reactor hears of a batch, hands the next
one over and tells all in one turn; here that is two acts, between which a crash finds no more than it finds in the server.
"""

from __future__ import annotations

from collections.abc import Collection

from tests.durability.model.checkpoint import abandon, commit
from tests.durability.model.records import (
    Arrival,
    Batch,
    Commit,
    Denial,
    Header,
    Line,
    Place,
    Places,
    Record,
    Settle,
    SpoolId,
)
from tests.durability.model.replay import segments
from tests.durability.model.state import ASKED, LIVE, OVER, Fate, Sent
from tests.durability.model.world import World

# in


def submit(world: World, number: int, reported: Line | None = None) -> None:
    """A message comes. A large one streams into its silo before anything is said in the journal. `reported`: the bounce
    that is over with it."""
    memory, (count, is_large) = world.memory, world.scenario.messages[number]
    spool_id = (memory.epoch, memory.counter)
    fates: tuple[Fate, ...] = ((LIVE, "0i", "0i"),) * count
    world.sent[number] = Sent("s", spool_id, fates, None if reported is None else reported[0])
    world.know(counter=memory.counter + 1)
    if reported is not None:
        end = _settling(world, reported, "")
        if world.keeps("a report takes its bounces along"):
            _append(world, arrival(world, spool_id, number)._replace(ends=(end,)))
        else:
            _append(world, arrival(world, spool_id, number))
            _append(world, end)
    elif is_large:
        for name in sorted({world.setting.name_of(number, recipient) for recipient in range(count)}):
            world.disk.put(("M", spool_id, name), True)
        world.disk.put(("D", spool_id), number)
        world.know(drafts=memory.drafts | {(spool_id, number)})
    elif world.keeps("one record a message"):
        _append(world, arrival(world, spool_id, number))
    else:
        for line in arrival(world, spool_id, number).lines:
            _append(world, Arrival(spool_id, number, (line,), False, False))


def arrival(world: World, spool_id: SpoolId, number: int) -> Arrival:
    """The record of a new message."""
    count, is_large = world.scenario.messages[number]
    lines = tuple(((spool_id, recipient), "0i") for recipient in range(count))
    return Arrival(spool_id, number, lines, is_large, False)


def draft_is_synced(world: World, spool_id: SpoolId, number: int) -> None:
    """A large message's file and its silo are durable: now the journal may speak of it."""
    covers = ["D"] * world.keeps("draft bytes synced") + ["M"] * world.keeps("draft name synced")
    world.disk.sync(lambda key: key[0] in covers and key[1] == spool_id)
    world.know(drafts=world.memory.drafts - {(spool_id, number)})
    _append(world, arrival(world, spool_id, number))


def settle(world: World, line: Line, to: str) -> None:
    """An attempt is over; `to`: the entry's next generation, empty when there is none."""
    _append(world, _settling(world, line, to))


def _settling(world: World, line: Line, to: str) -> Settle:
    moving, place = world.memory.moving, world.lines()[line]
    if moving is not None and line in moving.moved:
        if not moving.is_sealed:
            world.know(moving=moving._replace(late=moving.late | {line}))
        elif world.keeps("settles name the new place"):
            place = dict(moving.where)[line]
    if not world.keeps("place in the settle"):
        place = None
    world.decide(line, lambda fate: (fate[0], fate[1], max(fate[2], to)) if to else (ASKED, *fate[1:]))
    queue_id, generation = line
    return Settle(queue_id, generation, to, place)


def _append(world: World, record: Record) -> None:
    world.know(waiting=world.memory.waiting | {record})


# the journal's thread


def free_files(world: World, horizon: int) -> list[int]:
    """Files of the journal that nothing behind the horizon lies in, the one used longest ago first."""
    memory, disk = world.memory, world.disk
    needed = set()
    for header, file, batches, limit in segments(disk, world.setting):
        if any(horizon < batch.sequence <= limit for batch in batches):
            needed.add(file)
        assert header is not None
    free = []
    for file in range(world.scenario.files):
        if (
            file != memory.file
            and not (file in memory.sick and world.keeps("a sick file is not used again"))
            and file not in needed
        ):
            found = disk.header(file)
            free.append((found is None, found.number if found is not None else 0, file))
    return [file for _, _, file in sorted(free)]


def reuse_horizon(world: World) -> int:
    """Files before it are used again."""
    memory = world.memory
    if memory.moving is not None and not world.keeps("reuse after the record"):
        return memory.moving.horizon
    return memory.horizon


def begin_segment(world: World, last_good: int, horizon: int) -> None:
    """The next batch goes into a fresh file, whose header denies what lies behind the last good one."""
    memory = world.memory
    file, number = free_files(world, horizon)[0], memory.segment + 1
    nonce = (number, world.left.kills, world.left.powers)
    told = horizon if world.keeps("the header tells the horizon") else 0
    world.know(file=file, slot=0, segment=number, nonce=nonce, is_fresh=False)
    world.disk.put(("H", file), Header(number, last_good + 1, last_good, memory.epoch, told, nonce))
    if not world.keeps("segment known by its header"):
        world.disk.put(("N", file), number)


def is_full(world: World) -> bool:
    """The next batch begins a file."""
    return world.memory.is_fresh or world.memory.slot == world.scenario.slots


def write_batch(world: World) -> None:
    """All that waits, in the order in which it came as far as that matters."""
    if is_full(world):
        begin_segment(world, world.memory.sequence - 1, reuse_horizon(world))
    memory = world.memory
    is_sealed = memory.moving is not None and memory.moving.is_sealed
    where: frozenset[Place | None] = frozenset(dict(memory.moving.where).values() if memory.moving and is_sealed else ())
    is_first = world.keeps("what lives is said again first")
    take = sorted(memory.waiting, key=lambda record: (_rank(record, where, is_first), repr(record)))
    if not (world.keeps("one record a message") and world.keeps("a report takes its bounces along")):
        take = take[:1]
    world.disk.put(("B", memory.file, memory.slot), Batch(memory.nonce, memory.sequence, tuple(take)))
    world.know(slot=memory.slot + 1, flight=tuple(take), waiting=memory.waiting - frozenset(take))
    if not world.keeps("barrier of a batch"):
        world.know(flight=None, untold=world.memory.flight, sequence=memory.sequence + 1)
        tell(world)


def _rank(record: Record, where: Collection[Place | None], is_first: bool) -> int:
    if isinstance(record, Denial) or (isinstance(record, Arrival) and record.again):
        return 0 if is_first else 6
    if isinstance(record, Arrival):
        return 5 if any(end.place in where for end in record.ends) else 1
    if isinstance(record, Places):
        return 3
    if isinstance(record, Commit):
        return 4
    return 5 if record.place in where else 2


def barrier(world: World) -> None:
    """The batch is durable; the reactor does not know it yet."""
    memory = world.memory
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.file)
    world.know(flight=None, untold=memory.flight, sequence=memory.sequence + 1)


def tell(world: World) -> None:
    """It comes into the indexes; only now it is answered, may be taken, marked, released."""
    records = world.memory.untold or ()
    world.know(untold=None, held=frozenset(), in_trouble=False)
    for record in records:
        if isinstance(record, Arrival):
            if not record.again:
                memory = world.memory
                contents = set() if record.in_silo else {(record.spool_id, record.message)}
                world.know(young=memory.young | set(record.lines), contents=memory.contents | contents)
                world.promise(record.spool_id, "s", "a")
            homes = {home for home in world.memory.homes if home[0] != record.spool_id}
            world.know(homes=frozenset(homes | {(record.spool_id, world.memory.segment)}))
            for end in record.ends:
                _is_settled(world, end)
        elif isinstance(record, Settle):
            _is_settled(world, record)
        elif isinstance(record, Commit):
            commit(world)
    forget_contents(world)


def _is_settled(world: World, record: Settle) -> None:
    memory, line = world.memory, record.line
    young, owed = memory.young, memory.owed
    if line in young:
        young -= {line}
    else:
        place = world.lines().get(line)
        if place is not None:
            owed |= {place}
    if record.to:
        young |= {(record.queue_id, record.to)}
        if memory.walk is not None and world.keeps("the walk is told"):
            unsure = memory.walk.unsure - {record.queue_id[0]}
            world.know(walk=memory.walk._replace(unsure=unsure))
    world.know(young=young, owed=owed)

    def change(fate: Fate) -> Fate:
        if record.to:
            return fate[0], max(fate[1], record.to), fate[2]
        return (OVER, *fate[1:]) if fate[0] == ASKED else fate

    world.decide(line, change)


def forget_contents(world: World) -> None:
    """Contents in the journal of messages of which nothing is young."""
    memory = world.memory
    needed = {queue_id[0] for queue_id, _ in memory.young}
    if memory.moving is not None:
        needed |= {queue_id[0] for queue_id, _ in memory.moving.moved}
    world.know(
        contents=frozenset(content for content in memory.contents if content[0] in needed),
        homes=frozenset(home for home in memory.homes if home[0] in needed),
    )


def barrier_fails(world: World) -> None:
    """EIO. The file is never trusted again; new messages get 451; what lives and what was settled is said again, the record
    of a checkpoint is not: with it behind what is said again each entry would be there twice."""
    memory = world.memory
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.file, fails=True)
    if not world.keeps("a sick file is left"):
        return barrier(world)  # the fsync is tried again and says "good"
    records = [*(memory.flight or ()), *memory.waiting]
    refused = {record.spool_id: record for record in records if isinstance(record, Arrival) and not record.again}
    for spool_id, record in refused.items():
        world.promise(spool_id, "s", "r")
        for end in record.ends:
            _is_refused(world, end)
    kept: set[Record] = {
        record for record in records if isinstance(record, Settle | Places) or (isinstance(record, Arrival) and record.again)
    }
    is_committing = any(isinstance(record, Commit) for record in records)
    if not world.keeps("a failed record is not kept"):
        kept |= {record for record in records if isinstance(record, Commit)}
        is_committing = False
    if not world.keeps("its bounces fail with a report"):
        kept |= {end for record in refused.values() for end in record.ends}
    if world.keeps("what lives is said again"):
        kept |= set(_say_again(world))
    if not kept and world.keeps("a failure is denied"):
        kept.add(Denial(memory.epoch))
    held = memory.held | frozenset(refused) if world.keeps("failed messages are held") else memory.held
    world.know(
        flight=None,
        is_fresh=True,
        sick=memory.sick | ({memory.file} if memory.file is not None else set()),
        waiting=frozenset(kept),
        held=held,
        in_trouble=bool(kept),
    )
    moving = world.memory.moving
    if moving is not None:
        if is_committing:
            abandon(world)
        elif world.keeps("a checkpoint is spoilt by a failure"):
            world.know(moving=moving._replace(is_spoilt=True))
    return None


def _is_refused(world: World, end: Settle) -> None:
    """A bounce whose report failed: it lives on."""
    moving = world.memory.moving
    if moving is not None and not moving.is_sealed:
        world.know(moving=moving._replace(late=moving.late - {end.line}))
    world.decide(end.line, lambda fate: (LIVE, *fate[1:]))


def _say_again(world: World) -> list[Arrival]:
    """The young messages that were last said in the sick file, as they are durable now."""
    memory, contents = world.memory, dict(world.memory.contents)
    here = {spool_id for spool_id, segment in memory.homes if segment == memory.segment}
    numbers = {one.spool_id: number for number, one in enumerate(world.sent)}
    again = []
    for spool_id in sorted({queue_id[0] for queue_id, _ in memory.young} & here):
        lines = tuple(sorted(line for line in memory.young if line[0][0] == spool_id))
        again.append(Arrival(spool_id, numbers[spool_id], lines, spool_id not in contents, True))
    return again
