"""The recipients of one transaction: each mailbox is one entry, however often and in whatever spelling it is named.

*Rules*: the first spelling is kept. A command that names a mailbox again is accepted and adds nothing; its parameters are
ignored (RFC 3461 4 lets a server take the first). Limits of recipients count commands, so that the limit shows a client
nothing about mailboxes, and bounds our work.

Mailboxes are compared once, for the whole transaction (`entries`): most transactions name none twice, and that is seen by
few calls for all recipients together. Only where the envelope may be full each command is compared as it comes.

A large envelope is put in another order: `IN_A_ROW` recipients of one domain, then as many of the next one, and so on, round
and round. It is delivered in parts, in its order: so transactions are full, and no domain waits for all of another one.

*Not here*: which addresses are the same mailbox (`mail.directory`), which recipients are permitted (`submit.policy`).
"""

from __future__ import annotations

from mailismus.mail.address import MAX_ADDRESS
from mailismus.mail.directory import Directory
from mailismus.queue.words import BESIDE_ADDRESS

_LARGEST = MAX_ADDRESS + BESIDE_ADDRESS
"""Bytes that an entry takes in an envelope at most."""

IN_A_ROW = 50
"""Recipients of one domain that stand together in a large envelope: as many as a transaction has by default."""
LARGE = 100
"""An envelope of more recipients is large."""


class Recipients:
    """The recipients of one transaction after another: `clear` begins the next.

    `commands`: accepted RCPT commands; `envelope_bytes`: once the envelope may be full, the size of the entries in it, the
    address and `BESIDE_ADDRESS` each.
    """

    __slots__ = ("_addresses", "_mailboxes", "commands", "envelope_bytes")

    def __init__(self) -> None:
        self._addresses: list[bytes] = []
        """In the order of their commands; those of one mailbox are all there while `_mailboxes` is None."""
        self._mailboxes: set[tuple[bytes, bytes]] | None = None
        """The mailboxes of `_addresses`, once the envelope may be full."""
        self.commands = self.envelope_bytes = 0

    def clear(self) -> None:
        """Remove all recipients."""
        if self.commands:
            self._addresses = []
            self.commands = self.envelope_bytes = 0
            self._mailboxes = None

    def add(self, address: bytes, directory: Directory, most_bytes: int) -> bool:
        """Add a recipient, or count the command if its mailbox is there already.

        False: the entry does not fit, because the entries may not exceed `most_bytes` in an envelope. `directory`: the same
        in all calls of a transaction.
        """
        commands = self.commands + 1
        if commands * _LARGEST > most_bytes or self._mailboxes is not None:
            return self._add_compared(address, directory, most_bytes)
        self._addresses.append(address)
        self.commands = commands
        return True

    def _add_compared(self, address: bytes, directory: Directory, most_bytes: int) -> bool:
        """The envelope may be full: compare this mailbox with those that are there."""
        mailboxes = self._mailboxes
        if mailboxes is None:
            self._addresses = self.entries(directory)
            self.envelope_bytes = sum(map(len, self._addresses)) + BESIDE_ADDRESS * len(self._addresses)
            mailboxes = self._mailboxes = set(map(directory.mailbox_of, self._addresses))
        mailbox = directory.mailbox_of(address)
        if mailbox not in mailboxes:
            envelope_bytes = self.envelope_bytes + len(address) + BESIDE_ADDRESS
            if envelope_bytes > most_bytes:
                return False
            mailboxes.add(mailbox)
            self._addresses.append(address)
            self.envelope_bytes = envelope_bytes
        self.commands += 1
        return True

    def entries(self, directory: Directory) -> list[bytes]:
        """The first address of each mailbox, in the order of the commands; in a large envelope by domain (`by_domain`)."""
        addresses = self._addresses
        if len(addresses) > 1 and self._mailboxes is None and not directory.are_of_different_mailboxes(addresses):
            first: dict[tuple[bytes, bytes], bytes] = {}
            for address in addresses:
                first.setdefault(directory.mailbox_of(address), address)
            addresses = list(first.values())
        return addresses if len(addresses) <= LARGE else by_domain(addresses)


def by_domain(addresses: list[bytes]) -> list[bytes]:
    """Put addresses in another order: `IN_A_ROW` of each domain at a time, domains in the order of their first ones."""
    domains: dict[bytes, list[bytes]] = {}
    for address in addresses:
        domains.setdefault(address[address.rfind(b"@") :].lower(), []).append(address)
    if len(domains) == 1:
        return addresses
    found: list[bytes] = []
    begin = 0
    while domains:
        for group in domains.values():
            found += group[begin : begin + IN_A_ROW]
        begin += IN_A_ROW
        domains = {domain: group for domain, group in domains.items() if len(group) > begin}
    return found
