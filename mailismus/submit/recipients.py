"""The recipients of one transaction: each mailbox is one entry, however often and in whatever spelling it is named.

*Rules*: the first spelling is kept. A command that names a mailbox again is accepted and adds nothing; its parameters are
ignored (RFC 3461 4 lets a server take the first). Limits of recipients count commands, so that the limit shows a client
nothing about mailboxes, and bounds our work.

*Not here*: which addresses are the same mailbox (`mail.directory`), which recipients are permitted (`submit.policy`).
"""

from __future__ import annotations

from mailismus.mail.directory import Directory

ENTRY_BYTES = 64
"""Bytes that a recipient counts in an envelope, besides its address (`IQueue.max_envelope_bytes`)."""


class Recipients:
    """The recipients of one transaction after another: `clear` begins the next.

    `addresses`: the entries, in the order of their first RCPT; `commands`: accepted RCPT commands; `envelope_bytes`: size of
    the entries in an envelope, `ENTRY_BYTES` and the address each.
    """

    __slots__ = ("_mailboxes", "addresses", "commands", "envelope_bytes")

    def __init__(self) -> None:
        self.addresses: list[bytes] = []
        self._mailboxes: set[tuple[bytes, bytes]] = set()
        """The mailboxes of `addresses`, from the second command on: most transactions have one recipient."""
        self.commands = self.envelope_bytes = 0

    def clear(self) -> None:
        """Remove all recipients."""
        if self.commands:
            self.addresses = []
            self.commands = self.envelope_bytes = 0
            if self._mailboxes:
                self._mailboxes = set()

    def add(self, address: bytes, directory: Directory, most_bytes: int) -> bool:
        """Add a recipient, or count the command if its mailbox is there already.

        False: the entry does not fit, because `envelope_bytes` may not exceed `most_bytes`. `directory`: the same in all
        calls of a transaction.
        """
        addresses, mailboxes, mailbox = self.addresses, self._mailboxes, None
        if addresses:
            if not mailboxes:
                mailboxes.add(directory.mailbox_of(addresses[0]))
            mailbox = directory.mailbox_of(address)
            if mailbox in mailboxes:
                self.commands += 1
                return True
        envelope_bytes = self.envelope_bytes + len(address) + ENTRY_BYTES
        if envelope_bytes > most_bytes:
            return False
        if mailbox is not None:
            mailboxes.add(mailbox)
        addresses.append(address)
        self.commands += 1
        self.envelope_bytes = envelope_bytes
        return True
