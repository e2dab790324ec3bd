"""Queues to be converted: every provider and setting of hard links, filled by the provider itself on a real file system."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import attrs
from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import PosixDisk
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.providers import PROVIDERS
from mailismus.queue.convert.conversion import Converted, convert, tools_of
from mailismus.queue.interface import Area, Entry, Filter, IQueue, Message, Placement, Settlement, Submission
from mailismus.queue.provider import IStoppedQueue, QueuePlace
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.harness import DurableHarness
from tests.contracts.samples import ODD_ADDRESSES, ODD_REPLIES
from tests.fakes.stuffing import stuffed_dots
from tests.log.harness import LogHarness, log_settings

NOW = 1_700_000_000.0
LARGE = 6000
"""Contents longer than this are large messages to a provider that tells them apart."""
Everything = dict[SpoolId, tuple[Message, dict[int, Entry], str]]
"""A queue as it is listed: message facts, entries by number, SHA-256 of the content."""


class QueueKind(NamedTuple):
    """A provider, and whether it uses hard links."""

    provider: str
    hardlinks: bool = False

    def __str__(self) -> str:
        return self.provider + ("-links" if self.hardlinks else "")


KINDS = (QueueKind("clustered"), QueueKind("clustered", hardlinks=True), QueueKind("log"), QueueKind("chunk"))
PAIRS = [(one, other) for one in KINDS for other in KINDS]


class RealHarness(DurableHarness, Protocol):
    """A harness of a provider whose disk can be another one."""

    def open(self) -> IQueue:
        """A start over what is on the disk."""

    def kill(self) -> None:
        """The process ends here; the system has all that was written."""

    def end(self) -> None:
        """What the end of a process gives up: locks and open files."""


class _Process:
    """A harness whose disk is a real one, and the end of its process."""

    clock: Clock
    opened: Any

    def kill(self) -> None:
        self.clock.calls.clear()
        self.end()

    def end(self) -> None:
        assert self.opened is not None
        self.opened.release()


class _RealClustered(_Process, ClusteredHarness):
    def __init__(self, settings: QueueSettings) -> None:
        super().__init__(settings)
        self.disk = PosixDisk()  # type: ignore[assignment]  # a real one in place of the one in memory

    def end(self) -> None:
        super().end()
        self.opened.close_files()


class _RealLog(_Process, LogHarness):
    def __init__(self, settings: QueueSettings) -> None:
        super().__init__(settings)
        self.disk = PosixDisk()  # type: ignore[assignment]  # as above

    def end(self) -> None:
        super().end()
        self.opened.close_files()


class _RealChunk(_Process, ChunkHarness):
    def __init__(self, settings: QueueSettings) -> None:
        super().__init__()
        self.settings = settings
        self.disk = PosixDisk()  # type: ignore[assignment]  # as above


_REAL: dict[str, Callable[[QueueSettings], RealHarness]] = {
    "clustered": _RealClustered,
    "log": _RealLog,
    "chunk": _RealChunk,
}
"""By the names of providers."""


def settings_of(kind: QueueKind, directory: Path) -> QueueSettings:
    """Settings of a queue and its spool in this directory."""
    settings = log_settings(largemsgsize=LARGE) if kind.provider == "log" else queue_settings(largemsgsize=LARGE)
    settings = attrs.evolve(settings, provider=kind.provider, conf_split=SPLIT)
    spool = attrs.evolve(settings.spool, rootpath=str(directory / "spool"), hardlinks=kind.hardlinks)
    return attrs.evolve(settings, rootpath=str(directory / "queue"), spool=spool, maxclustersize=20_000)


def harness_of(kind: QueueKind, directory: Path) -> RealHarness:
    """The server's own start over the queue in this directory."""
    return _REAL[kind.provider](settings_of(kind, directory))


def stop(harness: RealHarness, queue: IQueue) -> None:
    """A clean stop, and the end of the process."""
    harness.wait(queue.close())
    harness.end()


