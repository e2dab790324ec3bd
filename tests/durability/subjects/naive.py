"""The naive provider under proof."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import attrs
from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from tests.clustered.harness import queue_settings
from tests.durability.subjects.interface import LARGE, RandomBytes
from tests.naive.files import NEW_SUFFIX, SUFFIX
from tests.naive.opening import open_naive
from tests.naive.provider import NaiveQueue


@cache
def _settings() -> QueueSettings:
    return attrs.evolve(queue_settings(), provider="naive")


@attrs.frozen(eq=False)
class NaiveRunning:
    """`RunningSubject`."""

    queue: NaiveQueue

    @property
    def is_idle(self) -> bool:
        return not self.queue.writing

    def hurry(self) -> None:
        pass  # nothing waits

    def write_behind(self) -> None:
        pass  # there is no upkeep

    def unrest(self) -> str | None:
        return None

    def own_files(self) -> int:
        return 0


class NaiveSubject:
    """`Subject`."""

    name = "naive"
    leftovers = (SUFFIX, NEW_SUFFIX)
    upkept = ""
    held = ""
    has_links = False
    places = ((r"/q/[^/]*\.mail", "message file"), (r"/q/[^/]*\.tmp", "new message file"))

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        return _settings()

    def start(
        self, disk: IDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> NaiveRunning:
        return NaiveRunning(open_naive(settings, disk, workers.files, clock))

    def is_leftover(self, path: str) -> bool:
        return path.endswith(self.leftovers)

    def is_commit_barrier(self, path: str) -> bool:
        return path.endswith(NEW_SUFFIX)

    def exploring(self) -> AbstractContextManager[None]:
        return nullcontext()

    def looking(self) -> AbstractContextManager[None]:
        return nullcontext()


NAIVE = NaiveSubject()
