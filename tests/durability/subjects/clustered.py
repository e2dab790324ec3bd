"""The clustered provider under proof, with small segments: they are quick to build, and soon used again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from types import ModuleType

import attrs
from twisted.internet.task import Clock

import mailismus.journal.segment as segment_module
import mailismus.queue.providers.clustered.checkpoint.write as write_module
import mailismus.spool.references as references_module
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.clustered.harness import queue_settings
from tests.durability.subjects.interface import LARGE, RandomBytes

SEGMENT = 32768
"""Bytes of a segment in crash points: its header and seven blocks of batches."""

FEW_FILES = 4


class NoTable:
    """Stands for the tables of the reference cache, half the cost of a start: one that only looks counts no references."""


@contextmanager
def instead(name: str, value: object, *modules: ModuleType) -> Iterator[None]:
    """This name in these modules means something else meanwhile."""
    before = [(module, getattr(module, name)) for module in modules]
    for module in modules:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, was in before:
            setattr(module, name, was)


def small_segments() -> AbstractContextManager[None]:
    """Segments of `SEGMENT` bytes are allowed."""
    return instead("SMALLEST", SEGMENT, segment_module)


@cache
def _settings(hardlinks: bool, large: int) -> QueueSettings:
    settings = queue_settings(largemsgsize=large, hardlinks=hardlinks)
    return (
        attrs.evolve(settings, journal=attrs.evolve(settings.journal, segmentsize=SEGMENT)) if large == LARGE else settings
    )


@attrs.frozen(eq=False)
class ClusteredRunning:
    """`RunningSubject`."""

    queue: ClusteredQueue
    opened: Opened

    @property
    def is_idle(self) -> bool:
        return self.queue.commits.is_idle and self.queue.state.pending is None

    def hurry(self) -> None:
        self.queue.commits.hurry()

    def write_behind(self) -> None:
        self.queue.checkpoints.run()

    def unrest(self) -> str | None:
        if self.queue.state.pending is not None:
            return "a checkpoint never ends"
        if self.queue.parts.drafts.terms.memory.used or self.queue.parts.drafts.terms.behind.used:
            return "memory of drafts is not given back"
        return None

    def own_files(self) -> int:
        return len(self.opened.writer.segments) + len(self.opened.pool)


class ClusteredSubject:
    """`Subject`."""

    name = "clustered"
    leftovers = (".msg", ".mqc")
    upkept = ".mqc"
    held = "/q/journal/"
    has_links = True
    places = (
        (r"/q/journal/.*\.mqj", "segment"),
        (r"/q/journal", "journal directory"),
        (r"/q/(incoming|bounces|deferred/[^/]*)/.*\.mqc(\.new)?", "cluster"),
        (r"/q/(incoming|bounces|deferred)", "area"),
        (r"/q/deferred/[^/]*", "slot"),
        (r"/s/link-probe.*", "link probe"),
        (r"/s/../.*\.msg", "message file"),
        (r"/s/..", "silo"),
    )

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        return _settings(hardlinks, large)

    def start(
        self, disk: IDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> ClusteredRunning:
        with small_segments():
            opened = open_queue(settings, disk, workers.files, clock, random_bytes)
        return ClusteredRunning(build(settings, disk, opened, workers, clock, clock.seconds), opened)

    def is_leftover(self, path: str) -> bool:
        return path.endswith(self.leftovers)

    def is_commit_barrier(self, path: str) -> bool:
        return path.startswith("/q/journal/")

    def exploring(self) -> AbstractContextManager[None]:
        """Checkpoints sync the whole file system when they touch more than `FEW_FILES`."""
        return instead("FEW_FILES", FEW_FILES, write_module)

    def looking(self) -> AbstractContextManager[None]:
        """A start counts no references."""
        return instead("IdTable", NoTable, references_module)


CLUSTERED = ClusteredSubject()
