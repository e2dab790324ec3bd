"""New messages: from a submission to the message that the working set keeps."""

from __future__ import annotations

from mailismus.queue.entering import entries_of, message_of, new_entries
from mailismus.queue.interface import Submission
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.working_set import LogMessage
from mailismus.spool.draft import SpoolDraft


def begin_message(submission: Submission, draft: SpoolDraft) -> LogMessage | None:
    """Return the message of a submission, with its entries; None: it has none."""
    message, entries = message_of(submission, draft.stored_bytes, []), entries_of(submission)
    if not entries:
        return None
    if not draft.is_in_silo:
        return LogMessage(message, entries, LogEnvelope(len(entries)), draft.content())
    known = LogMessage(message, entries, LogEnvelope(len(entries)))
    known.put_in_silo()
    return known


def begin_new_message(submission: Submission, draft: SpoolDraft, content: bytes) -> LogMessage:
    """Return the message of a submission of new mail whose content is in memory. The message has its entries too: it is
    handed out as it is."""
    entries = new_entries(submission.envelope.recipients, submission.received_at)
    return LogMessage(message_of(submission, draft.stored_bytes, entries), entries, LogEnvelope(len(entries)), content)
