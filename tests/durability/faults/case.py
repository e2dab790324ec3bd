"""One case: the whole workload on a disk on which one call fails, and everything that must hold afterwards."""

from __future__ import annotations

import enum
import gc
from collections.abc import Callable
from typing import Protocol

import attrs
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from tests.durability.faults.disk import Fault, FaultyDisk, Span
from tests.durability.faults.world import LARGE, Broken, World
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject

WELL_S = 10.0
"""Seconds after a fault is over within which mail is accepted again."""


def workload(world: World) -> None:
    """Everything that a queue does."""
    world.start_at_last()
    world.store(1)
    world.store(3)
    world.store(2, LARGE + 50_000)
    world.deliver()
    world.deliver()
    world.defer()  # young
    world.store(3)
    world.checkpoint()
    world.store(1)
    world.deliver(limit=2)
    world.fail()
    world.defer(limit=2)  # resting
    world.report()
    world.store(2)
    world.checkpoint()  # appends to an open cluster
    world.later(2000)
    world.defer(Area.DEFERRED, 2)
    world.deliver(Area.DEFERRED)
    world.burst(11, 95_000)  # begins a segment
    world.deliver(limit=9)
    world.checkpoint()
    world.defer()
    world.store(3)
    world.checkpoint_in_vain("sync")
    world.store_in_vain()
    world.deliver()
    world.store(2)
    world.checkpoint_in_vain("write")
    world.store_in_vain(LARGE + 50_000)
    world.stop()
    world.start_at_last()  # uses a segment again
    world.store(2, LARGE + 50_000)
    world.deliver(limit=6)
    world.later(4000)
    world.fail(Area.DEFERRED, 2)
    world.checkpoint()
    world.kill()
    world.start_at_last()
    world.store(1)
    world.report()
    world.later(73 * 3600)  # expires
    world.defer(Area.INCOMING, 3)
    world.defer(Area.DEFERRED, 50)
    world.report()
    world.deliver(limit=50)
    world.checkpoint()
    world.store(3)
    world.defer(limit=2)
    world.checkpoint()


class MakeWorld(Protocol):
    """Makes a world."""

    def __call__(self, subject: Subject, *, hardlinks: bool, disk: FaultyDisk | None) -> World:
        """Over this disk; None: over a new one."""


def _nothing_more(world: World) -> None:
    """All is looked at already."""


@attrs.frozen
class Scenario:
    """What goes on while calls fail. `after`: what else must hold, on a disk that works; `stage`: at which stage calls fail;
    empty: at all."""

    world: MakeWorld = World
    workload: Callable[[World], None] = workload
    after: Callable[[World], None] = _nothing_more
    stage: str = ""


MAIL = Scenario()
"""Mail comes and goes."""


@attrs.define
class Seen:
    """What the outside saw of a fault."""

    refusals: set[int] = attrs.field(factory=set)
    start_errors: set[int] = attrs.field(factory=set)
    unreadable: bool = False
    lost_content: bool = False
    """A content could not be read in the journal for so long that its message was moved without it."""
    logged: set[str] = attrs.field(factory=set)
    """What the log says, warnings and worse."""
    act: str = ""
    path: str = ""

    @property
    def words(self) -> str:
        """For the table."""
        found = [str(code) for code in sorted(self.refusals)]
        found += [f"start refused ({code})" for code in sorted(self.start_errors)]
        if self.unreadable:
            found.append("deferred")
        if self.lost_content:
            found.append("content lost")
        return ", ".join(found) or "goes on"


