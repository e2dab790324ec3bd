"""Credentials for a relay, as the configuration says them. Pure.

*Not here*: the secrets themselves. They are in their files, and are read for each exchange (`deliver.authentication`).
"""

from __future__ import annotations

import attrs

PASSWORD_TYPES = ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN", "LOGIN")
"""Mechanisms with a password, in the order in which they are tried where `types` does not say."""
OBSOLETE_TYPES = ("CRAM-MD5",)
"""Mechanisms with a password that are used only where `types` names them."""
TOKEN_TYPES = ("XOAUTH2",)
"""Mechanisms with a token."""
TYPES = (*PASSWORD_TYPES, *OBSOLETE_TYPES, *TOKEN_TYPES)


@attrs.frozen
class SecretSource:
    """A file with a secret. `version`: which file it was when the configuration was read; it says nothing of the bytes."""

    path: str
    version: bytes = attrs.field(repr=False)


@attrs.frozen
class AuthSettings:
    """`<auth>`: equal ones are the same credentials. `types`: mechanisms, the first that the relay offers is used."""

    types: tuple[str, ...]
    username: str
    password: SecretSource | None
    token: SecretSource | None

    def source_of(self, mechanism: str) -> SecretSource:
        """Return the file with the secret of a mechanism, which is one of `types`."""
        source = self.token if mechanism in TOKEN_TYPES else self.password
        assert source is not None, "the configuration was checked for it"
        return source