class Mail:
    """Puts mail of every sort into an open queue."""

    def __init__(self, harness: DurableHarness, queue: IQueue, seed: int = 1) -> None:
        self._harness, self._queue = harness, queue
        self._random = random.Random(seed)
        self._number = 0

    def put(self, recipients: int = 1, size: int = 300, *, words: bytes | None = None, placed: bool = False) -> SpoolId:
        """One message. `placed`: its recipients are in all areas, with attempts, replies and words; one is over."""
        self._number += 1
        content = b"Received: by mx.example\r\nX-Number: %d\r\n\r\n" % self._number
        content += b"..dot\r\n" + self._random.randbytes(size).replace(b"\r", b"r").replace(b"\n", b"n") + b"\r\n"
        draft = self._queue.draft()
        pause = draft.write(content)
        if pause is not None:
            self._harness.wait(pause)
        addresses = self._random.sample(ODD_ADDRESSES, min(recipients, len(ODD_ADDRESSES)))
        addresses += [b"r%d@d.example" % n for n in range(recipients - len(addresses))]
        sender = b"" if self._number % 7 == 0 else b"s%d@b.example" % self._number
        envelope = Envelope(sender, tuple(addresses), b"192.0.2.1", self._number % 2 == 0, stuffed_dots(content), words)
        placements = tuple(self._placements(recipients)) if placed else None
        submission = Submission(draft, envelope, NOW - self._number, placements)
        self._harness.wait(self._queue.commit([submission], ()))
        return draft.spool_id

    def _placements(self, recipients: int) -> Iterator[Placement]:
        for number in range(1, recipients + 1):
            if number == 2:
                continue
            area = tuple(Area)[number % len(Area)]
            reply = self._random.choice(ODD_REPLIES) if area is not Area.INCOMING else None
            attempts = 0 if reply is None else number
            host = b"-" if reply is None else b"mx.example[192.0.2.9]:25"
            words = (None, b"tries=%d" % number)[number % 2]
            due_at = NOW + self._random.choice((-3000.0, 0.0, 900.125, 86_400.0))
            yield Placement(number, area, due_at, attempts, reply, host, words)

    def defer(self, spool_id: SpoolId, number: int) -> None:
        """An attempt for an entry fails; it is known to be there."""
        reply = Reply(451, b"4.3.0", b"come back later")
        settlement = Settlement(QueueId(spool_id, number), Area.DEFERRED, NOW + 900 * number, 1, reply, b"mx[192.0.2.9]:25")
        self._harness.wait(self._queue.commit((), [settlement]))

    def end(self, spool_id: SpoolId, number: int) -> None:
        """An entry is delivered."""
        self._harness.wait(self._queue.commit((), [Settlement(QueueId(spool_id, number), None)]))


def fill(mail: Mail) -> None:
    """Small and large messages, in all states."""
    for size in (0, 300, LARGE - 200, LARGE + 100, 70_000):
        mail.put(1, size)
        mail.put(4, size, placed=True, words=b"ENVID=x%20y RET=hdrs")
    some = mail.put(5, 500)
    mail.defer(some, 2)
    mail.end(some, 1)
    whole = mail.put(2, 9000)
    mail.end(whole, 1)
    mail.end(whole, 2)
    mail.put(40, 100, placed=True)


def make_queue(kind: QueueKind, directory: Path, *, is_killed: bool = False) -> Everything:
    """A stopped queue with mail of every sort; what it holds. `is_killed`: small messages are in the journal still."""
    directory.chmod(0o700)
    harness = harness_of(kind, directory)
    queue = harness.open()
    fill(Mail(harness, queue))
    if is_killed:
        harness.kill()
    else:
        stop(harness, queue)
    return look(kind, directory)


def look(kind: QueueKind, directory: Path, below: str = "") -> Everything:
    """All of a stopped queue, as commands read it. `below`: of one that is kept or built beside it."""
    settings = settings_of(kind, directory)
    places = [os.path.join(path, below) for path in (settings.rootpath, settings.spool.rootpath)]
    return everything_in(PROVIDERS.named(kind.provider).open_stopped(QueuePlace(places[0], places[1])))


def everything_in(stopped: IStoppedQueue) -> Everything:
    """All of a queue, which is closed."""
    found = Everything()
    for page in stopped.pages(Filter()):
        for message in page:
            facts = attrs.evolve(message, entries=[])
            known = found.setdefault(message.spool_id, (facts, {}, ""))
            assert known[0] == facts
            for entry in message.entries:
                assert entry.number not in known[1]
                known[1][entry.number] = entry
    assert not stopped.gaps
    for spool_id, (facts, entries, _) in found.items():
        content = b"".join(stopped.contents(spool_id))
        found[spool_id] = facts, entries, sha256(content).hexdigest()
    stopped.close()
    return found


def convert_to(kind: QueueKind, directory: Path, disk: IDisk | None = None) -> Converted:
    """Convert the queue in this directory."""
    tools = tools_of(PROVIDERS, disk or PosixDisk(), lambda: NOW, lambda what, done, total: None)
    return convert(settings_of(kind, directory), PROVIDERS.named(kind.provider), tools)
