"""Mailboxes: the names under which an LMTP server knows our users. Pure.

*Rules*: an address is left as it was written where its local part is the user's name. Postmaster and quoted names are
written as the user who gets the mail, at the same domain. The server decides about users that this directory does not know
any more.
"""

from __future__ import annotations

import attrs

from mailismus.mail.directory import Directory


@attrs.frozen(eq=False)
class Mailboxes:
    """The mailboxes of one LMTP server: those of the users of this directory."""

    directory: Directory

    def address_of(self, recipient: bytes) -> bytes:
        """The address that RCPT has for a recipient."""
        user = self.directory.owner_of(recipient)
        local_part, at, domain = recipient.rpartition(b"@")
        if not user or local_part.lower() == user:
            return recipient
        return user + at + domain if at else user
