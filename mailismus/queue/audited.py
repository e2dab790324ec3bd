"""Audit record of an entry that has left the queue (pure)."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action, Audited
from mailismus.queue.interface import Entry, Message
from mailismus.queue.outcome.disposition import Disposition


def audited(
    action: Action,
    message: Message,
    entry: Entry,
    received_at: float,
    reply: Reply | None,
    host: bytes,
    disposition: Disposition,
    attempts: int,
    report: SpoolId | None = None,
) -> Audited:
    """Return the audit record of an entry. `received_at`: arrival of the message by the clock of now, UTC seconds; `reply`:
    the reply that decided the outcome, given by `host`."""
    return Audited(
        action,
        message.spool_id,
        entry.number,
        message.sender,
        message.client,
        entry.final_recipient,
        host,
        reply,
        disposition.value,
        attempts,
        received_at,
        report,
        entry.original_recipient,
    )


def audited_bounce(action: Action, message: Message, entry: Entry, report: SpoolId | None = None) -> Audited:
    """Return the audit record of a bounce. Its last reply decided the outcome; a transient one was final only because the
    entry expired."""
    reply = entry.reply
    is_permanent = reply is None or reply.is_permanent
    disposition = Disposition.BOUNCED if is_permanent else Disposition.EXPIRED
    return audited(action, message, entry, message.received_at, reply, entry.host, disposition, entry.attempts, report)
