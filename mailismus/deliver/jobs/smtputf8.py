"""Messages that need SMTPUTF8, and what a host without it can get of them (RFC 6531; pure).

| what needs it | for a host without it |
|---|---|
| a domain in U-labels | it becomes A-labels |
| the local part of a recipient | this recipient fails: 5.6.7; others go on |
| the local part of the sender | all recipients fail: 5.6.7 |
| a header in UTF-8, of a message that was declared with SMTPUTF8 | all recipients fail: 5.6.9 |

*Not here*: which messages are declared (`submit.reception`), 8-bit content (`capabilities`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.reply import Reply
from mailismus.mail.utf8 import has_utf8_header, to_ascii_address

UTF8_HEADER = Reply(550, b"5.6.9", b"the message has a header in UTF-8, and this host does not offer SMTPUTF8")
UTF8_SENDER = Reply(553, b"5.6.7", b"the sender's address is in UTF-8, and this host does not offer SMTPUTF8")
UTF8_RECIPIENT = Reply(553, b"5.6.7", b"this address is in UTF-8, and this host does not offer SMTPUTF8")


def needs_utf8(words: bytes | None, sender: bytes, recipients: Sequence[bytes]) -> bool:
    """Whether a transaction needs SMTPUTF8. `words`: of the message (hot path)."""
    return not b"".join((sender, *recipients)).isascii() or (words is not None and has_utf8_header(words))


def to_ascii_envelope(
    words: bytes | None, sender: bytes, recipients: Sequence[bytes]
) -> tuple[bytes, list[bytes | None]] | Reply:
    """Return sender and recipients for a host without SMTPUTF8, None in the place of each that it can't get; or why it can't
    get the message for any."""
    if has_utf8_header(words):
        return UTF8_HEADER
    ascii_sender = to_ascii_address(sender)
    if ascii_sender is None:
        return UTF8_SENDER
    found = [to_ascii_address(recipient) for recipient in recipients]
    return (ascii_sender, found) if any(found) else UTF8_RECIPIENT
