"""The one-file-a-message provider under proof, with few parts of its directories and short files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import attrs
from twisted.internet.task import Clock

import mailismus.queue.providers.chunk.assembly as assembly_module
import mailismus.queue.providers.chunk.index.changes as changes_module
import mailismus.queue.providers.chunk.write.ways as ways_module
from mailismus.chunks.generator import NameGenerator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.queue.providers.chunk.assembly import build
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks, open_chunks
from tests.chunk.harness import SPLIT, chunk_settings
from tests.durability.subjects.clustered import instead
from tests.durability.subjects.interface import LARGE, RandomBytes

FEW = 8
"""Files and directories that cost, each by itself, as much as one sync of the file system."""

LONG = 100
"""Bytes of stale lines beyond which a file is written anew."""

_LEFT = re.compile(r"/q/(pid|intd|todo|bounce)/.+|/q/(mess|info|local|remote)/[0-9]+/.+").fullmatch
_COMMITTED = re.compile(r"/q/(mess/[0-9]+|intd)/.+").fullmatch


def is_local(recipient: bytes) -> bool:
    """The first recipient of each message of the workloads."""
    return recipient.startswith(b"r1@")


@attrs.frozen(eq=False)
class ChunkRunning:
    """`RunningSubject`."""

    queue: ChunkQueue
    opened: OpenedChunks

    @property
    def is_idle(self) -> bool:
        parts = self.queue.parts
        return parts.work.is_idle and parts.requests.is_idle and parts.scanning.is_idle

    def hurry(self) -> None:
        self.queue.parts.work.hurry()

    def write_behind(self) -> None:
        self.queue.parts.upkeep.run()

    def unrest(self) -> str | None:
        if self.queue.parts.terms.memory.used or self.queue.parts.terms.behind.used:
            return "memory of drafts is not given back"
        return None

    def own_files(self) -> int:
        return 0


class ChunkSubject:
    """`Subject`."""

    name = "chunk"
    leftovers = ()
    upkept = ""
    held = ""
    has_links = False
    places = (
        (r"/q/pid/.*", "file in pid"),
        (r"/q/(intd|todo)/.*", "envelope"),
        (r"/q/mess/.*/.*", "content"),
        (r"/q/info/.*/.*", "info"),
        (r"/q/(local|remote|bounce)/.*", "recipients"),
        (r"/q/ids/.*", "epoch"),
        (r"/q/conf-split.*", "conf-split"),
        (r"/q/.*", "directory of the queue"),
    )

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        return chunk_settings()

    def start(
        self, disk: IDisk, settings: QueueSettings, clock: Clock, random_bytes: RandomBytes, workers: Workers
    ) -> ChunkRunning:
        opened = open_chunks(settings, disk, SPLIT)
        generator = NameGenerator(lambda: 1, random_bytes)
        three = ChunkWorkers(workers.journal, workers.files, workers.files)
        return ChunkRunning(build(settings, disk, opened, three, clock, clock.seconds, is_local, generator), opened)

    def is_leftover(self, path: str) -> bool:
        return _LEFT(path) is not None

    def is_commit_barrier(self, path: str) -> bool:
        return _COMMITTED(path) is not None

    @contextmanager
    def exploring(self) -> Iterator[None]:
        """Contents of more than `LARGE` bytes stream into their files; files are soon written anew."""
        with (
            instead("SMALL_BYTES", LARGE, assembly_module),
            instead("FEW", FEW, ways_module),
            instead("LONG_BYTES", LONG, changes_module),
        ):
            yield

    def looking(self) -> AbstractContextManager[None]:
        return nullcontext()


CHUNK = ChunkSubject()
