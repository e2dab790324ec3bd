"""What the log-structured provider alone does: rounds of marks, segments that are complete, and what goes wrong in them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import partial

import mailismus.queue.providers.log.control.rounds as rounds_module
from mailismus.queue.interface import Area, Message
from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.operations import DoesNotApply, Operation, settle_one, take_one
from tests.durability.crash.world import ANY, World
from tests.durability.subjects.clustered import instead

SEVERAL = 3
"""Messages that fill a segment."""

WRITTEN, TOLD, MARKED, FREED = 1, 2, 5, 7
"""Steps from a move that is asked for until its batch is written, and told; until the round behind it has written marks, and
then positions and the names of free segments."""


def round_of_marks(world: World) -> None:
    world.server.running.write_behind()
    world.settle_down()


def use_segments(world: World) -> None:
    """Messages come and go until their segments are complete, marked and free."""
    for _ in range(SEVERAL):
        world.store(1, 5000)
        settle_one(world, None)
        world.settle_down()
    round_of_marks(world)


def defer_long(world: World) -> None:
    """An entry is deferred for an hour: it rests in the log alone."""
    message = take_one(world)
    world.settle(message, message.entries, Area.DEFERRED, 3600.0)
    world.settle_down()


def compact(world: World) -> None:
    """Segments in which little lives are emptied: what lives there is written again, and they are free."""
    defer_long(world)
    for _ in range(SEVERAL):
        use_segments(world)
    running = world.server.running
    for _ in range(SEVERAL):
        running.write_behind()
        world.settle_down()
        world.store(1, 100)  # a batch that takes moves along


def settle_while_compacting(world: World) -> None:
    """An outcome is asked for while its entry is being moved."""
    message = take_one(world)
    for _ in range(SEVERAL):
        use_segments(world)
    world.server.running.write_behind()
    for _ in range(SEVERAL):
        world.server.step()
    world.settle(message, message.entries, None)
    world.settle_down()
    round_of_marks(world)


def in_a_round(area: Area | None) -> Operation:
    """An outcome becomes durable while a round is under way."""

    def act(world: World) -> None:
        message = take_one(world)
        world.server.running.write_behind()
        world.server.step()
        world.settle(message, message.entries, area)
        world.settle_down()

    return act


def round_at_once(world: World) -> None:
    """A round begins while outcomes are asked for, and not durable."""
    message = take_one(world)
    world.settle(message, message.entries, None)
    world.server.running.write_behind()
    world.settle_down()


def fail_marks_in_the_current_one(world: World) -> None:
    """Every sync of the log fails for a while, in a round and beside it."""
    message = take_one(world)
    world.fail_all(lambda act: act.kind is Kind.SYNC and act.path.startswith("/q/log/"))
    world.settle(message, message.entries, None)
    for _ in range(20):
        world.server.running.write_behind()
        world.server.step()
    world.disk.fault = None
    world.clock.advance(4)
    world.settle_down()
    round_of_marks(world)


def fail_two_segments(world: World) -> None:
    """Barriers of two segments fail, one after the other; then rounds remove both."""
    for _ in range(2):
        world.store(1, 5000)
        world.fail_next(lambda act: act.kind is Kind.SYNC and act.path.startswith("/q/log/"))
        world.store(1, 5000)
    for _ in range(3):
        round_of_marks(world)
        world.store()


def fail_a_mark(world: World) -> None:
    """The sync of a segment with new marks fails: what lives there is moved."""
    world.store(1, 5000)
    settle_one(world, None)
    world.settle_down()
    for _ in range(SEVERAL):
        world.store(1, 5000)
    _fail_in_a_round(world, "/q/log/")
    round_of_marks(world)


def fail_positions(world: World) -> None:
    _fail_in_a_round(world, "/q/positions")
    round_of_marks(world)


def _fail_in_a_round(world: World, path: str) -> None:
    world.fail_next(lambda act: act.kind is Kind.SYNC and act.path.startswith(path))
    round_of_marks(world)
    world.disk.fault = None


def restart_without_a_segment(world: World) -> None:
    """The disk is full, no free segment is left, and the process is killed, twice; then mail goes out."""
    for _ in range(2):
        world.disk.fault = partial(_no_space, world, len(world.disk.acts))
        for path in world.disk.paths((".mqj",)):
            if "/ready-" in path:
                world.disk.unlink(path)
        world.restart()
    for message in world.take(lambda _: True, 1, (Area.INCOMING,)):
        world.settle(message, message.entries, None)
    world.settle_down()
    world.disk.fault = None
    world.clock.advance(4)  # when segments are made again
    world.settle_down()
    world.store(1, 5000)


def _no_space(world: World, begin: int, act: Act) -> OSError | None:
    """There is room for nothing until something is cut, and then for one segment."""
    acts = world.disk.acts[begin:]
    cut = next((at for at, one in enumerate(acts) if one.kind is Kind.TRUNCATE), len(acts))
    is_used = any(one.kind is Kind.CREATE for one in acts[cut : len(acts) - 1])
    is_segment = "/ready-" in act.path and not act.data.strip(b"\0")  # zeros: it is being made
    is_new = act.kind is Kind.WRITE and (is_segment or act.path.endswith(".new"))
    return OSError(errno.ENOSPC, "injected") if is_new and (cut == len(acts) or is_used) else None


def hang_for_ever(world: World) -> None:
    """A delivery hangs through rounds, and is not over."""
    take_one(world)
    for _ in range(2):
        round_of_marks(world)
        world.store(1, 5000)
    use_segments(world)


def hang(world: World) -> None:
    """A delivery hangs through rounds: it gets a start record, and a mark."""
    message = take_one(world)
    if len(message.entries) > 1:
        raise DoesNotApply
    for _ in range(2):
        round_of_marks(world)
        world.store(1, 5000)
    use_segments(world)
    world.settle(message, message.entries, None)
    world.settle_down()
    round_of_marks(world)


def moved_while_it_hangs(end: Callable[[World, Message], None], moments: Sequence[int]) -> Operation:
    """A delivery hangs until its envelope is written again, so that the suffix stays short. Of two recipients one is
    delivered before. `end`: what happens then, after so many steps from where the move is asked for; one after the other."""

    def act(world: World) -> None:
        for steps in moments:
            message = _move_what_hangs(world)
            for _ in range(steps):
                world.server.step()
            end(world, message)
            world.settle_down()
            world.store(1, 5000)
            round_of_marks(world)
            for other in world.take(lambda _: True, ANY, (Area.INCOMING, Area.DEFERRED)):
                world.settle(other, other.entries, None)
            world.settle_down()

    return act


def _move_what_hangs(world: World) -> Message:
    """Begin the batch that takes along the move of an envelope with a start record; one of its two entries has left it."""
    world.store(2)
    own = max(queue_id.spool_id for queue_id in world.live())
    settle_one(world, None, lambda queue_id: queue_id.spool_id == own)
    message = take_one(world, lambda queue_id: queue_id.spool_id == own)
    for _ in range(2):
        round_of_marks(world)
        world.store(1, 5000)
    moves = world.server.running.moves  # type: ignore[attr-defined]  # the log's
    with instead("SUFFIX_BYTES", 1, rounds_module):
        round_of_marks(world)
    assert moves(), "nothing hangs"
    world.commit([world.send()])  # a batch that takes the move along
    world.server.running.write_behind()
    return message


def let_it_hang(world: World, message: Message) -> None:
    """It is not over, whatever comes."""


def settle_it(area: Area | None) -> Callable[[World, Message], None]:
    """Its outcome is asked for."""

    def end(world: World, message: Message) -> None:
        world.settle(message, message.entries, area)

    return end


def restart_then(world: World, _: Message) -> None:
    """The process is killed and started again; its round comes before it is taken once more."""
    world.restart()
    round_of_marks(world)
