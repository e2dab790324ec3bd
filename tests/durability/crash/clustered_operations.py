"""The operations of the clustered provider alone: checkpoints, clusters, segments, and what happens between their steps."""

from __future__ import annotations

from mailismus.journal.pool import READY
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.durability.crash.acts import BYTES, Act, Kind
from tests.durability.crash.operations import (
    TO_DELIVER,
    DoesNotApply,
    Operation,
    begin_reporting,
    deliver_all,
    settle_one,
    take_one,
)
from tests.durability.crash.world import ANY, World
from tests.durability.subjects.clustered import ClusteredRunning
from tests.durability.subjects.interface import LARGE


def queue_of(world: World) -> ClusteredQueue:
    """The queue, as the provider that it is."""
    queue = world.server.queue
    assert isinstance(queue, ClusteredQueue)
    return queue


def is_young(world: World, queue_id: QueueId) -> bool:
    """Whether the entry's durable copy is in the journal."""
    message = queue_of(world).ledger.memtable.messages.get(queue_id.spool_id)
    return message is not None and queue_id.number in message.entries


def retry_young(world: World) -> None:
    settle_one(world, Area.DEFERRED, lambda queue_id: is_young(world, queue_id))
    world.settle_down()


def retry_resting(world: World) -> None:
    if not world.live():
        world.store(2)
    if all(is_young(world, queue_id) for queue_id in world.live()):
        checkpoint(world)
    settle_one(world, Area.DEFERRED, lambda queue_id: not is_young(world, queue_id))
    world.settle_down()


def checkpoint(world: World) -> None:
    queue_of(world).checkpoints.run()
    world.settle_down()


def append(world: World) -> None:
    """To the open cluster of incoming mail."""
    if (Area.INCOMING, "") not in queue_of(world).checkpoints.files.open_clusters:
        world.store()
        checkpoint(world)
    world.store()
    checkpoint(world)


def unlink_done(world: World) -> None:
    """A cluster all of whose lines are over."""
    if all(is_young(world, queue_id) for queue_id in world.live()):
        world.store()
        checkpoint(world)
    for message in world.take(lambda queue_id: not is_young(world, queue_id), ANY, tuple(Area)):
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


def _seal(world: World) -> None:
    """A checkpoint whose record has gone into the journal and is not durable yet."""
    checkpoints = queue_of(world).checkpoints
    checkpoints.run()
    world.server.wait_until(lambda: checkpoints.pending is None or checkpoints.pending.is_sealed)


def while_moved(area: Area | None) -> Operation:
    """A settle that becomes durable while its line is being moved."""

    def act(world: World) -> None:
        message = take_one(world)
        queue_of(world).checkpoints.run()
        world.server.step()
        world.settle(message, message.entries, area)
        world.settle_down()

    return act


def deliver_while_moved_apart(world: World) -> None:
    """The same, with a batch for each item of the journal: the places of what is late, and the checkpoint's record."""
    commits = queue_of(world).commits
    commits._gather, gather = 1, commits._gather
    while_moved(None)(world)
    commits._gather = gather


def when_sealed(area: Area | None) -> Operation:
    def act(world: World) -> None:
        message = take_one(world)
        _seal(world)
        world.settle(message, message.entries, area)
        world.settle_down()

    return act


def _checkpoint_in_the_gap(world: World) -> None:
    """It begins when a batch is durable and the reactor has not heard of it."""
    running = world.server.running
    assert isinstance(running, ClusteredRunning)
    writer = running.opened.writer
    before = writer.sequence
    queue_of(world).commits.hurry()
    world.server.wait_until(lambda: writer.sequence > before)
    checkpoint(world)


def store_in_the_gap(world: World) -> None:
    world.commit([world.send(3)])
    _checkpoint_in_the_gap(world)


def in_the_gap(area: Area | None) -> Operation:
    def act(world: World) -> None:
        settle_one(world, area)
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
    message = take_one(world)
    _seal(world)
    world.settle(message, message.entries, None)
    world.fail_next(_is_of_journal)
    checkpoint(world)
    world.clock.advance(4)


def fail_twice(world: World) -> None:
    """The barrier of a batch, and that of what is said again."""
    if not any(is_young(world, queue_id) for queue_id in world.live()):
        raise DoesNotApply
    world.fail_all(_is_of_journal)
    world.commit([world.send(2)])
    world.server.wait_until(lambda: queue_of(world).commits.failures >= 2)
    world.disk.fault = None
    world.clock.advance(4)
    world.settle_down()


def fail_a_large_one(world: World) -> None:
    """Its own barrier fails."""
    world.fail_next(lambda act: act.kind is Kind.SYNC and act.path.startswith("/s/"))
    world.store(2, 2 * LARGE)


def restart_at_once(world: World) -> None:
    """Killed while a batch is on its way: the journal's end may be in the page cache alone."""
    before = len(world.disk.acts)
    world.commit([world.send(2)])
    world.server.wait_until(lambda: any(act.kind is Kind.SYNC for act in world.disk.acts[before:]))
    at = next(n for n, act in enumerate(world.disk.acts) if n >= before and act.kind is Kind.SYNC)
    assert at == len(world.disk.acts) - 1
    del world.disk.acts[at]
    world.restart()


def report_while_moved(world: World) -> None:
    reporting = begin_reporting(world)
    queue_of(world).checkpoints.run()
    reporting.finish()


def kill_at_a_segment(world: World) -> None:
    """Killed when a segment that is used again has got its new name, and its header not yet; then others are used."""
    is_killed = False
    for _ in range(20):
        begun = set(_begun(world))
        world.fail_next(lambda act, begun=begun: _is_header(act) and act.inode in begun)  # type: ignore[misc]  # bound at once
        world.commit([world.send(1, LARGE - 200) for _ in range(4)])
        world.server.wait_until(lambda: queue_of(world).commits.is_idle or world.disk.fault is None)
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
