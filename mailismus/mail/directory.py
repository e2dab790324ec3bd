"""The directory: local domains and their users.

Users are valid at every local domain; case is ignored in both. Bare `postmaster` and postmaster at every local domain
always exist (RFC 5321 4.5.1) and are the directory's `postmaster` user.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import attrs

from mailismus.mail.address import domain_of, local_part_of, mailbox_of

_QUOTE, _BRACKET = b'"['
# Numbers, because `in` first takes bytes for a number, and that error costs more than the search.
_FEW_DOMAINS = 4
"""So many local domains are looked for among all addresses at once."""


@attrs.frozen
class Directory:
    """Local domains and users, in lower case; the sets never change. `postmaster` is one of `users`, or empty if there are
    no local domains."""

    domains: Set[bytes] = frozenset()
    users: Set[bytes] = frozenset()
    postmaster: bytes = b""

    def owner_of(self, address: bytes) -> bytes | None:
        """The user who owns an address; `b""`: it is local, and there is no such user; None: it is not local. Mail stays
        here if the address is local: its domain is, or it is the bare postmaster."""
        domain = address[address.rfind(b"@") + 1 :].lower()
        is_local = domain in self.domains or (domain == b"postmaster" and b"@" not in address)
        if not is_local and (domain.isascii() or domain_of(address) not in self.domains):
            return None
        return self.user_of(address) or b""

    def user_of(self, address: bytes) -> bytes | None:
        """The user who owns a local address, or None if there is no such user."""
        local_part = local_part_of(address).lower()
        if local_part == b"postmaster" and self.postmaster:
            return self.postmaster
        return local_part if local_part in self.users else None

    def mailbox_of(self, address: bytes) -> tuple[bytes, bytes]:
        """A key that is equal for all addresses of one mailbox: for all those of a local user; for other addresses see
        `mail.address.mailbox_of`."""
        local_part, _, domain = address.rpartition(b"@")
        domain = domain.lower()
        is_usual = _QUOTE not in address and _BRACKET not in address and domain.isascii()
        if local_part and domain not in self.domains and is_usual:
            return local_part, domain  # fast path: the usual form, once for each recipient of a large envelope
        user = self.owner_of(address)
        return (user, b"") if user else mailbox_of(address)

    def are_of_different_mailboxes(self, addresses: Sequence[bytes]) -> bool:
        """Whether it is plain that no two of these addresses are of one mailbox; False: they have to be compared
        (`mailbox_of`). It costs little, and is sure where no address is local or written unusually."""
        domains = self.domains
        if len(domains) > _FEW_DOMAINS:
            return False
        together = b" %b " % b" ".join(addresses).lower()
        if _QUOTE in together or _BRACKET in together or not together.isascii() or together.find(b" postmaster ") >= 0:
            return False
        for domain in domains:
            if together.find(b"@%b " % domain) >= 0:
                return False
        return len(set(map(bytes.lower, addresses))) == len(addresses)


class DirectoryInUse:
    """The directory of the configuration that is in use, for those who ask about one address after a reload too."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def reload(self, directory: Directory) -> None:
        """Use another one from now on."""
        self._directory = directory

    def is_local(self, address: bytes) -> bool:
        """Whether an address is at a local domain, or the bare postmaster."""
        return self._directory.owner_of(address) is not None
