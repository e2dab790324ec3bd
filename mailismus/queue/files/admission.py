"""Admission control: refuses a message before its content is sent, while it could not be committed. The client keeps its
mail.

*Rules*: 452 (`full`) for lack of space, 451 for every other reason. Deliveries and settlements are never refused.

*Not here*: what keeps the queue of one provider from taking mail: the provider's own `check`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mailismus.errors import Unavailable
from mailismus.queue.files.free_space import SpaceWatch


class LocalAdmission(ABC):
    """Raises `Unavailable` if any component cannot take mail."""

    def __init__(self, space: SpaceWatch) -> None:
        self._space = space
        self._is_closing = False

    def close(self) -> None:
        """Admit no further message."""
        self._is_closing = True

    def reason(self) -> str:
        """Return why no mail is accepted now; empty: mail is accepted."""
        try:
            self.check()
        except Unavailable as error:
            return str(error)
        return ""

    @abstractmethod
    def check(self) -> None:
        """Raise `Unavailable` if a message could not be committed now, or only after a long wait."""
