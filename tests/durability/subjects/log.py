"""The log-structured provider under proof, with small segments: they are quick to build, and soon used again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import attrs
from twisted.internet.task import Clock

import mailismus.queue.providers.log.control.ledger as ledger_module
import mailismus.queue.providers.log.index.garbage as garbage_module
import mailismus.spool.references as references_module
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.recovery.opening import OpenedLog, open_queue
from tests.durability.subjects.clustered import SEGMENT, NoTable, instead, small_segments
from tests.durability.subjects.interface import LARGE, RandomBytes
from tests.log.harness import log_settings

MOST_NEW = 2
"""Entries in memory, beyond which new ones rest in the log."""

LONG_SEGMENTS = 1
"""Segments beyond which a log is too long."""


@cache
def _settings(large: int) -> QueueSettings:
    return log_settings(largemsgsize=large, segmentsize=SEGMENT if large == LARGE else 1 << 20)


@attrs.frozen(eq=False)
class LogRunning:
    """`RunningSubject`."""

    queue: LogQueue
    opened: OpenedLog

    @property
    def is_idle(self) -> bool:
        return self.queue.commits.is_idle and self.queue.requests.is_idle and not self.queue.is_busy()

    def hurry(self) -> None:
        self.queue.commits.hurry()

    def write_behind(self) -> None:
        self.queue.parts.learning.learn().addCallback(lambda _: self.queue.rounds.run())

    def moves(self) -> int:
        """How many envelopes are being written again."""
        return len(self.queue.parts.ledger.moves)

    def unrest(self) -> str | None:
        if self.queue.is_busy():
            return "a round of marks, or the reading of the log, never ends"
        if self.queue.parts.drafts.terms.memory.used or self.queue.parts.drafts.terms.behind.used:
            return "memory of drafts is not given back"
        return None

    def own_files(self) -> int:
        return len(self.opened.writer.segments) + len(self.opened.pool)


class LogSubject:
    """`Subject`."""

    name = "log"
    leftovers = (".msg", "positions.new")
    upkept = "positions"
    held = "/q/log/"
    has_links = False
    places = (
        (r"/q/log/.*\.mqj", "segment"),
        (r"/q/log", "log directory"),
        (r"/q/positions(\.new)?", "positions"),
        (r"/s/../.*\.msg", "message file"),
        (r"/s/..", "silo"),
    )

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        return _settings(large)

    def start(
        self, disk: IDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> LogRunning:
        with small_segments():
            opened = open_queue(settings, disk, workers.files, clock, random_bytes)
        return LogRunning(build(settings, disk, opened, workers, clock, clock.seconds), opened)

    def is_leftover(self, path: str) -> bool:
        return path.endswith(self.leftovers)

    def is_commit_barrier(self, path: str) -> bool:
        return path.startswith("/q/log/")

    @contextmanager
    def exploring(self) -> Iterator[None]:
        """Little mail is in memory, the rest rests; a log of few segments is long."""
        with (
            small_segments(),
            instead("MOST_NEW", MOST_NEW, ledger_module),
            instead("LONG_SEGMENTS", LONG_SEGMENTS, garbage_module),
            instead("SHORT_SEGMENTS", 0, garbage_module),
        ):
            yield

    def looking(self) -> AbstractContextManager[None]:
        """A start counts no references."""
        return instead("IdTable", NoTable, references_module)


LOG = LogSubject()
