"""Destinations by domain: which `<destination>` of the configuration a recipient's domain belongs to (pure).

`mail.example` is that domain alone, `*.mail.example` every domain below it, at any depth. The first destination in the
order of the file that has a pattern for the domain is its destination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mailismus.config.values.settings import DestinationSettings

_ANY = b"*."


class Destinations:
    """The destinations of the configuration, by domain."""

    __slots__ = ("_all", "_exact", "_wild")

    def __init__(self, destinations: Sequence[DestinationSettings] = ()) -> None:
        self._all = tuple(destinations)
        self._exact: dict[bytes, int] = {}
        self._wild: dict[bytes, int] = {}
        for number, destination in enumerate(self._all):
            for pattern in destination.domains:
                if pattern.startswith(_ANY):
                    self._wild.setdefault(pattern[len(_ANY) :], number)
                else:
                    self._exact.setdefault(pattern, number)

    def __iter__(self) -> Iterator[DestinationSettings]:
        return iter(self._all)

    def of(self, patterns: tuple[bytes, ...]) -> DestinationSettings | None:
        """The destination with these patterns; None: there is none."""
        return next((one for one in self._all if one.domains == patterns), None) if patterns else None

    def find(self, domain: bytes) -> DestinationSettings | None:
        """The destination of a domain, in any case of letters; None: there is none."""
        if not self._all:
            return None
        domain = domain.lower()
        none = len(self._all)
        found = self._exact.get(domain, none)
        if self._wild:
            dot = domain.find(b".")
            while dot >= 0:
                found = min(found, self._wild.get(domain[dot + 1 :], none))
                dot = domain.find(b".", dot + 1)
        return self._all[found] if found < none else None


NO_DESTINATIONS = Destinations()
