"""Keys that SCRAM derived from a password, so that they are derived once and not for each connection.

*Rules*: a key is found again under the same version of the secret's file, salt and count alone. At most `MAX_KEYS`, the
oldest goes first. The password is not kept. `forget` drops all, when the configuration is read again.
"""

from __future__ import annotations

from collections.abc import Hashable

from mailismus.smtp.auth.mechanism import Derivation, Keys

MAX_KEYS = 100


class KeyMemory:
    """Derived keys, by the secret's version and the derivation."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, Derivation], Keys] = {}

    def get(self, version: Hashable, derivation: Derivation) -> Keys | None:
        """Return the keys; None: they are to be derived."""
        return self._known.get((version, derivation))

    def note(self, version: Hashable, derivation: Derivation, keys: Keys) -> None:
        """Remember derived keys."""
        self._known.pop((version, derivation), None)
        while len(self._known) >= MAX_KEYS:
            self._known.pop(next(iter(self._known)))
        self._known[version, derivation] = keys

    def forget(self) -> None:
        """Forget all keys."""
        self._known.clear()
