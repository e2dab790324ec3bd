"""What a commit makes of a submission and of a settlement, the same for every provider: message, entries, successors. Pure.

*Not here*: where they are kept (`queue.providers`); what becomes of an outcome (`queue.outcome`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Message, Settlement, Submission


def message_of(submission: Submission, stored_bytes: int) -> Message:
    """Return the message of a submission, without entries. `stored_bytes`: of its content, dot-stuffed."""
    envelope = submission.envelope
    return Message(
        submission.draft.spool_id,
        envelope.sender,
        envelope.client,
        envelope.eightbit,
        submission.received_at,
        stored_bytes - envelope.stuffed_dots,
        len(envelope.recipients),
        [],
        envelope.stuffed_dots,
        envelope.words,
    )


def entries_of(submission: Submission) -> list[Entry]:
    """Return the entries of a submission (`Submission.placements`)."""
    recipients, received_at = submission.envelope.recipients, submission.received_at
    if submission.placements is None:
        incoming = Area.INCOMING
        return [Entry(number, recipient, incoming, received_at) for number, recipient in enumerate(recipients, 1)]
    return [
        Entry(p.number, recipients[p.number - 1], p.area, p.due_at, p.attempts, p.reply, p.host, p.words)
        for p in submission.placements
    ]


def successor_of(entry: Entry, settlement: Settlement, area: Area) -> Entry:
    """Return the entry that takes the place of a settled one. Words stay unless the settlement has others."""
    words = entry.words if settlement.words is None else settlement.words or None
    return Entry(
        entry.number,
        entry.recipient,
        area,
        settlement.due_at,
        settlement.attempts,
        settlement.reply,
        settlement.host,
        words,
    )


def split_ended(
    settlements: Sequence[Settlement], ended: Sequence[QueueId]
) -> tuple[Sequence[Settlement], Sequence[QueueId]]:
    """Return the settlements that replace entries, and the entries that are removed: `ended`, and those of the others."""
    if all(settlement.area is not None for settlement in settlements):
        return settlements, ended
    removed = [settlement.queue_id for settlement in settlements if settlement.area is None]
    return [settlement for settlement in settlements if settlement.area is not None], [*ended, *removed]
