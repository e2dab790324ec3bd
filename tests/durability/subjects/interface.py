"""A provider as the durability proofs see it: how it is started on a test disk, and what the proofs must know of its files.

The proofs know providers by this interface alone, so that each of them runs for any provider (`--provider NAME`). What every
provider does is said in `queue.interface`; what only one of them does (a checkpoint, a segment that is used again) are
operations of its own (`tests.durability.crash.catalogue`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.queue.interface import IQueue

RandomBytes = Callable[[int], bytes]

LARGE = 6000
"""In crash points, contents longer than this are large messages to a provider that tells them apart."""


class RunningSubject(Protocol):
    """An open queue of the provider."""

    @property
    def queue(self) -> IQueue:
        """The queue."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of the provider's own is under way."""

    def hurry(self) -> None:
        """Write now what waits to be written together."""

    def write_behind(self) -> None:
        """Begin the upkeep that the provider does by itself in time: a checkpoint, a preprocessing."""

    def unrest(self) -> str | None:
        """What is still under way or held in memory though the server is idle, in words; None: nothing."""

    def own_files(self) -> int:
        """How many files below its own directory the provider holds open all the time (`Subject.held`)."""


class Subject(Protocol):
    """A provider under proof."""

    @property
    def name(self) -> str:
        """As in `<queue provider>`."""

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Endings of the names of files that an empty queue has none of."""

    def is_leftover(self, path: str) -> bool:
        """Whether an empty queue has no file of this path, by its name alone."""

    @property
    def upkept(self) -> str:
        """The ending of the names of files that `write_behind` writes; empty: it writes none."""

    @property
    def held(self) -> str:
        """The directory below which files stay open while the queue is idle; empty: none do."""

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """Regular expressions of paths, and what kind of file or directory each is, for tables."""

    @property
    def has_links(self) -> bool:
        """Whether `<hardlinks>` is a setting of it."""

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        """Settings of a queue in `/q` (and `/s`, with a spool), small."""

    def start(
        self, disk: IDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> RunningSubject:
        """The server's own start over what is on the disk; `open` is not called yet. Raises `StartError`."""

    def is_commit_barrier(self, path: str) -> bool:
        """Whether a barrier of this file is one that a 250 waits for: when it fails, the commit does."""

    def exploring(self) -> AbstractContextManager[None]:
        """While workloads run: sizes such that little mail is enough to meet everything."""

    def looking(self) -> AbstractContextManager[None]:
        """While a start only looks at what a crash left: what it need not build, which takes time."""
