"""The queue manager in short words, for tests: a message accepted by a Deferred, outcomes of one message."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.queue.commits import DEFERRED_COMMITS
from mailismus.queue.content import IDraft
from mailismus.queue.interface import Entry, Message
from mailismus.queue.manager import QueueManager
from mailismus.queue.outcome.disposition import Disposition


def accept(manager: QueueManager, draft: IDraft, envelope: Envelope) -> Deferred[Sequence[SpoolId]]:
    """As `QueueManager.accept`; fires when the message is durable."""
    done: Deferred[Sequence[SpoolId]] = Deferred()
    manager.accept(draft, envelope, DEFERRED_COMMITS, done)
    return done


def settle(manager: QueueManager, message: Message, results: Sequence[tuple[Entry, Outcome]]) -> list[Disposition]:
    """As `QueueManager.settle`, for entries of one message; the dispositions in the order of `results`."""
    found = manager.settle([(message, [entry], outcome) for entry, outcome in results])
    return [disposition for dispositions in found for disposition in dispositions]
