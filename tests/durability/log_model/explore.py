"""Exploring: every order of acts, and every crash, that a scenario leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.durability.log_model import failures, requests, rounds, starts
from tests.durability.log_model.promises import check
from tests.durability.log_model.replay import recover
from tests.durability.log_model.state import Left, Sent, Setting, State
from tests.durability.log_model.world import World
from tests.durability.model.disk import Disk
from tests.durability.model.open_state import crashes
from tests.durability.model.search import Broken, Explored, search

Act = Callable[[World], object]


def explore(setting: Setting, most_states: int) -> Explored:
    """Look at up to so many states."""
    first, title = _begin(setting)
    return search(
        first,
        title,
        lambda state: successors(state, setting),
        lambda state: _examine(state, setting),
        lambda state: True,
        most_states,
    )


def _begin(setting: Setting) -> tuple[State, str]:
    scenario = setting.scenario
    bounds = scenario.kills, scenario.powers, scenario.rounds, scenario.moves, scenario.starts, scenario.others
    left = Left(*bounds, scenario.failures)
    state = State(frozenset(), None, (Sent("-", ()),) * len(scenario.messages), Left(9, 9, 9, 9, 9, 9, 9))
    for label in scenario.begun:
        following = next((after for name, after in successors(state, setting) if name == label), None)
        if not isinstance(following, State):
            possible = [name for name, _ in successors(state, setting)]
            raise ValueError(f"{label} can't happen: {following}; these can: {', '.join(possible)}")
        _examine(following, setting)
        state = following
    return state._replace(left=left), " > ".join(scenario.begun) or "empty disk"


def successors(state: State, setting: Setting) -> Iterator[tuple[str, State | str]]:
    """What was done, and the state after it or what it broke."""
    for label, act in _acts(World(state, setting)):
        world = World(state, setting)
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
        yield "start", starts.start
        return
    memory = world.memory
    if memory.stage < 2:
        yield ("own barrier", starts.has_barrier) if memory.stage == 0 else ("up", starts.has_started)
        if world.left.failures:
            yield ("own barrier FAILS" if memory.stage == 0 else "the sync of its marks FAILS"), failures.start_fails
        return
    yield from _requests(world)
    if memory.prepared:
        yield "a move goes along", requests.ride
    if requests.may_write(world):
        yield f"batch {memory.sequence + 1} written", requests.write_batch
    if memory.flight is not None:
        yield f"barrier of batch {memory.sequence}", requests.barrier
        if world.left.failures:
            yield f"barrier of batch {memory.sequence} FAILS", failures.barrier_fails
    if memory.untold is not None:
        yield f"batch {memory.sequence} told", requests.tell
    yield from _round(world)


def _requests(world: World) -> Iterator[tuple[str, Act]]:
    number = next((n for n, one in enumerate(world.sent) if one.status == "-"), None)
    if number is not None and not world.memory.is_recovering:
        yield f"message {number} arrives", partial(requests.submit, number=number)
    if world.left.others and not world.memory.is_recovering:
        yield "other mail", requests.pass_by
    for name, known in sorted(world.memory.envelopes):
        for recipient, attempts in known.entries:
            if recipient in known.left:
                what = f"of message {known.message} recipient {recipient}"
                yield f"end {what}", partial(requests.settle, name=name, recipient=recipient, is_retried=False)
                if attempts < world.scenario.retries:
                    yield f"retry {what}", partial(requests.settle, name=name, recipient=recipient, is_retried=True)
        if world.left.starts and known.left and not known.is_recorded and not known.is_start_asked:
            yield f"start record of {name}", partial(requests.start_work, name=name)
        if world.left.moves and known.left and not known.is_moving:
            yield f"move of {name}", partial(requests.move, name=name, with_content=False)
            if known.segment == known.content:
                yield f"move of {name} with its content", partial(requests.move, name=name, with_content=True)


def _round(world: World) -> Iterator[tuple[str, Act]]:
    now = world.memory.round
    if now is None:
        if world.left.rounds:
            yield "marks written", rounds.begin
        return
    steps: dict[str, tuple[str, Act]] = {
        "written": ("marks synced", rounds.sync_marks),
        "marked": ("positions written", rounds.write_positions),
        "begun": ("second block written", rounds.write_second_block),
        "half": ("positions synced", rounds.sync_positions),
        "durable": ("segments freed", rounds.end),
        "unlinked": ("failed segments removed", rounds.remove_failed),
    }
    if now.stage == "durable" and rounds.has_removable(world):
        yield "failed segments unlinked", rounds.unlink_failed
        return
    yield steps[now.stage]
    if not world.left.failures:
        return
    if now.stage == "written":
        for segment in sorted(rounds.marked_segments(now)):
            yield f"the sync of marks in segment {segment} FAILS", partial(failures.marks_fail, segment=segment)
    elif now.stage in ("begun", "half"):
        yield "the sync of positions FAILS", failures.positions_fail


def _examine(state: State, setting: Setting) -> None:
    """Do the promises hold for what the process knows, or for what a start would find?"""
    disk, memory = Disk(state.disk), state.memory
    if memory is not None and memory.stage == 2:
        check(disk, (known for _, known in memory.envelopes), state.sent)
    else:
        check(disk, recover(disk, setting).envelopes.values(), state.sent)
