"""The directory: which domains are ours and which users live there.

Users are valid at every local domain; case is ignored in both. Bare `postmaster` and postmaster at every local domain
always exist (RFC 5321 4.5.1) and are the directory's `postmaster` user.
"""

from __future__ import annotations

from collections.abc import Set

import attrs

from mailismus.mail.address import domain_of, local_part_of, mailbox_of


@attrs.frozen
class Directory:
    """Local domains and users, lower case: sets that nobody changes. `postmaster` is one of `users`, or empty when there are
    no local domains."""

    domains: Set[bytes] = frozenset()
    users: Set[bytes] = frozenset()
    postmaster: bytes = b""

    def is_local(self, address: bytes) -> bool:
        """Whether mail for this address stays here: a local domain, or the bare postmaster."""
        domain = domain_of(address)
        return domain in self.domains if domain else address.lower() == b"postmaster"

    def user_of(self, address: bytes) -> bytes | None:
        """The user whose mail a local address is, or None if there is no such user."""
        local_part = local_part_of(address).lower()
        if local_part == b"postmaster" and self.postmaster:
            return self.postmaster
        return local_part if local_part in self.users else None

    def mailbox_of(self, address: bytes) -> tuple[bytes, bytes]:
        """What tells whether two addresses are one mailbox: all those of a user of ours are; of others see
        `mail.address.mailbox_of`."""
        local_part, _, domain = address.rpartition(b"@")
        domain = domain.lower()
        if local_part and domain not in self.domains and b'"' not in address and b"[" not in address:
            return local_part, domain  # the usual form of another's address, once for each recipient of a large envelope
        user = self.user_of(address) if self.is_local(address) else None
        return mailbox_of(address) if user is None else (user, b"")
