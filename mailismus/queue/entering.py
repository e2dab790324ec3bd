"""What a commit makes of a submission and of a settlement, the same for every provider: message, entries, successors. Pure.

*Not here*: where they are kept (`queue.providers`); what becomes of an outcome (`queue.outcome`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, repeat

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, EndedEntries, Entry, Message, Settlement, Submission


def message_of(submission: Submission, stored_bytes: int, entries: list[Entry]) -> Message:
    """Return the message of a submission with these entries. `stored_bytes`: of its content, dot-stuffed."""
    draft, envelope, received_at, _ = submission
    sender, recipients, client, eightbit, stuffed_dots, words = envelope
    return Message(
        draft.spool_id,
        sender,
        client,
        eightbit,
        received_at,
        stored_bytes - stuffed_dots,
        len(recipients),
        entries,
        stuffed_dots,
        words,
    )


def entries_of(submission: Submission) -> list[Entry]:
    """Return the entries of a submission (`Submission.placements`)."""
    recipients = submission.envelope.recipients
    if submission.placements is None:
        return new_entries(recipients, submission.received_at)
    return [
        Entry(p.number, recipients[p.number - 1], p.area, p.due_at, p.attempts, p.reply, p.host, p.words)
        for p in submission.placements
    ]


def new_entries(recipients: Sequence[bytes], received_at: float) -> list[Entry]:
    """Return the entries of new mail to these recipients."""
    incoming = Area.INCOMING
    if len(recipients) == 1:
        return [Entry(1, recipients[0], incoming, received_at)]
    return list(map(Entry, count(1), recipients, repeat(incoming), repeat(received_at)))


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
    settlements: Sequence[Settlement], ended: Sequence[EndedEntries]
) -> tuple[Sequence[Settlement], Sequence[EndedEntries]]:
    """Return the settlements that replace entries, and the entries that are removed: `ended`, and those of the others."""
    removed: dict[SpoolId, dict[int, None]] = {}
    for settlement in settlements:
        if settlement.area is None:
            spool_id, number = settlement.queue_id
            removed.setdefault(spool_id, {})[number] = None
    if not removed:
        return settlements, ended
    return [settlement for settlement in settlements if settlement.area is not None], [
        *ended,
        *((spool_id, list(numbers)) for spool_id, numbers in removed.items()),
    ]


def removals_of(ended: Sequence[EndedEntries]) -> list[Settlement]:
    """Return the removals as settlements."""
    return [Settlement(QueueId(spool_id, number), None) for spool_id, numbers in ended for number in numbers]
