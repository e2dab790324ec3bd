"""What the log-structured provider alone does: rounds of marks, segments that are complete, and what goes wrong in them."""

from __future__ import annotations

from mailismus.queue.interface import Area
from tests.durability.crash.acts import Kind
from tests.durability.crash.operations import DoesNotApply, Operation, settle_one, take_one
from tests.durability.crash.world import World

SEVERAL = 3
"""Messages that fill a segment."""


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
