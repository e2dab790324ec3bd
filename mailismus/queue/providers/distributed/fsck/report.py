"""The check, which changes nothing of the mail, and the repair: the same look, each fault repaired as it is found.

    check:   lock, lease -> findings
    repair:  lock, lease -> findings, each repaired -> the same again, for what they uncovered -> a check of what is left

*Rules*: a repair may be stopped anywhere and begun again. What the last check still finds is told as not repaired.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Iterator

import attrs

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.queue.fsck.finding import Checked, Done, Finding, FsckReport, Severity
from mailismus.queue.providers.distributed.counts.stored import OPEN, RECOUNT, server_row
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.fsck.alone import ServingAlone
from mailismus.queue.providers.distributed.fsck.fault import Mend, SharedFault
from mailismus.queue.providers.distributed.fsck.repairs import CORRUPT, SharedRepairs
from mailismus.queue.providers.distributed.fsck.walk import SharedWalk
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.look import look_at
from mailismus.queue.providers.distributed.stopped.queue import terms_of
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

Reach = Callable[[ServicesSettings], IReached]
ROUNDS = 3
"""Looks of a repair: one fault may hide another."""


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
        for fault in self._faults(reached, alone):
            yield fault.finding

    def _repair(self, reached: IReached, alone: ServingAlone) -> Iterator[Finding]:
        for number in range(ROUNDS):
            count = 0
            for fault in self._faults(reached, alone):
                if fault.mend is not None:
                    count += 1
                    yield self._mended(reached, fault.finding, fault.mend)
                elif not number:
                    is_note = fault.finding.severity is Severity.NOTE
                    yield attrs.evolve(fault.finding, done=Done.NOTHING if is_note else Done.BY_START)
            if not count:
                return
        for fault in self._faults(reached, alone):
            if fault.mend is not None:
                yield attrs.evolve(fault.finding, done=Done.FAILED, error="still there after the repair")

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
        faults = walk.faults()
        while (fault := reached.wait(_next(faults))) is not None:
            reached.wait(alone.check())
            yield fault
        self.checked = walk.checked

    async def _begin(self, reached: IReached) -> SharedWalk:
        look = await look_at(reached.stores, terms_of(self._services, reached))
        new_id = ShareIds(reached.now, random.SystemRandom().getrandbits)
        corrupt_path = os.path.join(self._settings.rootpath, CORRUPT)
        repairs = SharedRepairs(reached.stores, PosixDisk(), corrupt_path, look.view.writing, reached.now, new_id)
        return SharedWalk(reached.stores, look, repairs, reached.timers, reached.now, self._services.view.keep_s)


async def _next(faults: AsyncIterator[SharedFault]) -> SharedFault | None:
    return await anext(faults, None)
