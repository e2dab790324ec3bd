"""The operations that workloads of every provider are made of, said by `queue.interface` alone.

An operation brings about what it needs if that says something new; else it does not apply. What one provider alone does is
beside its own (`clustered_operations`); which of them make up workloads: `catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Message
from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.reporting import Reporting
from tests.durability.crash.world import ANY, World
from tests.durability.subjects.interface import LARGE

Operation = Callable[[World], None]

TO_DELIVER = (Area.INCOMING, Area.DEFERRED)
OF_ACTS = (Area.HELD, Area.DELETED)
LONGER_THAN_RETRIES_S = 4 * 86400.0
RETRY_S = 600.0
REDIRECTED = b"to=A1:other@there.example"
MANY = 5
"""Messages in one batch that are many, to the test sizes of every provider."""


class DoesNotApply(Exception):
    """There is nothing here that this operation could be done to."""


def take_one(world: World, is_wanted: Callable[[QueueId], bool] = lambda _: True) -> Message:
    """The oldest entry that is wanted."""
    taken = world.take(is_wanted, 1, TO_DELIVER)
    if not taken:
        raise DoesNotApply
    return taken[0]


def settle_one(world: World, area: Area | None, is_wanted: Callable[[QueueId], bool] = lambda _: True) -> None:
    message = take_one(world, is_wanted)
    world.settle(message, message.entries, area)


def store(world: World) -> None:
    world.store()


def store_three(world: World) -> None:
    world.store(3)


def store_large(world: World) -> None:
    world.store(2, 2 * LARGE)


def deliver(world: World) -> None:
    settle_one(world, None)
    world.settle_down()


def retry(world: World) -> None:
    settle_one(world, Area.DEFERRED)
    world.settle_down()


def bounce(world: World) -> None:
    settle_one(world, Area.BOUNCES)
    world.settle_down()


def expire(world: World) -> None:
    """Its last retry comes long after; what is young has been written behind by then."""
    if not any(seen.area in TO_DELIVER for seen in world.live().values()):
        raise DoesNotApply
    world.clock.advance(LONGER_THAN_RETRIES_S)
    world.settle_down()
    settle_one(world, Area.BOUNCES)
    world.settle_down()


def hold(world: World) -> None:
    """One entry of those that are there, whether it is due or not."""
    act_on(world, TO_DELIVER, Area.HELD)


def delete_all(world: World) -> None:
    """All entries in one commit; they are kept."""
    act_on(world, (*TO_DELIVER, Area.BOUNCES, Area.HELD), Area.DELETED, ANY)


def redirect(world: World) -> None:
    """One entry stays where it is and goes to another recipient; one that does already goes to its own again."""
    claimed = world.claim((*TO_DELIVER, Area.HELD), 1)
    if not claimed:
        raise DoesNotApply
    for message in claimed:
        for entry in message.entries:
            world.settle(message, [entry], entry.area, 0.0, b"" if entry.words == REDIRECTED else REDIRECTED)
    world.settle_down()


def act_on(
    world: World, areas: Sequence[Area], area: Area | None, most: int = 1, delay_s: float = LONGER_THAN_RETRIES_S
) -> None:
    """What an act of an administrator makes of some entries."""
    claimed = world.claim(areas, most)
    if not claimed:
        raise DoesNotApply
    for message in claimed:
        world.settle(message, message.entries, area, delay_s)
    world.settle_down()


def undo(world: World) -> None:
    """What is held or deleted goes back, to wait as after an attempt; else one entry is deleted before. A wait beyond all
    retries would be one of a wrong clock, which the queue makes shorter."""
    if not any(seen.area in OF_ACTS for seen in world.live().values()):
        act_on(world, TO_DELIVER, Area.DELETED)
    act_on(world, OF_ACTS, Area.DEFERRED, delay_s=RETRY_S)


def remove_deleted(world: World) -> None:
    """The time is over for which it was kept; where nothing was deleted, one entry is before."""
    if not any(seen.area is Area.DELETED for seen in world.live().values()):
        act_on(world, TO_DELIVER, Area.DELETED)
    world.clock.advance(LONGER_THAN_RETRIES_S)
    world.settle_down()
    for message in world.take(lambda _: True, ANY, (Area.DELETED,)):
        world.settle(message, message.entries, None)
    world.settle_down()


def report(world: World) -> None:
    """All bounces there are."""
    begin_reporting(world).finish()


def begin_reporting(world: World, attachmsg: int = 4000) -> Reporting:
    """Where there are bounces; else of two recipients of a message."""
    if not any(seen.area is Area.BOUNCES for seen in world.live().values()):
        if not any(seen.area in TO_DELIVER for seen in world.live().values()):
            world.store(3)
        taken = world.take(lambda _: True, 2, TO_DELIVER)
        if not taken:  # all of it is out
            raise DoesNotApply
        for message in taken:
            world.settle(message, message.entries, Area.BOUNCES)
        world.settle_down()
    return Reporting(world, attachmsg)


def is_commit_barrier(world: World) -> Callable[[Act], bool]:
    """Tells whether an act is a barrier that a 250 waits for."""
    return lambda act: act.kind is Kind.SYNC and world.subject.is_commit_barrier(act.path)


def fail_a_barrier(world: World) -> None:
    world.fail_next(is_commit_barrier(world))
    world.store()


def restart(world: World) -> None:
    world.restart()


def fail_a_settle(world: World) -> None:
    """The barrier of a delivery's outcome fails: it is said again."""
    message = take_one(world)
    world.settle(message, message.entries, None)
    world.fail_next(is_commit_barrier(world))
    world.settle_down()
    world.disk.fault = None  # a provider may need no barrier for it


def refuse_a_large_one(world: World) -> None:
    """The barrier of its lines fails: the disk may still say that it was accepted."""
    world.fail_next(is_commit_barrier(world))
    world.store(2, 2 * LARGE)


def report_with_all_of_it(world: World) -> None:
    """The report is a large message itself."""
    begin_reporting(world, attachmsg=0).finish()


def report_while_its_barrier_fails(world: World) -> None:
    reporting = begin_reporting(world)
    world.fail_next(is_commit_barrier(world))
    reporting.finish()
    assert world.disk.fault is None


def store_with_words(world: World) -> None:
    """Files of format 2, with what is in files of format 1 beside it."""
    words = b"ENVID=some%20thing RET=HDRS", b"notify=NEVER x-unknown=", None
    world.commit([world.send(2, words=words), world.send()])
    world.settle_down()


def store_many(world: World) -> None:
    """More files at the next checkpoint than are synced one by one."""
    world.commit([world.send() for _ in range(MANY)])
    world.settle_down()


def deliver_all(world: World) -> None:
    taken = world.take(lambda _: True, ANY, TO_DELIVER)
    if not taken:
        raise DoesNotApply
    for message in taken:
        world.settle(message, message.entries, None)
    world.settle_down()


def kill_the_first_start(world: World) -> None:
    """Killed at each of its first barriers in turn: what it has made is in the page cache alone."""
    if any(act.kind is Kind.MARK for act in world.disk.acts):
        raise DoesNotApply
    world.begin_anew(("/", "/q", "/s"))
    world.store()
