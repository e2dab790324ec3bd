"""All acts of one queue: begun, gone on with after a start, interrupted, undone, listed; rules for mail to come among them.

*Rules*: an act is durable in the file of acts before its first slice, with who ordered it, when and why. One act runs at a
time; the others wait in FIFO order. After a failed write to that file no act begins or goes on before the next start.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence

import attrs
from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.errors import StartError, StorageError, Unavailable
from mailismus.mail.ids import act_name
from mailismus.queue.acting import Acting
from mailismus.queue.acts.act import NEXT_STATES, UNDOABLE, UNFINISHED, Act, ActState, Order, new_act
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.keeping import Keeping
from mailismus.queue.acts.record import begin_event, count_event
from mailismus.queue.acts.rule import Rule
from mailismus.queue.acts.rules import MOST_RULES, Rules
from mailismus.queue.acts.run import ActRun, Keep, filter_of
from mailismus.queue.filter import FilterError
from mailismus.queue.sharing import ACTS, INumbers
from mailismus.queue.throttle import WorkThrottle

_ENDS = frozenset((ActState.DONE, ActState.UNDONE, ActState.INTERRUPTED))

WAIT_S = 30.0
"""Seconds until an act looks again for what it waits for."""

STOP_S = 10.0
"""Seconds that a stop waits for the slices under way."""

LOOK_S = 0.2
"""Seconds between two looks at an act that runs, for those who watch it."""


@attrs.frozen
class KeepSettings:
    """`<undo>` in seconds (0: nothing is kept) and `<undospace>` in bytes (0: no limit)."""

    kept_s: float
    most_bytes: int


class Acts:
    """Acts of one queue. `worker`: one thread, for the file; `throttle`: of their work; None: they never pause for other
    work; `numbers`: of a shared queue, where no two servers give one number to an act."""

    _log = Logger()

    def __init__(
        self,
        acting: Acting,
        file: ActFile,
        worker: IWorker,
        clock: IReactorTime,
        settings: KeepSettings,
        throttle: WorkThrottle | None = None,
        numbers: INumbers | None = None,
    ) -> None:
        self._numbers = numbers
        self._throttle = throttle or WorkThrottle()
        self._acting, self._file, self._worker, self._clock, self._settings = acting, file, worker, clock, settings
        self._keeping = Keeping(acting, clock)
        self._rules = Rules(acting, clock)
        self._acts: dict[int, Act] = {}
        self._runs: dict[int, ActRun] = {}
        """Acts that run, wait for entries that are out, or are being undone."""
        self._lock = DeferredLock()
        """Held by the act that runs."""
        self._trouble = ""
        self._is_started = self._is_stopped = False

    def load(self) -> None:
        """Read the file, and put its rules in force. Blocks; raises `OSError`."""
        self._acts = self._file.load(self._acting.now())
        for number, act in sorted(self._acts.items()):
            if act.is_in_force:
                try:
                    self._rules.add(self._rules.new(act))
                except FilterError as error:
                    self._log.error("Rule {name} is not in force: {error}", name=act_name(number), error=error)

    def start(self) -> None:
        """Begin: go on with what a stop has left unfinished."""
        self._is_started = True
        self._worker.start()
        self._keeping.start()
        self._rules.start(self._note_rule)
        for number, act in sorted(self._acts.items()):
            if act.state in UNFINISHED:
                run = self._new_run(act)
                self._launch(run, is_undo=act.state is ActState.UNDOING)
                self._log.info("Act {name} goes on.", name=act_name(number))

    def stop(self) -> Deferred[None]:
        """Begin no slice any more. Fires when those under way have ended, or behind `STOP_S`: no disk holds up a stop. If it
        was never started: at once."""
        self._is_stopped = True
        if not self._is_started:
            self._file.close()
            return succeed(None)
        for run in self._runs.values():
            run.interrupt()
        stopped: Deferred[None] = Deferred()
        late = self._clock.callLater(STOP_S, self._leave, stopped)
        Deferred.fromCoroutine(self._finish()).addBoth(self._finished, late, stopped)
        return stopped

    async def _finish(self) -> None:
        ended = self._keeping.stop()
        if ended is not None:
            await ended
        await self._lock.acquire()
        self._lock.release()
        await self._rules.stop()
        await self._worker.run(self._file.close)

    def _finished(self, result: Failure | None, late: IDelayedCall, stopped: Deferred[None]) -> None:
        if isinstance(result, Failure):
            self._log.warn("The acts do not end as they should: {error}", error=result.value)
        if late.active():
            late.cancel()
            self._worker.stop()
            stopped.callback(None)

    def _leave(self, stopped: Deferred[None]) -> None:
        self._log.warn("A slice of an act has not ended after {seconds:.0f} s: the next start goes on.", seconds=STOP_S)
        self._worker.leave()
        stopped.callback(None)

    def reload(self, settings: KeepSettings) -> None:
        """Set other bounds, for what is deleted from now on."""
        self._settings = settings

    # what is asked for

    def all(self) -> Sequence[Act]:
        """Return the acts, the newest last."""
        return [self._now_of(number) for number in sorted(self._acts)]

    def waiting_of(self, number: int) -> int:
        """Return how many entries that are out an act waits for."""
        run = self._runs.get(number)
        return run.waiting if run is not None else 0

    def room_bytes(self) -> int | None:
        """Return how many bytes more of deleted mail may be kept; 0: nothing is; None: all."""
        if not self._settings.kept_s:
            return 0
        room_bytes = self._keep().room_bytes()
        return None if room_bytes == math.inf else int(room_bytes)

    def pause(self) -> Deferred[None]:
        """Fires after the time between two looks at an act."""
        return deferLater(self._clock, LOOK_S)

    async def begin(self, order: Order) -> ActRun:
        """Begin an act, or put a rule in force; it is durable, and goes on by itself. Raises `StartError`, `FilterError`."""
        self._refuse_trouble()
        act = new_act(await self._new_number(), order, self._acting.now())
        self._refuse_trouble()
        rule = self._new_rule(act) if act.is_in_force else None
        if rule is None:
            filter_of(act)
        self._acts[act.number] = act
        try:
            await self._append(begin_event(act))
        except OSError:
            del self._acts[act.number]
            raise StartError(os.EX_IOERR, self._trouble) from None
        if rule is not None:
            if self._now_of(act.number).is_in_force:  # else it was undone meanwhile
                self._rules.add(rule)
            return self._ended_run(act)
        run = self._new_run(act)
        self._launch(run, is_undo=False)
        return run

    async def resume(self, number: int) -> ActRun:
        """Go on with an act that was interrupted. Raises `StartError`."""
        self._refuse_trouble()
        act = self._known(number)
        if act.state is not ActState.INTERRUPTED:
            raise StartError(os.EX_DATAERR, f"act {act.name} is {act.state.value}: only an interrupted one is resumed")
        run = self._new_run(act)
        await self._change_or_refuse(run, ActState.RUNNING, act)
        self._launch(run, is_undo=False)
        return run

    async def undo(self, number: int, uid: int) -> ActRun:
        """Undo an act, as far as its entries are still in its hands. Raises `StartError`."""
        self._refuse_trouble()
        act = self._known(number)
        if act.order.kind not in UNDOABLE:
            raise StartError(os.EX_DATAERR, f"act {act.name} is a {act.order.kind.value}, which can't be undone")
        if ActState.UNDOING not in NEXT_STATES[act.state]:
            raise StartError(os.EX_DATAERR, f"act {act.name} is {act.state.value}")
        before = self._runs.get(number)
        if before is not None:
            before.interrupt()
        await self._lock.acquire()
        self._lock.release()
        act = self._now_of(number)
        run = self._new_run(attrs.evolve(act, undone_by=uid))
        await self._change_or_refuse(run, ActState.UNDOING, act)
        rule = self._rules.end(number)
        if rule is not None:
            await rule.quiet()
            run.take_counts(rule.act)
        self._launch(run, is_undo=True)
        return run

    # within

    async def _new_number(self) -> int:
        """A number that no act has: entries tell by it whose they are. Raises `StartError`."""
        last = max(self._acts, default=0)
        if self._numbers is None:
            return last + 1
        try:
            return await self._numbers.next_number(ACTS, last)
        except Unavailable as error:
            raise StartError(os.EX_TEMPFAIL, f"the act has no number, and was not begun: {error}") from error

    def _known(self, number: int) -> Act:
        if number not in self._acts:
            text = f"there is no act {act_name(number)}: mailismus queue acts lists them"
            where = "" if self._numbers is None else "; each is on record at the server where it was given alone"
            raise StartError(os.EX_DATAERR, text + where)
        return self._now_of(number)

    def _now_of(self, number: int) -> Act:
        run = self._runs.get(number)
        return run.act if run is not None else self._rules.act_of(number) or self._acts[number]

    def _new_run(self, act: Act) -> ActRun:
        before = self._runs.get(act.number)
        if before is not None:
            self._acting.awaited.forget(before)
        run = self._runs[act.number] = self._make_run(act)
        return run

    def _make_run(self, act: Act) -> ActRun:
        return ActRun(act, self._acting, self._keep(), self._clock, self._throttle, self._on_change, self._is_undone)

    def _keep(self) -> Keep:
        return Keep(self._settings.kept_s, self._settings.most_bytes, self._used_bytes)

    def _is_undone(self, number: int) -> bool:
        act = self._acts.get(number)
        return act is not None and act.state is ActState.UNDONE

    def _ended_run(self, act: Act) -> ActRun:
        """Return the run of a rule, which goes over nothing."""
        run = self._make_run(act)
        run.end()
        return run

    def _new_rule(self, act: Act) -> Rule:
        """Return the rule of an act that begins. Raises `StartError`, `FilterError`."""
        rule = self._rules.new(act)
        if sum(one.is_in_force for one in self._acts.values()) >= MOST_RULES:
            text = f"{MOST_RULES} rules for mail to come are in force, and no more may be: end one by queue undo"
            raise StartError(os.EX_DATAERR, text)
        return rule

    def _used_bytes(self) -> int:
        """Return at most how many bytes of deleted mail are kept."""
        since = self._acting.now() - self._settings.kept_s
        acts = map(self._now_of, self._acts)
        return sum(act.kept_bytes for act in acts if act.begun_at > since and act.state is not ActState.UNDONE)

    def _launch(self, run: ActRun, *, is_undo: bool) -> None:
        done = Deferred.fromCoroutine(self._run(run, is_undo=is_undo))
        done.addErrback(self._failed, run)

    async def _run(self, run: ActRun, *, is_undo: bool) -> None:
        await self._lock.acquire()
        try:
            if self._is_stopped or self._runs.get(run.act.number) is not run:
                return
            await (run.undo(self._record) if is_undo else run.do(self._record))
            if self._is_stopped:
                return  # the file says that it is unfinished: the next start goes on
            await self._change(run, _end_of(run, is_undo=is_undo))
            self._look_later(run)
        except (StorageError, OSError) as error:
            run.fail(self._trouble or str(error))
            self._log.error("Act {name} was interrupted: {error}", name=run.act.name, error=error)
            if not is_undo and not self._trouble:
                await self._change(run, ActState.INTERRUPTED)
        finally:
            run.end()
            self._lock.release()

    def _failed(self, failure: Failure, run: ActRun) -> None:
        run.fail("the server failed; its log says how")
        self._log.failure("act {name} failed", failure, name=run.act.name)

    def _look_later(self, run: ActRun) -> None:
        if run.act.state is ActState.WAITING:
            self._clock.callLater(WAIT_S, self._look, run)

    def _look(self, run: ActRun) -> None:
        Deferred.fromCoroutine(self._look_again(run)).addErrback(self._failed, run)

    async def _look_again(self, run: ActRun) -> None:
        await self._lock.acquire()
        try:
            if run.act.state is not ActState.WAITING or self._is_stopped or self._runs.get(run.act.number) is not run:
                return
            await run.look_again(self._record)
        except (StorageError, OSError) as error:
            self._log.warn("Act {name} can't look for what it waits for: {error}", name=run.act.name, error=error)
        finally:
            self._lock.release()
        self._on_change(run)
        self._look_later(run)

    def _on_change(self, run: ActRun) -> None:
        """An entry came back that the act waited for."""
        if run.waiting or run.act.state is not ActState.WAITING or self._is_stopped:
            return
        changing = Deferred.fromCoroutine(self._change(run, ActState.DONE))
        changing.addErrback(self._failed, run)

    async def _change(self, run: ActRun, state: ActState) -> None:
        run.enter(state)
        await self._record(run)
        if state in _ENDS and self._runs.get(run.act.number) is run:
            del self._runs[run.act.number]

    async def _change_or_refuse(self, run: ActRun, state: ActState, before: Act) -> None:
        """Let a run that was ordered enter this state. Raises `StartError`: the act is as it was before."""
        try:
            await self._change(run, state)
        except OSError:
            self._acts[before.number] = before
            self._runs.pop(before.number, None)
            raise StartError(os.EX_IOERR, self._trouble) from None

    async def _record(self, run: ActRun) -> None:
        await self._note(run.act)

    async def _note_rule(self, act: Act) -> None:
        if act.number not in self._runs:  # else it is being undone, which tells of it
            await self._note(act)

    async def _note(self, act: Act) -> None:
        self._acts[act.number] = act
        await self._append(count_event(act, self._acting.now()))

    async def _append(self, event: Mapping[str, object]) -> None:
        if self._trouble:
            raise OSError(self._trouble)
        try:
            await self._worker.run(_call(self._file.append, event))
        except OSError as error:
            self._trouble = f"{self._file.path} can't be written: {error}; no act goes on before the next start"
            raise

    def _refuse_trouble(self) -> None:
        if self._trouble:
            raise StartError(os.EX_IOERR, self._trouble)
        if self._is_stopped:
            raise StartError(os.EX_TEMPFAIL, "the server stops")


def _end_of(run: ActRun, *, is_undo: bool) -> ActState:
    if is_undo:
        return ActState.UNDOING if run.is_stopped else ActState.UNDONE
    if run.is_stopped:
        return ActState.INTERRUPTED
    return ActState.WAITING if run.waiting else ActState.DONE


def _call(function: Callable[[Mapping[str, object]], None], event: Mapping[str, object]) -> Callable[[], None]:
    return lambda: function(event)
