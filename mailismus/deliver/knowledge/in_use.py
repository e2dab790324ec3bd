"""Records in use: a bounded dict, from which a record goes that was not used for long (pure).

*Rules*: a record is made when it is asked for. Where there are `most`, the first one that was not used since its last turn
goes for it; one that was used gets another turn, behind all others. So a use costs the setting of a flag.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar


class Usable(Protocol):
    """A record. It notes its uses itself."""

    is_used: bool
    """Whether it was used since its last turn."""

    def take_turn(self) -> None:
        """Begin another turn: not used since then."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Usable)


class InUse(OrderedDict[K, V]):
    """`[key]` makes a record that is missing, `get` does not. A record that is there costs no more than in a dict."""

    def __init__(self, make: Callable[[], V], most: int) -> None:
        super().__init__()
        self._make, self._most = make, most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self._drop()
        made = self[key] = self._make()
        return made

    def _drop(self) -> None:
        while True:
            key, record = next(iter(self.items()))
            if not record.is_used:
                del self[key]
                return
            record.take_turn()
            self.move_to_end(key)
