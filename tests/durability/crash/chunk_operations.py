"""What the one-file-a-message queue alone does: preprocessing, numbers that come back, and what goes wrong in its files."""

from __future__ import annotations

from mailismus.queue.interface import Area
from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.operations import DoesNotApply, Operation, settle_one, take_one
from tests.durability.crash.world import World


def preprocess(world: World) -> None:
    """Messages that stay move to S5."""
    if not world.live():
        raise DoesNotApply
    world.server.running.write_behind()
    world.settle_down()


def give_a_number_again(world: World) -> None:
    """A message goes, and the number of its files is the next one's."""
    world.store(2)
    preprocess(world)
    numbers = _numbers(world)
    for message in world.take(lambda _: True, 2, (Area.INCOMING,)):
        world.settle(message, message.entries, None)
    world.settle_down()
    world.store(3)
    assert numbers & _numbers(world), "no number came back"


def _numbers(world: World) -> set[str]:
    return {
        path.rpartition("/")[2] for path in world.disk.paths(("",)) if path.startswith("/q/mess/") and path.count("/") == 4
    }


def fail_a_directory(world: World) -> None:
    """The names of a new message can't be made durable."""
    world.fail_next(lambda act: act.kind is Kind.SYNC_DIRECTORY and act.path == "/q/intd")
    world.store(2)
    assert world.disk.fault is None


def fail_a_name_in_todo(world: World) -> None:
    """The commit itself can't be made durable: it may be found after a crash."""
    world.fail_next(lambda act: act.kind is Kind.SYNC_DIRECTORY and act.path == "/q/todo")
    world.store(2)
    assert world.disk.fault is None
    world.store()


def _is_barrier(act: Act) -> bool:
    return act.kind in (Kind.SYNC, Kind.SYNC_DIRECTORY, Kind.SYNC_FILE_SYSTEM)


def fail_a_change(area: Area | None) -> Operation:
    """Each barrier of a change of a message that is in the queue fails in turn."""

    def operation(world: World) -> None:
        for skipped in range(4):
            if not any(seen.area in (Area.INCOMING, Area.DEFERRED) for seen in world.live().values()):
                if not skipped:
                    raise DoesNotApply
                world.store(3)
            left = skipped

            def fault(act: Act) -> OSError | None:
                nonlocal left
                if not _is_barrier(act):
                    return None
                left -= 1
                if left >= 0:
                    return None
                world.disk.fault = None
                return OSError(5, "injected")

            message = take_one(world)
            world.disk.fault = fault
            world.settle(message, message.entries, area)
            world.settle_down()
            world.disk.fault = None
            if skipped == 1:
                preprocess(world) if world.live() else None

    return operation


def retry_often(world: World) -> None:
    """So many lines of one recipient that its file is written anew."""
    for _ in range(4):
        settle_one(world, Area.DEFERRED)
        world.settle_down()
