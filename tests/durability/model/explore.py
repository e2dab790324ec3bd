"""Exploring: every state that a scenario leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.durability.model import checkpoint, journal, spool, start
from tests.durability.model.disk import Disk
from tests.durability.model.open_state import crashes
from tests.durability.model.promises import check
from tests.durability.model.replay import recover
from tests.durability.model.search import Broken, Explored, search
from tests.durability.model.state import OVER, Left, Sent, Setting, State
from tests.durability.model.world import World

Act = Callable[[World], object]


def explore(setting: Setting, most_states: int) -> Explored:
    """Look at up to so many states."""
    first, title = _begin(setting)
    drained: set[int] = set()
    return search(
        first,
        title,
        lambda state: successors(state, setting),
        lambda state: _examine(state, setting, drained),  # it goes on to the end where no start is to come
        lambda state: state.memory is not None or bool(state.left.kills or state.left.powers),
        most_states,
    )


def _begin(setting: Setting) -> tuple[State, str]:
    scenario = setting.scenario
    left = Left(scenario.kills, scenario.powers, scenario.failures, scenario.checkpoints)
    state = State(frozenset(), None, (Sent("-", None, ()),) * len(scenario.messages), left)
    for label in scenario.begun:
        following = next((after for name, after in successors(state, setting) if name == label), None)
        if not isinstance(following, State):
            raise ValueError(f"{label} can't happen: {following}")
        _examine(following, setting, set())
        state = following
    return state, " > ".join(scenario.begun) or "empty disk"


def successors(state: State, setting: Setting) -> Iterator[tuple[str, State | str]]:
    """What was done, and the state after it or what it broke."""
    left = state.left
    for label, act in _acts(World(state, setting)):
        world = World(state, setting)
        failures, checkpoints = left.failures - ("FAILS" in label), left.checkpoints - ("begins" in label)
        world.left = left._replace(failures=failures, checkpoints=checkpoints)
        try:
            act(world)
            after = world.state()
        except Broken as broken:
            yield label, str(broken)
            continue
        yield label, after
    yield from crashes(state)


def _acts(world: World) -> Iterator[tuple[str, Act]]:
    """Every act that is possible now."""
    if world.is_down:
        if start.can_start(world):
            yield "start", start.start
        return
    memory = world.memory
    if not memory.is_up:
        yield "started", start.has_started
        if world.left.failures:
            yield "its barrier FAILS", start.fails
        return
    if not memory.in_trouble:
        yield from _arrivals(world)
    lines, asked = world.lines(), world.asked()
    for line in sorted(line for line in lines if line not in asked):
        for to in _ways(world, line[1]):
            yield f"settle {line} {to or 'done'}", partial(journal.settle, line=line, to=to)
    yield from _journal_acts(world)
    yield from _checkpoint_acts(world)
    yield from _spool_acts(world)


def _arrivals(world: World) -> Iterator[tuple[str, Act]]:
    number = next((n for n, one in enumerate(world.sent) if one.status == "-"), None)
    if number is not None and world.scenario.reports and number + 1 == len(world.sent):
        asked = world.asked()
        for line in sorted(line for line in world.lines() if line not in asked and line[1].endswith("b")):
            yield f"message {number} reports {line}", partial(journal.submit, number=number, reported=line)
    elif number is not None:
        yield f"message {number} arrives", partial(journal.submit, number=number)
    for spool_id, draft in sorted(world.memory.drafts):
        yield f"draft {draft} synced", partial(journal.draft_is_synced, spool_id=spool_id, number=draft)


def _ways(world: World, generation: str) -> list[str]:
    number, area = int(generation[:-1]) + 1, generation[-1]
    if number > world.scenario.generations or area == "b":
        return [""]
    return ["", *(f"{number}{way}" for way in world.scenario.ways)]


def _journal_acts(world: World) -> Iterator[tuple[str, Act]]:
    memory = world.memory
    if memory.flight is not None:
        yield f"barrier of batch {memory.sequence}", journal.barrier
        if world.left.failures:
            yield f"barrier of batch {memory.sequence} FAILS", journal.barrier_fails
    elif memory.untold is not None:
        yield f"batch {memory.sequence - 1} told", journal.tell
    elif memory.waiting and _has_room(world):
        yield f"batch {memory.sequence} written", journal.write_batch


def _has_room(world: World) -> bool:
    """(A bound of the model: the server makes a file.)"""
    return not journal.is_full(world) or bool(journal.free_files(world, journal.reuse_horizon(world)))


def _checkpoint_acts(world: World) -> Iterator[tuple[str, Act]]:
    memory = world.memory
    moving = memory.moving
    if moving is None:
        if memory.in_trouble and world.keeps("no checkpoint begins in trouble"):
            return
        if world.left.checkpoints and memory.sequence - 1 > memory.horizon:
            yield f"checkpoint {memory.next_checkpoint} begins", checkpoint.begin
    elif not moving.is_written:
        yield f"checkpoint {moving.number} writes", checkpoint.write
    elif not moving.is_sealed:
        yield f"checkpoint {moving.number} syncs", checkpoint.sync
        if world.left.failures:
            yield f"checkpoint {moving.number}: its sync FAILS", partial(checkpoint.sync, fails=True)


def _spool_acts(world: World) -> Iterator[tuple[str, Act]]:
    if world.scenario.counts:
        names = spool.unreferenced(world)
        if names:
            yield "message files are unlinked", partial(spool.unlink, names=names)
        return
    going = world.memory.walk
    if going is not None or world.disk.message_names():
        what = "begins" if going is None else f"reads {going.clusters[0]}" if going.clusters else "ends"
        yield f"the walk {what}".replace("begins", "sets out"), spool.walk


def _examine(state: State, setting: Setting, drained: set[int]) -> None:
    """The invariants here; and where the story ends (all is settled, or the last crash is spent): does everything go away
    for good?"""
    disk, memory = Disk(state.disk), state.memory
    check(disk, memory if memory is not None else recover(disk, setting).memory, state.sent, setting)
    if memory is None:
        if not state.left.kills and not state.left.powers and start.can_start(World(state, setting)):
            world = World(state, setting)
            start.start(world)
            if not world.memory.is_up:
                start.has_started(world)
            _drain_once(world, ("scc", "cscc"), drained)
    elif memory.is_up and not (
        memory.waiting or memory.flight or memory.untold or memory.moving or memory.drafts or memory.walk
    ):
        is_open = any(
            one.status in "-s" or (one.status == "a" and any(fate != OVER for fate, _, _ in one.fates)) for one in state.sent
        )
        if not is_open:
            _drain_once(World(state, setting), ("cc",), drained)


def _drain_once(world: World, orders: tuple[str, ...], drained: set[int]) -> None:
    """Not again where the journal alone differs, in what nobody will read."""
    free = tuple(journal.free_files(world, world.memory.horizon))
    cells = frozenset(item for item in world.disk.items() if item[0][0] not in ("H", "B", "N"))
    memory = world.memory._replace(nonce=(0, 0, 0), segment=0, homes=frozenset())
    key = hash((cells, memory, tuple(world.sent), free, orders))
    if key not in drained:
        drained.add(key)
        state = world.state()
        for order in orders:
            _drain(World(state, world.setting), order)


def _drain(world: World, order: str) -> None:
    """I5: s settles what is live, c is a checkpoint; afterwards no file is left and nothing is owed."""
    for step in order:
        if step == "s":
            for line in sorted(world.lines()):
                journal.settle(world, line, "")
            done = _write_and_tell(world)
        else:
            done = _make_checkpoint(world)
        if not done:
            return
        spool.unlink(world, spool.unreferenced(world))
    left = [*world.disk.clusters(), *world.disk.message_names()]
    if left or world.memory.owed:
        raise Broken(f"I5: left for ever: {left} {sorted(world.memory.owed)}")


def _make_checkpoint(world: World) -> bool:
    checkpoint.begin(world)
    moving = world.memory.moving
    if moving is not None and not moving.is_written:
        checkpoint.write(world)
    checkpoint.sync(world)
    return _write_and_tell(world)


def _write_and_tell(world: World) -> bool:
    """Batch by batch; whether there were files enough (a bound of the model)."""
    while world.memory.waiting:
        if not _has_room(world):
            return False
        journal.write_batch(world)
        check(world.disk, world.memory, tuple(world.sent), world.setting)
        if world.memory.flight is not None:
            journal.barrier(world)
        if world.memory.untold is not None:
            journal.tell(world)
        check(world.disk, world.memory, tuple(world.sent), world.setting)
    return True