@implementer(ILogObserver)
class Log:
    """What is logged meanwhile. *Failures* are never expected; warnings are."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.warnings: set[str] = set()

    def __call__(self, event: LogEvent) -> None:
        if "log_failure" in event:
            failure = event["log_failure"]
            self.failures.append(f"{event.get('log_format')} {failure.getTraceback()[-1500:]}")
        elif event.get("log_level") is not None and event["log_level"].name in ("warn", "error", "critical"):
            self.warnings.add(str(event.get("log_format")))

    def __enter__(self) -> Log:
        globalLogPublisher.addObserver(self)
        return self

    def __exit__(self, *exc: object) -> None:
        globalLogPublisher.removeObserver(self)


class Ending(enum.Enum):
    """How a lasting fault ends."""

    HEALED = "the disk works again"
    CUT = "the power fails, and another disk holds what this one held"


def run(
    fault: Fault | None,
    subject: Subject = CLUSTERED,
    *,
    hardlinks: bool = False,
    ending: Ending = Ending.HEALED,
    scenario: Scenario = MAIL,
) -> tuple[Seen, FaultyDisk]:
    """Run the workload with this fault. Raises `Broken` (or whatever came out of the server) when something is."""
    disk = FaultyDisk()
    disk.plan = fault
    world = scenario.world(subject, hardlinks=hardlinks, disk=disk)
    seen = Seen()
    with Log() as log:
        scenario.workload(world)
        if fault is not None and disk.met is None:
            return seen, disk
        if fault is None or fault.span is not Span.DISK:
            others_go_on(world, fault)
        if ending is Ending.HEALED:
            disk.heal()
            mail_is_accepted_again(world)
            quiet(world)
        seen.refusals = set(world.refusals)
        seen.unreadable = world.unreadable > 0
        seen.start_errors = {error.status for error in world.start_errors}
        seen.logged = log.warnings
        seen.act, seen.path = disk.met or ("", "")
        world.cut()
        disk.heal()
        is_lasting = fault is not None and fault.span is Span.PLACE
        may_lose_content = subject is CLUSTERED and seen.act == "read" and is_lasting
        seen.lost_content = nothing_is_lost(world, may_lose_content=may_lose_content)
        if not seen.lost_content:
            scenario.after(world)
            nothing_stays(world)
        if disk.synced_again:
            raise Broken(f"synced again as if well: {disk.synced_again}")
        gc.collect()
    if log.failures:
        raise Broken("a failure was logged: " + log.failures[0])
    return seen, disk


def others_go_on(world: World, fault: Fault | None) -> None:
    """One place that fails stops nobody else, but where it is a directory that new names must go to."""
    path = world.disk.met[1] if world.disk.met else ""
    is_file = world.subject.is_commit_barrier(path) or world.subject.is_leftover(path)
    if fault is None or fault.span is Span.ONCE or is_file:
        mail_is_accepted_again(world, numbers_go_on=True)
        deliver_something(world)


def mail_is_accepted_again(world: World, *, numbers_go_on: bool = False) -> None:
    """`numbers_go_on`: files of other programs get numbers of inodes meanwhile. A message that failed gives its number back,
    and the next one would meet the fault of a place at that number again."""
    waited = 0.0
    while not world.store(1):
        if numbers_go_on:
            world.disk.numbers.take()
        world.settle_down(0.5)
        waited += 0.5
        if waited > WELL_S:
            raise Broken(f"no mail is accepted any more: {world.refusals[-1]}")


def deliver_something(world: World) -> None:
    before = len(world.gone)
    for _ in range(100):
        world.deliver(limit=5)
        if len(world.gone) > before:
            return
        world.settle_down(0.5)
    raise Broken("nothing is delivered any more")


def quiet(world: World) -> None:
    """A minute later nothing is open, under way, or in doubt."""
    world.later(60)
    for _ in range(3):  # a round may be under way at any moment, and leave a worker something to close
        world.settle_down(1)
        if not world.idle_files() and not world.unrest():
            break
    manager = world.manager
    assert manager is not None
    if manager.in_doubt:
        raise Broken(f"{manager.in_doubt} outcomes are not durable")
    if files := world.idle_files():
        raise Broken(f"open files: {files}")
    if unrest := world.unrest():
        raise Broken(unrest)


def nothing_is_lost(world: World, *, may_lose_content: bool = False) -> bool:
    """After a power cut and a start on a disk that works. Return whether a content is lost, where it may be: at a place that
    never could be read. Its bytes lie in the journal then, for people alone."""
    lost_content = False
    for _ in range(2):
        if not world.start():
            raise Broken(f"it does not start: {world.start_errors[-1]}")
        live = world.live()
        covered = world.covered(live)
        for spool_id, letter in world.letters.items():
            numbers = {number for number in range(1, letter.count + 1) if QueueId(spool_id, number) in live}
            over = {number for number in range(1, letter.count + 1) if QueueId(spool_id, number) in world.gone | covered}
            missing = set(range(1, letter.count + 1)) - numbers - over
            if letter.is_acknowledged and missing:
                raise Broken(f"lost: {spool_id:016X} {sorted(missing)} of {letter.count}")
            if not letter.is_acknowledged and missing and numbers:
                raise Broken(f"half a message: {spool_id:016X}")
            if numbers & over and not world.was_in_doubt:
                raise Broken(f"settled and live: {spool_id:016X} {sorted(numbers & over)}")
            if numbers:
                try:
                    if world.read(spool_id) != letter.content:
                        raise Broken("other bytes than were sent")
                except StorageError as error:
                    is_kept = any(letter.content in inode.data for inode in world.disk.names.values())
                    if not (may_lose_content and is_kept):
                        raise Broken(f"a content is lost: {spool_id:016X}") from error
                    lost_content = True
        for queue_id, entry in live.items():
            if queue_id.spool_id not in world.letters:
                raise Broken("an entry that nobody sent")
            if entry.attempts < world.tried.get(queue_id, 0) and not world.was_in_doubt:
                raise Broken(f"a retry is undone: {queue_id}")
        world.cut()
    return lost_content


def nothing_stays(world: World) -> None:
    """When all is over, and one more start has looked, no file is left; a fault never looks like damage."""
    for _ in range(2):
        world.start()
        world.settle_down(4)  # a sweep takes some hundred turns
        world.later(100)
        world.was_in_doubt = True  # what was in doubt may be delivered again
        while world.take_all():
            pass
        world.later(20)
        world.stop()
    left = [name for name in world.disk.names if world.subject.is_leftover(name)]
    if left:
        raise Broken(f"left: {left}")
    if corrupt := [name for name in world.disk.names if name.startswith("/q/corrupt/")]:
        raise Broken(f"looks like damage: {corrupt}")


def rehearse(subject: Subject = CLUSTERED, *, hardlinks: bool = False, scenario: Scenario = MAIL) -> FaultyDisk:
    """The workload with nothing that fails: `calls` tells what can."""
    world = scenario.world(subject, hardlinks=hardlinks, disk=None)
    scenario.workload(world)
    return world.disk
