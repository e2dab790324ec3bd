"""Acts of an administrator on a disk that fails: the world with acts, its workload, and what must hold of acts afterwards.

*Must hold*: an order ends with an act or with a refusal, whatever fails; in the end, on a disk that works, each act that the
file tells of can be undone, and then no entry is held, deleted, or in two places.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from mailismus.errors import StartError
from mailismus.queue.acts.act import UNDOABLE, UNFINISHED, ActKind, ActState, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import STOP_S, Acts, KeepSettings
from mailismus.queue.acts.run import ActRun
from mailismus.queue.files.state_file import ACTS, DIRECTORY
from mailismus.queue.interface import Area, Entry
from mailismus.queue.redirect import redirects_of
from tests.durability.faults.case import Scenario
from tests.durability.faults.disk import FaultyDisk, Span
from tests.durability.faults.world import LARGE, Broken, World
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject
from tests.fakes.worker import ClockWorker

T = TypeVar("T")

STAGE = "act"
"""What the disk is told while acts are ordered."""
STATE = os.path.join("/q", DIRECTORY)
KEEP = KeepSettings(30 * 86400.0, 0)
_OF_ACTS = frozenset((Area.HELD, Area.DELETED))
LONGEST_S = 120.0
"""Within so many seconds an act has gone over this queue, or says why not."""
SICK_S = 5.0
"""So long is waited while a fault lasts: a settlement is written when it can be, and the act goes on then."""


class ActingWorld(World):
    """A world with an administrator. `refused`: orders that were."""

    def __init__(self, subject: Subject = CLUSTERED, *, hardlinks: bool = False, disk: FaultyDisk | None = None) -> None:
        super().__init__(subject, hardlinks=hardlinks, disk=disk)
        self.acts: Acts | None = None
        self.refused = 0

    # the operator

    def start(self) -> bool:
        if not super().start():
            return False
        assert self.manager is not None
        self.disk.stage = "start"
        try:
            self._make_state()
            clock = self.harness.clock
            acts = Acts(self.manager.acting, ActFile(self.disk, STATE), ClockWorker(clock), clock, KEEP)
            acts.load()
        except OSError as error:
            self.start_errors.append(StartError(os.EX_IOERR, str(error)))
            self._is_gone()
            return False
        self.acts = acts
        acts.start()
        self.disk.stage = STAGE
        self.settle_down()
        return True

    def _make_state(self) -> None:
        """As a start does."""
        if not self.disk.exists(STATE):
            self.disk.make_directory(STATE)
        self.disk.sync_directory(os.path.dirname(STATE))

    def stop(self) -> None:
        acts = self.acts
        assert acts is not None
        done: list[object] = []
        acts.stop().addBoth(done.append)
        for _ in range(int(2 * STOP_S / 0.05)):
            self.harness.clock.advance(0.05)
        if done != [None]:
            raise Broken(f"a stop of acts fails: {done}")
        super().stop()

    def _is_gone(self) -> None:
        self.acts = None
        super()._is_gone()

    def act(self, kind: ActKind, *words: str, to: str = "") -> ActRun | None:
        """An order; None: it was refused."""
        assert self.acts is not None
        return self.ordered(self.acts.begin(Order(kind, 0, words, "because", to=to)))

    def undo_newest(self) -> None:
        """Undo the newest act that can be."""
        assert self.acts is not None
        open_acts = [act for act in self.acts.all() if act.order.kind in UNDOABLE and act.state is not ActState.UNDONE]
        if open_acts:
            self.ordered(self.acts.undo(open_acts[-1].number, 0))

    def ordered(self, order: Coroutine[Deferred[Any], Any, ActRun]) -> ActRun | None:
        """Wait for the end of an order; None: it was refused."""
        runs: list[ActRun] = []
        errors: list[BaseException] = []
        Deferred.fromCoroutine(order).addCallbacks(runs.append, lambda failure: errors.append(failure.value))
        if not self.until(lambda: bool(runs or errors), "an order has no answer"):
            return None
        if errors:
            if not isinstance(errors[0], StartError) or errors[0].status not in (os.EX_IOERR, os.EX_DATAERR):
                raise errors[0]
            self.refused += 1
            return None
        (run,) = runs
        self.until(lambda: run.is_scanned, "an act never ends")
        self.settle_down(0.1)
        return run

    def until(self, is_so: Callable[[], bool], trouble: str) -> bool:
        """Let time go by until it is so. Return whether it is: while a fault lasts it need not. Raises `Broken` where it
        takes too long without one."""
        waited_s = 0.0
        while not is_so():
            self.harness.clock.advance(0.05)
            waited_s += 0.05
            plan = self.disk.plan
            if waited_s > SICK_S and self.disk.met is not None and plan is not None and plan.span is not Span.ONCE:
                return False
            if waited_s > LONGEST_S:
                raise Broken(trouble)
        return True

    def idle_files(self) -> list[str]:
        return [path for path in super().idle_files() if path != os.path.join(STATE, ACTS)]


def workload(world: World) -> None:
    """Every kind of act, over entries in memory and at rest, with stops and a kill between."""
    assert isinstance(world, ActingWorld)
    world.start_at_last()
    world.store(3)
    world.store(2, LARGE + 50_000)
    world.defer(limit=2)
    world.checkpoint()
    world.store(2)
    world.act(ActKind.HOLD, "recipient=r1@*")
    world.act(ActKind.HOLD_INCOMING, "recipient=r2@*")
    world.store(3)
    world.store(2, LARGE + 50_000)
    world.act(ActKind.DELETE, "recipient=r3@*")
    world.checkpoint()
    world.undo_newest()
    world.act(ActKind.REDIRECT, "recipient=r1@*", to="relay.example:25")
    world.act(ActKind.REDIRECT, "recipient=r2@*", to="other@there.example")
    world.act(ActKind.DELETE)
    world.stop()
    world.start_at_last()
    world.undo_newest()
    world.act(ActKind.RELEASE, "recipient=r1@*")
    world.deliver()
    world.act(ActKind.BOUNCE, "recipient=r2@*")
    world.undo_newest()
    world.act(ActKind.HOLD)
    world.checkpoint()
    world.kill()
    world.start_at_last()
    world.undo_newest()
    world.store(2)
    world.undo_newest()
    world.deliver(limit=2)
    world.checkpoint()


def acts_are_whole(world: World) -> None:
    """On a disk that works every act ends, and can be undone: then nothing is held or deleted."""
    assert isinstance(world, ActingWorld)
    if not world.start():
        raise Broken(f"it does not start: {world.start_errors[-1]}")
    acts = world.acts
    assert acts is not None
    world.until(lambda: not any(act.state in UNFINISHED for act in acts.all()), "an act does not go on after a start")
    for act in reversed(acts.all()):
        if act.order.kind in UNDOABLE and world.ordered(acts.undo(act.number, 0)) is None:
            raise Broken(f"{act.name} can't be undone")
    live = world.live().items()
    left = [f"{queue_id} {entry.area.value}" for queue_id, entry in live if entry.area in _OF_ACTS]
    left += [f"{queue_id} {entry.words!r}" for queue_id, entry in live if _is_redirected(entry)]
    if left:
        raise Broken(f"all acts are undone, and still: {left[:5]}")
    world.stop()


def _is_redirected(entry: Entry) -> bool:
    """A bounce stays redirected: its undoing would take it from its report."""
    return entry.area is not Area.BOUNCES and bool(redirects_of(entry.words))


ACTING = Scenario(ActingWorld, workload, acts_are_whole, STAGE)
"""Acts, for `faults.case` and `faults.cases`: of the calls those while acts go on."""
