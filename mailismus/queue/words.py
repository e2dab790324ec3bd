"""Checks of words before a commit, common to all providers (`mail.words`), and what a recipient counts in an envelope."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.words import check_message_words, check_recipient_words
from mailismus.queue.interface import Settlement, Submission

BESIDE_ADDRESS = 64
"""Bytes that a recipient counts in an envelope beside its address and words (`IQueue.max_envelope_bytes`)."""
BESIDE_UTF8 = 36
"""Bytes that it counts more where the message may need SMTPUTF8: for words of the message, and for a sender each byte of
which is written in three."""
MARK_BYTES = 48
"""Bytes of a recipient's words that count nothing: those by which a rule for mail to come marks an entry (`arriving`), at
most, with the spaces around them. So an envelope of any size can be marked, and none is smaller for it."""


def check_words(submissions: Sequence[Submission], settlements: Sequence[Settlement], max_envelope_bytes: int) -> bool:
    """Whether any of these has words. Raise `ValueError`, an error of the program, for words that no provider keeps, and for
    an envelope that is too large with its words."""
    has_words = False
    for submission in submissions:
        if submission.envelope.words is not None or submission.placements is not None:
            has_words = _check_submission(submission, max_envelope_bytes) or has_words
    for settlement in settlements:
        if settlement.words:
            check_recipient_words(settlement.words)
            has_words = True
    return has_words


def _check_submission(submission: Submission, max_envelope_bytes: int) -> bool:
    envelope, placements = submission.envelope, submission.placements or ()
    if envelope.words is not None:
        check_message_words(envelope.words)
    for placement in placements:
        if placement.words is not None:
            check_recipient_words(placement.words)
    sizes = [len(placement.words) for placement in placements if placement.words is not None]
    if envelope.words is None and not sizes:
        return False
    each = BESIDE_ADDRESS + len(envelope.words or b"")
    size = sum(each + len(recipient) for recipient in envelope.recipients)
    size += sum(words - MARK_BYTES for words in sizes if words > MARK_BYTES)
    if size > max_envelope_bytes:
        raise ValueError(f"an envelope of {size} bytes with its words, more than {max_envelope_bytes}")
    return True
