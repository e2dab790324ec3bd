"""Injection in this process: over what a provider opens for writers beside its server. Blocks.

*Not here*: the checks (`submit.injection`), the files (`queue.provider.IQueueWriter`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from twisted.internet.task import Clock

from mailismus.admin.protocol.injecting import refusal_of
from mailismus.config.values.settings import Settings
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError, StorageError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.injected import Injected
from mailismus.observe.maillog import MailLog
from mailismus.queue.acts.act_file import read_acts
from mailismus.queue.acts.rule import rules_in_force
from mailismus.queue.arriving import arrival_of
from mailismus.queue.content import IDraft
from mailismus.queue.files.state_file import DIRECTORY
from mailismus.queue.filter import FilterError
from mailismus.queue.interface import CommitListener, M, Submission
from mailismus.queue.provider import IQueueWriter, Placing
from mailismus.submit.injection import Injection, injection_policy
from mailismus.submit.reception import Desk


class _TimeOfDay(Clock):
    """The time of day; nothing is timed by it."""

    def seconds(self) -> float:
        return time.time()


class _Watched:
    """What reception asks of a queue, over a writer; keeps the first trouble."""

    def __init__(self, writer: IQueueWriter, placing: Placing) -> None:
        self._writer, self._placing = writer, placing
        self.trouble: StorageError | None = None

    def draft(self) -> IDraft:
        try:
            return self._writer.draft()
        except StorageError as error:
            self.trouble = self.trouble or error
            raise

    def accept(self, draft: IDraft, envelope: Envelope, listener: CommitListener[M], mark: M) -> None:
        self._writer.accept(draft, envelope, _Telling(listener, self), mark, self._placing)

    def note(self, error: StorageError) -> None:
        """A commit failed."""
        self.trouble = self.trouble or error


class _Telling(CommitListener[M]):
    """Passes a commit's end on."""

    def __init__(self, listener: CommitListener[M], watched: _Watched) -> None:
        self._listener, self._watched = listener, watched

    def on_durable(self, marks: Sequence[M], gone: Sequence[Sequence[int]]) -> None:
        self._listener.on_durable(marks, ())

    def on_failed(self, marks: Sequence[M], error: StorageError) -> None:
        self._watched.note(error)
        self._listener.on_failed(marks, error)


def placing_of(rootpath: str) -> Placing:
    """Return what the rules for mail to come in the queue's file of acts, as they are at that moment, make of a message."""
    disk = PosixDisk(Access.READ_ONLY)

    def placing(submission: Submission) -> Submission:
        try:
            arrival = arrival_of(submission, rules_in_force(read_acts(disk, os.path.join(rootpath, DIRECTORY)).values()))
        except (OSError, FilterError) as error:
            raise Unavailable(f"the rules for mail to come can't be read: {error}") from error
        return submission if arrival is None else arrival.submission

    return placing


def inject_beside(
    writer: IQueueWriter,
    settings: Settings,
    maillog: MailLog,
    sender: bytes,
    recipients: Sequence[bytes],
    pieces: Iterable[bytes],
) -> str:
    """Put a message into the queue; return its id when it is durable. Raises `StartError`, `OSError` of the message's
    source."""
    watched = _Watched(writer, placing_of(settings.queue.rootpath))
    policy = injection_policy(settings.listeners, settings.directory, writer.max_envelope_bytes)
    desk = Desk(settings.application.announcehost, policy, watched, maillog, _TimeOfDay())
    ends: list[Injected] = []
    injection = Injection(desk, os.getuid(), ends.append, lambda: None)
    try:
        if injection.begin(sender, recipients):
            for piece in pieces:
                injection.write(piece)
                if ends:
                    break
            injection.finish()
    finally:
        injection.abandon()
    (end,) = ends
    if end.name:
        return end.name
    trouble = watched.trouble
    if trouble is not None:
        is_full = isinstance(trouble, Unavailable) and trouble.full
        raise StartError(os.EX_TEMPFAIL if is_full else os.EX_IOERR, f"the message is not in the queue: {trouble}")
    refusal = refusal_of(end)
    raise StartError(refusal.status, refusal.text)
