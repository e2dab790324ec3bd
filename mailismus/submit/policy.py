"""The policy: who may send what to whom, as the reply to each command. Plain decisions, no state, no I/O.

*Rules*: a recipient of a local domain must exist; any other is taken from relay clients alone, whatever the address looks
like: only what the grammar says is its domain counts (`user%other@ours` is a user of ours, who does not exist). The
sender's address opens nothing. Postmaster is always taken (RFC 5321 4.5.1). Limits: 0 is none.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.config.values.settings import ServerSettings
from mailismus.mail.directory import Directory
from mailismus.smtp import replies


class Standing(enum.Enum):
    """What a client may."""

    STRANGER = "mail to our users alone"
    RELAY_CLIENT = "mail to anyone"


@attrs.frozen
class Policy:
    """The rules of one listener. `max_envelope_bytes`: what the provider can keep in one envelope."""

    directory: Directory
    limits: ServerSettings
    max_envelope_bytes: int

    def standing_of(self, host: str) -> Standing:
        """The standing of the client with this IP address."""
        return Standing.RELAY_CLIENT if host in self.limits.relay_clients else Standing.STRANGER

    def check_sender(self, size_bytes: int, messages: int) -> bytes:
        """The reply to MAIL, given the declared size (without dot-stuffing; 0: none) and how many messages the session has
        sent."""
        limits = self.limits
        if 0 < limits.maxmessages <= messages:
            return replies.TOO_MANY_MESSAGES
        if 0 < limits.maxmsgsize < size_bytes:
            return replies.TOO_LARGE
        return replies.SENDER_OK

    def check_recipient(self, recipient: bytes, standing: Standing, commands: int) -> bytes:
        """The reply to RCPT, given how many of the transaction were accepted. Whether the envelope has room is another
        question: `recipients.Recipients.add`."""
        if self.directory.is_local(recipient):
            if self.directory.user_of(recipient) is None:
                return replies.UNKNOWN_USER
        elif standing is not Standing.RELAY_CLIENT:
            return replies.RELAY_DENIED
        if 0 < self.limits.maxrecips <= commands:
            return replies.TOO_MANY_RECIPIENTS
        return replies.RECIPIENT_OK
