"""The policy: who may send mail to whom, as the reply to each command. Plain decisions, no state, no I/O.

*Rules*: a recipient of a local domain must exist. Mail to other domains is accepted from relay clients only, whatever the
address looks like: only the domain by the grammar counts (`user%other@ours` is an unknown user of ours). The sender's
address permits nothing. Mail to postmaster is always accepted (RFC 5321 4.5.1). Limits: 0 is none.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.config.values.settings import ServerSettings
from mailismus.mail.directory import Directory
from mailismus.smtp import replies


class Standing(enum.Enum):
    """The permissions of a client."""

    STRANGER = "mail to our users alone"
    RELAY_CLIENT = "mail to anyone"


# Read for each client and recipient: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_STRANGER, _RELAY_CLIENT = Standing.STRANGER, Standing.RELAY_CLIENT


@attrs.frozen
class Policy:
    """The rules of one listener. `max_envelope_bytes`: the largest envelope that the queue provider can store."""

    directory: Directory
    limits: ServerSettings
    max_envelope_bytes: int

    def standing_of(self, host: str) -> Standing:
        """Return the standing of the client with this IP address."""
        return _RELAY_CLIENT if host in self.limits.relay_clients else _STRANGER

    def check_sender(self, size_bytes: int, messages: int) -> bytes:
        """Return the reply to MAIL.

        `size_bytes`: as declared, without dot-stuffing; 0: not declared. `messages`: messages sent in this session.
        """
        limits = self.limits
        if 0 < limits.maxmessages <= messages:
            return replies.TOO_MANY_MESSAGES
        if 0 < limits.maxmsgsize < size_bytes:
            return replies.TOO_LARGE
        return replies.SENDER_OK

    def check_recipient(self, recipient: bytes, standing: Standing, commands: int) -> bytes:
        """Return the reply to RCPT. `commands`: RCPT commands of the transaction that were accepted.

        Whether the envelope has room: `recipients.Recipients.add`.
        """
        directory = self.directory
        _, at, domain = recipient.rpartition(b"@")
        if at and domain.isascii() and domain.lower() not in directory.domains:  # it is plain that the address is not local
            if standing is not _RELAY_CLIENT:
                return replies.RELAY_DENIED
        else:
            owner = directory.owner_of(recipient)
            if owner is None:
                if standing is not _RELAY_CLIENT:
                    return replies.RELAY_DENIED
            elif not owner:
                return replies.UNKNOWN_USER
        if 0 < self.limits.maxrecips <= commands:
            return replies.TOO_MANY_RECIPIENTS
        return replies.RECIPIENT_OK
