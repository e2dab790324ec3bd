"""The operations that workloads are made of.

An operation brings about what it needs if that says something new (a cluster to append to); else it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.journal.pool import READY
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Message
from tests.durability.crash.acts import BYTES, Act, Kind
from tests.durability.crash.reporting import Reporting
from tests.durability.crash.server import FEW_FILES, LARGE
from tests.durability.crash.world import ANY, World

Operation = Callable[[World], None]

TO_DELIVER = (Area.INCOMING, Area.DEFERRED)
LONGER_THAN_RETRIES_S = 4 * 86400.0


class DoesNotApply(Exception):
    """There is nothing here that this operation could be done to."""


def _take_one(world: World, is_wanted: Callable[[QueueId], bool] = lambda _: True) -> Message:
    """The oldest entry that is wanted."""
    taken = world.take(is_wanted, 1, TO_DELIVER)
    if not taken:
        raise DoesNotApply
    return taken[0]


def _settle_one(world: World, area: Area | None, is_wanted: Callable[[QueueId], bool] = lambda _: True) -> None:
    message = _take_one(world, is_wanted)
    world.settle(message, message.entries, area)


# the fifteen


def store(world: World) -> None:
    world.store()


def store_three(world: World) -> None:
    world.store(3)


def store_large(world: World) -> None:
    world.store(2, 2 * LARGE)


def deliver(world: World) -> None:
    _settle_one(world, None)
    world.settle_down()


def retry_young(world: World) -> None:
    _settle_one(world, Area.DEFERRED, world.is_young)
    world.settle_down()


def retry_resting(world: World) -> None:
    if not world.live():
        world.store(2)
    if all(world.is_young(queue_id) for queue_id in world.live()):
        checkpoint(world)
    _settle_one(world, Area.DEFERRED, lambda queue_id: not world.is_young(queue_id))
    world.settle_down()


def bounce(world: World) -> None:
    _settle_one(world, Area.BOUNCES)
    world.settle_down()


def expire(world: World) -> None:
    """Its last retry comes long after; what is young has been written behind by then."""
    if not any(seen.area in TO_DELIVER for seen in world.live().values()):
        raise DoesNotApply
    world.clock.advance(LONGER_THAN_RETRIES_S)
    world.settle_down()
    _settle_one(world, Area.BOUNCES)
    world.settle_down()


def report(world: World) -> None:
    """All bounces there are."""
    begin_reporting(world).finish()


def begin_reporting(world: World, attachmsg: int = 4000) -> Reporting:
    """Where there are bounces; else of two recipients of a message."""
    if not any(seen.area is Area.BOUNCES for seen in world.live().values()):
        if not any(seen.area in TO_DELIVER for seen in world.live().values()):
            world.store(3)
        for message in world.take(lambda _: True, 2, TO_DELIVER):
            world.settle(message, message.entries, Area.BOUNCES)
        world.settle_down()
    return Reporting(world, attachmsg)


def checkpoint(world: World) -> None:
    world.server.queue.checkpoints.run()
    world.settle_down()


def append(world: World) -> None:
    """To the open cluster of incoming mail."""
    if (Area.INCOMING, "") not in world.server.queue.checkpoints._grows:
        world.store()
        checkpoint(world)
    world.store()
    checkpoint(world)


def unlink_done(world: World) -> None:
    """A cluster all of whose lines are over."""
    if all(world.is_young(queue_id) for queue_id in world.live()):
        world.store()
        checkpoint(world)
    for message in world.take(lambda queue_id: not world.is_young(queue_id), ANY, tuple(Area)):
        world.settle(message, message.entries, None)
    world.settle_down()
    checkpoint(world)


def reuse_segment(world: World) -> None:
    """Fill segments and empty them, until one is used again."""
    for _ in range(20):
        _fill_a_segment(world)
        begun = _begun(world)
        if begun.count(begun[-1]) > 1:
            return
        checkpoint(world)
    raise AssertionError("no segment is ever used again")


def _fill_a_segment(world: World) -> None:
    """With mail that comes and goes."""
    sent = [world.send(1, LARGE - 200) for _ in range(4)]
    spool_ids = {submission.draft.spool_id for submission in sent}
    world.commit(sent)
    world.settle_down()
    for message in world.take(lambda queue_id: queue_id.spool_id in spool_ids, ANY, TO_DELIVER):
        world.settle(message, message.entries, None)
    world.settle_down()


def _is_header(act: Act) -> bool:
    return act.kind is Kind.WRITE and act.data.startswith(b"MQJ-SEGM")


def _begun(world: World) -> list[int]:
    """The files that were segments, in order."""
    return [act.inode for act in world.disk.acts if _is_header(act)]


def _is_of_journal(act: Act) -> bool:
    """Whether it is a barrier of a batch."""
    return act.kind is Kind.SYNC and act.path.startswith("/q/journal")


def _is_elsewhere(act: Act) -> bool:
    """Whether it is any other barrier."""
    return act.kind not in BYTES and not act.path.startswith("/q/journal")


def fail_a_barrier(world: World) -> None:
    world.fail_next(_is_of_journal)
    world.store()


def restart(world: World) -> None:
    world.restart()


OPERATIONS: dict[str, Operation] = {
    "store": store,
    "store three": store_three,
    "store a large one": store_large,
    "deliver": deliver,
    "retry a young one": retry_young,
    "retry a resting one": retry_resting,
    "bounce": bounce,
    "report": report,
    "expire": expire,
    "checkpoint": checkpoint,
    "append": append,
    "unlink a done one": unlink_done,
    "reuse a segment": reuse_segment,
    "fail a barrier": fail_a_barrier,
    "restart": restart,
}
"""Of these all workloads of up to three are looked at."""


# what happens at once


def _seal(world: World) -> None:
    """A checkpoint whose record has gone into the journal and is not durable yet."""
    checkpoints = world.server.queue.checkpoints
    checkpoints.run()
    world.server.wait_until(lambda: checkpoints.moving is None or checkpoints.moving.is_sealed)


def _while_moved(area: Area | None) -> Operation:
    """A settle that becomes durable while its line is being moved."""

    def act(world: World) -> None:
        message = _take_one(world)
        world.server.queue.checkpoints.run()
        world.server.step()
        world.settle(message, message.entries, area)
        world.settle_down()

    return act


def deliver_while_moved_apart(world: World) -> None:
    """The same, with a batch for each item of the journal: the places of what is late, and the checkpoint's record."""
    commits = world.server.queue.commits
    commits._gather, gather = 1, commits._gather
    _while_moved(None)(world)
    commits._gather = gather


