"""Batches of the queue of chunks, without a server: how long each takes, by the way in which it becomes durable.

`mail`: new messages; the messages of the batch before are delivered, and the names of those before them go. So a batch of a
server in which every session waits for its 250. `marks`: of as many preprocessed messages one recipient each is done.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.drain import percentile
from benchmarks.stage.local_queue import local_settings
from mailismus.chunks.generator import process_generator
from mailismus.disk.interface import ISynced
from mailismus.disk.posix import PosixDisk
from mailismus.mail.ids import SpoolId
from mailismus.queue.entering import new_entries
from mailismus.queue.interface import Message
from mailismus.queue.providers.chunk.format.files import format_envelope
from mailismus.queue.providers.chunk.index.changes import FileChange, plan_change, preprocess
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks, open_chunks
from mailismus.queue.providers.chunk.write.batch import BatchWriter, ChunkBatch, NewMail
from mailismus.queue.providers.chunk.write.cleaning import Cleaning
from mailismus.queue.providers.chunk.write.mess import MessWriters
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing
from mailismus.queue.providers.chunk.write.ways import SyncWay, WayChoice

CONTENT = (b"Received: by bench.example\r\n\r\n" + b"x" * 62 + b"\r\n") + (b"y" * 62 + b"\r\n") * 64
CONTENT = CONTENT[:4094] + b"\r\n"
SENDER, CLIENT = b"sender@from.bench.example", b"127.0.0.1"
RECIPIENTS = 200
"""Of a message whose recipients are marked one by one."""
LEAST_BATCHES = 5


class AlwaysWay(WayChoice):
    """Takes one way."""

    def __init__(self, way: SyncWay) -> None:
        super().__init__(time.monotonic(), has_whole=True)
        self._way = way

    def choose(self, count: int, now: float) -> SyncWay:
        return self._way


class OneAtATime(PosixDisk):
    """Syncs files one after the other."""

    def sync_together(self, items: Sequence[ISynced]) -> None:
        for item in items:
            item.sync()


class CountedChoice(WayChoice):
    """The server's choice. `taken`: how often each way was."""

    def __init__(self) -> None:
        super().__init__(time.monotonic(), has_whole=True)
        self.taken = dict.fromkeys(SyncWay, 0)

    def choose(self, count: int, now: float) -> SyncWay:
        way = super().choose(count, now)
        self.taken[way] += 1
        return way


@attrs.frozen
class TimedBatches:
    """What was measured. Seconds, monotonic."""

    began_at_s: tuple[float, ...]
    took_s: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """Of a batch."""
        return percentile(self.took_s, 0.5) * 1e3

    @property
    def p95_ms(self) -> float:
        """Of a batch."""
        return percentile(self.took_s, 0.95) * 1e3

    @property
    def a_second(self) -> float:
        """Batches, while nothing else is waited for."""
        return len(self.took_s) / sum(self.took_s)


class BatchBench:
    """A queue below a directory, removed with `close`."""

    def __init__(self, directory: Path, choice: WayChoice, disk: PosixDisk) -> None:
        """Raises `StartError`."""
        self._directory = directory
        directory.mkdir()
        settings = local_settings(directory, "chunk")
        self._opened: OpenedChunks = open_chunks(settings, disk, settings.conf_split)
        queue = self._opened.directories
        writers = MessWriters(queue, process_generator(), time.time)
        syncing = BatchSyncing(queue, time.monotonic, choice)
        self._writer = BatchWriter(queue, writers, self._opened.presence, syncing)
        self._ids = itertools.count(self._opened.epoch << 32 | 1)

    def close(self) -> None:
        """Remove it."""
        self._opened.release()
        shutil.rmtree(self._directory, ignore_errors=True)

    def mail(self, sessions: int, seconds: float, pause_s: float) -> TimedBatches:
        """New mail, until that many seconds have gone by. `pause_s`: before each batch."""
        return _timed(self._mail_batches(sessions), seconds, pause_s)

    def marks(self, sessions: int, seconds: float, pause_s: float) -> TimedBatches:
        """Recipients that are done, one of each message in a batch."""
        return _timed(self._mark_batches(sessions), seconds, pause_s)

    def _mail_batches(self, sessions: int) -> Iterator[float]:
        changes: Sequence[FileChange] = ()
        cleanings: Sequence[Cleaning] = ()
        while True:
            mails, messages = self._new(sessions, 1)
            batch = ChunkBatch(mails, changes, cleanings)
            yield self._run(batch)
            cleanings = batch.left
            changes = [plan_change(known, (), list(known.entries), _nobody) for known in _known(mails, messages)]

    def _mark_batches(self, sessions: int) -> Iterator[float]:
        cleanings: Sequence[Cleaning] = ()
        while True:
            mails, messages = self._new(sessions, RECIPIENTS)
            self._run(ChunkBatch(mails, (), cleanings))
            known = _known(mails, messages)
            self._apply(batch := ChunkBatch((), [preprocess(one, _nobody) for one in known], ()))
            for number in range(1, RECIPIENTS + 1):
                changes = [plan_change(one, (), (number,), _nobody) for one in known]
                took_s = self._apply(batch := ChunkBatch((), changes, batch.left))
                for one in known:
                    del one.entries[number]
                yield took_s
            cleanings = batch.left

    def _new(self, count: int, recipients: int) -> tuple[list[NewMail], list[Message]]:
        addresses = [b"recipient-%d@to.bench.example" % number for number in range(recipients)]
        mails, messages, now = list[NewMail](), list[Message](), time.time()
        for _ in range(count):
            entries = new_entries(addresses, now)
            message = Message(SpoolId(next(self._ids)), SENDER, CLIENT, False, now, len(CONTENT), recipients, entries)
            mails.append(NewMail(format_envelope(message, entries, ()), CONTENT))
            messages.append(message)
        return mails, messages

    def _run(self, batch: ChunkBatch) -> float:
        began_s = time.perf_counter()
        self._writer.run(batch)
        took_s = time.perf_counter() - began_s
        if batch.error is not None:
            raise batch.error
        return took_s

    def _apply(self, batch: ChunkBatch) -> float:
        took_s = self._run(batch)
        for change in batch.changes:
            change.known.keep_files(change.places, change.sizes)
        return took_s


def _timed(batches: Iterator[float], seconds: float, pause_s: float) -> TimedBatches:
    deadline_s = time.monotonic() + seconds
    began, took = list[float](), list[float]()
    while len(took) < LEAST_BATCHES or time.monotonic() < deadline_s:
        time.sleep(pause_s)
        began.append(time.monotonic())
        took.append(next(batches))
    return TimedBatches(tuple(began), tuple(took))


def _known(mails: Sequence[NewMail], messages: Sequence[Message]) -> list[KnownChunk]:
    found = []
    for mail, message in zip(mails, messages, strict=True):
        known = KnownChunk(message, mail.number)
        known.entries.update((entry.number, entry) for entry in message.entries)
        found.append(known)
    return found


def _nobody(recipient: bytes) -> bool:
    """Whether a recipient is local."""
    return False
