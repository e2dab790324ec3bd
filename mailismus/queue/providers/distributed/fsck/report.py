"""The check, which changes nothing of the mail, and the repair: the same look, each fault repaired as it is found.

    check:   lock, lease -> findings
             servers run: a look, a pause, another look -> what both have found
    repair:  lock, lease -> findings, each repaired -> the same again, for what they uncovered -> a check of what is left

*Rules*: a repair may be stopped anywhere and begun again. What the last check still finds is told as not repaired. Beside
servers a check writes nothing, and takes nothing from them: a fault that is there for a moment alone is none.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterator

import attrs
from twisted.internet.task import deferLater

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.queue.fsck.finding import Checked, Done, Finding, FsckReport, Severity
from mailismus.queue.providers.distributed.counts.stored import OPEN, RECOUNT, server_row
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.fsck.alone import ServingAlone, count_servers
from mailismus.queue.providers.distributed.fsck.fault import Mend, SharedFault, fault
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind
from mailismus.queue.providers.distributed.fsck.repairs import CORRUPT, SharedRepairs
from mailismus.queue.providers.distributed.fsck.walk import SharedWalk
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.look import look_at
from mailismus.queue.providers.distributed.stopped.queue import terms_of
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

Reach = Callable[[ServicesSettings], IReached]
ROUNDS = 3
"""Looks of a repair: one fault may hide another."""
PAUSE_S = 20.0
"""Between two looks beside servers: longer than a call of a store goes unanswered."""


def check(settings: QueueSettings, reach: Reach) -> FsckReport:
    """Check the queue of these settings."""
    return SharedFsck(settings, reach, is_repair=False)


def repair(settings: QueueSettings, reach: Reach) -> FsckReport:
    """Check it, and repair what is found."""
    return SharedFsck(settings, reach, is_repair=True)


class SharedFsck:
    """`FsckReport`."""

    def __init__(self, settings: QueueSettings, reach: Reach, *, is_repair: bool) -> None:
        assert settings.services is not None, "a shared queue has services"
        self._settings, self._services, self._reach, self._is_repair = settings, settings.services, reach, is_repair
        self.checked: tuple[Checked, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        reached = self._reach(self._services)
        try:
            count = 0 if self._is_repair else reached.wait(count_servers(reached))
            if count:
                yield from self._check_beside(reached, count)
                return
            alone = ServingAlone(self._settings, reached)
            try:
                reached.wait(alone.begin())
                yield from self._repair(reached, alone) if self._is_repair else self._check(reached, alone)
            finally:
                reached.wait(alone.end())
                alone.release()
        finally:
            reached.close()

    def _check(self, reached: IReached, alone: ServingAlone) -> Iterator[Finding]:
        for one in self._faults(reached, alone):
            yield one.finding

    def _check_beside(self, reached: IReached, count: int) -> Iterator[Finding]:
        yield fault(SharedFindingKind.SERVED, "servers", None, count=count, seconds=f"{PAUSE_S:g}").finding
        walk = reached.wait(self._begin(reached, is_beside=True))
        found = {_name_of(one.finding): one.finding for one in _all_of(reached, walk)}
        self.checked = walk.checked
        if all(one.severity is Severity.NOTE for one in found.values()):
            yield from found.values()
            return
        reached.wait(_pause(reached))
        again = reached.wait(self._begin(reached, is_beside=True, contents={path for _, path in found}))
        for one in _all_of(reached, again):
            if found.pop(_name_of(one.finding), None) is not None:
                yield one.finding

    def _repair(self, reached: IReached, alone: ServingAlone) -> Iterator[Finding]:
        for number in range(ROUNDS):
            count = 0
            for one in self._faults(reached, alone):
                if one.mend is not None:
                    count += 1
                    yield self._mended(reached, one.finding, one.mend)
                elif not number:
                    is_note = one.finding.severity is Severity.NOTE
                    yield attrs.evolve(one.finding, done=Done.NOTHING if is_note else Done.BY_START)
            if not count:
                return
        for one in self._faults(reached, alone):
            if one.mend is not None:
                yield attrs.evolve(one.finding, done=Done.FAILED, error="still there after the repair")

    def _mended(self, reached: IReached, finding: Finding, mend: Mend) -> Finding:
        rows = reached.stores.rows

        async def run() -> str:
            try:
                await rows.write([server_row(RECOUNT, OPEN, 0, await rows.now())])  # what is mended was not counted so
                await mend()
            except (StoreFailure, OSError) as error:
                return str(error)
            return ""

        error = reached.wait(run())
        return attrs.evolve(finding, done=Done.FAILED if error else Done.REPAIRED, error=error)

    def _faults(self, reached: IReached, alone: ServingAlone) -> Iterator[SharedFault]:
        walk = reached.wait(self._begin(reached))
        for one in _all_of(reached, walk):
            reached.wait(alone.check())
            yield one
        self.checked = walk.checked

    async def _begin(
        self, reached: IReached, *, is_beside: bool = False, contents: Collection[str] | None = None
    ) -> SharedWalk:
        look = await look_at(reached.stores, terms_of(self._services, reached))
        new_id = ShareIds(reached.now, random.SystemRandom().getrandbits)
        corrupt_path = os.path.join(self._settings.rootpath, CORRUPT)
        repairs = SharedRepairs(reached.stores, PosixDisk(), corrupt_path, look.view.writing, reached.now, new_id)
        terms = (reached.stores, look, repairs, reached.timers, reached.now, self._services.view.keep_s)
        return SharedWalk(*terms, is_beside, contents)


def _name_of(finding: Finding) -> tuple[str, str]:
    return finding.kind, finding.path


def _all_of(reached: IReached, walk: SharedWalk) -> Iterator[SharedFault]:
    faults = walk.faults()
    while (one := reached.wait(_next(faults))) is not None:
        yield one


async def _pause(reached: IReached) -> None:
    await deferLater(reached.timers, PAUSE_S)


async def _next(faults: AsyncIterator[SharedFault]) -> SharedFault | None:
    return await anext(faults, None)