def _when_sealed(area: Area | None) -> Operation:
    def act(world: World) -> None:
        message = _take_one(world)
        _seal(world)
        world.settle(message, message.entries, area)
        world.settle_down()

    return act


def _checkpoint_in_the_gap(world: World) -> None:
    """It begins when a batch is durable and the reactor has not heard of it."""
    writer = world.server.opened.writer
    before = writer.sequence
    world.server.queue.commits.hurry()
    world.server.wait_until(lambda: writer.sequence > before)
    checkpoint(world)


def store_in_the_gap(world: World) -> None:
    world.commit([world.send(3)])
    _checkpoint_in_the_gap(world)


def _in_the_gap(area: Area | None) -> Operation:
    def act(world: World) -> None:
        _settle_one(world, area)
        _checkpoint_in_the_gap(world)

    return act


def fail_a_checkpoint(world: World) -> None:
    """Its file work fails."""
    world.fail_all(_is_elsewhere)
    checkpoint(world)
    world.disk.fault = None
    world.clock.advance(4)


def fail_a_record(world: World) -> None:
    """The barrier of a checkpoint's record fails."""
    _seal(world)
    world.fail_next(_is_of_journal)
    checkpoint(world)
    world.clock.advance(4)


def fail_a_record_and_deliver(world: World) -> None:
    """And of a settle that names a place of it."""
    message = _take_one(world)
    _seal(world)
    world.settle(message, message.entries, None)
    world.fail_next(_is_of_journal)
    checkpoint(world)
    world.clock.advance(4)


def fail_twice(world: World) -> None:
    """The barrier of a batch, and that of what is said again."""
    if not any(map(world.is_young, world.live())):
        raise DoesNotApply
    world.fail_all(_is_of_journal)
    world.commit([world.send(2)])
    world.server.wait_until(lambda: world.server.queue.commits.failures >= 2)
    world.disk.fault = None
    world.clock.advance(4)
    world.settle_down()


def fail_a_settle(world: World) -> None:
    """The barrier of a delivery's outcome fails: it is said again."""
    message = _take_one(world)
    world.settle(message, message.entries, None)
    world.fail_next(_is_of_journal)
    world.settle_down()


def fail_a_large_one(world: World) -> None:
    """Its own barrier fails."""
    world.fail_next(lambda act: act.kind is Kind.SYNC and act.path.startswith("/s/"))
    world.store(2, 2 * LARGE)


def refuse_a_large_one(world: World) -> None:
    """The barrier of its lines fails: the disk may still say that it was accepted."""
    world.fail_next(_is_of_journal)
    world.store(2, 2 * LARGE)


