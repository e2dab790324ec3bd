"""A budget: a limit, in bytes of memory, that several objects share. Pure."""

from __future__ import annotations

import attrs


@attrs.define
class Budget:
    """A limit, in bytes of memory, that several objects share."""

    limit: int
    used: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the limit is exceeded."""
        return self.used > self.limit

    def add(self, size: int) -> None:
        """Use so many more, whether they fit or not."""
        self.used += size

    def take(self, size: int) -> bool:
        """Use so many more, if they fit; return whether they do."""
        used = self.used + size
        if used > self.limit:
            return False
        self.used = used
        return True

    def give_back(self, size: int) -> None:
        """So many are used no more."""
        self.used -= size