def report_with_all_of_it(world: World) -> None:
    """The report is a large message itself."""
    begin_reporting(world, attachmsg=0).finish()


def report_while_moved(world: World) -> None:
    reporting = begin_reporting(world)
    world.server.queue.checkpoints.run()
    reporting.finish()


def report_while_its_barrier_fails(world: World) -> None:
    reporting = begin_reporting(world)
    world.fail_next(_is_of_journal)
    reporting.finish()
    assert world.disk.fault is None


def store_with_words(world: World) -> None:
    """Files of format 2, with what is in files of format 1 beside it."""
    words = b"ENVID=some%20thing RET=HDRS", b"notify=NEVER x-unknown=", None
    world.commit([world.send(2, words=words), world.send()])
    world.settle_down()


def store_many(world: World) -> None:
    """More files at the next checkpoint than are synced one by one."""
    world.commit([world.send() for _ in range(FEW_FILES + 1)])
    world.settle_down()


def deliver_all(world: World) -> None:
    taken = world.take(lambda _: True, ANY, TO_DELIVER)
    if not taken:
        raise DoesNotApply
    for message in taken:
        world.settle(message, message.entries, None)
    world.settle_down()


def restart_at_once(world: World) -> None:
    """Killed while a batch is on its way: the journal's end may be in the page cache alone."""
    before = len(world.disk.acts)
    world.commit([world.send(2)])
    world.server.wait_until(lambda: any(act.kind is Kind.SYNC for act in world.disk.acts[before:]))
    at = next(n for n, act in enumerate(world.disk.acts) if n >= before and act.kind is Kind.SYNC)
    assert at == len(world.disk.acts) - 1
    del world.disk.acts[at]
    world.restart()


def kill_the_first_start(world: World) -> None:
    """Killed at each of its first barriers in turn: what it has made is in the page cache alone."""
    if any(act.kind is Kind.MARK for act in world.disk.acts):
        raise DoesNotApply
    world.begin_anew(("/", "/q", "/s"))
    world.store()


def kill_at_a_segment(world: World) -> None:
    """Killed when a segment that is used again has got its new name, and its header not yet; then others are used."""
    is_killed = False
    for _ in range(20):
        begun = set(_begun(world))
        world.fail_next(lambda act, begun=begun: _is_header(act) and act.inode in begun)  # type: ignore[misc]  # bound at once
        world.commit([world.send(1, LARGE - 200) for _ in range(4)])
        world.server.wait_until(lambda: world.server.queue.commits.is_idle or world.disk.fault is None)
        is_killed = world.disk.fault is None
        world.disk.fault = None
        if is_killed:
            break
        deliver_all(world)
        checkpoint(world)
    assert is_killed
    world.restart()
    for _ in range(READY):
        world.store()
        _fill_a_segment(world)


MORE: dict[str, Operation] = {
    "deliver while moved": _while_moved(None),
    "retry while moved": _while_moved(Area.DEFERRED),
    "deliver while moved, batches apart": deliver_while_moved_apart,
    "deliver when sealed": _when_sealed(None),
    "retry when sealed": _when_sealed(Area.DEFERRED),
    "store in the gap": store_in_the_gap,
    "deliver in the gap": _in_the_gap(None),
    "retry in the gap": _in_the_gap(Area.DEFERRED),
    "fail a checkpoint": fail_a_checkpoint,
    "fail a record": fail_a_record,
    "fail a record and deliver": fail_a_record_and_deliver,
    "fail twice": fail_twice,
    "fail a settle": fail_a_settle,
    "fail a large one": fail_a_large_one,
    "refuse a large one": refuse_a_large_one,
    "report with all of it": report_with_all_of_it,
    "report while moved": report_while_moved,
    "report while its barrier fails": report_while_its_barrier_fails,
    "store with words": store_with_words,
    "store many": store_many,
    "deliver all": deliver_all,
    "restart at once": restart_at_once,
    "kill the first start": kill_the_first_start,
    "kill at a segment": kill_at_a_segment,
}
"""What happens at the same time, and what goes wrong."""

EVERY_OPERATION = OPERATIONS | MORE

NEEDS_YOUNG = ("retry a young one", "fail twice")
"""Those that do not apply where nothing is young."""

NEEDS_ANOTHER = (
    "deliver",
    "retry a young one",
    "bounce",
    "expire",
    "deliver while moved",
    "retry while moved",
    "deliver while moved, batches apart",
    "deliver when sealed",
    "retry when sealed",
    "deliver in the gap",
    "retry in the gap",
    "fail a record and deliver",
    "fail twice",
    "fail a settle",
    "deliver all",
)
"""Those that do not apply where there is nothing."""
