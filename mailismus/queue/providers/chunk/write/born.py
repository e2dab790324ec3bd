"""Born numbers: the numbers of files that this run has made, while old ones are still being read.

*Rules*: a number is noted before its first name is made in mess, and that of another process's message before this server
takes it. So a name of a number that is not in here is an old one, or of a message that this server does not have.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager


class BornNumbers:
    """The numbers. Writers and the reader of old ones are threads of one process."""

    def __init__(self) -> None:
        self._numbers: set[int] | None = set()
        self._lock = threading.Lock()

    def add(self, number: int) -> None:
        """A file of this number was made, or found beside the old ones."""
        with self._lock:
            if self._numbers is not None:
                self._numbers.add(number)

    def __contains__(self, number: int) -> bool:
        return self._numbers is not None and number in self._numbers

    def held(self) -> AbstractContextManager[object]:
        """While it is entered no number is added: its file gets no name in mess."""
        return self._lock

    def end(self) -> None:
        """All old ones are read: note nothing more."""
        with self._lock:
            self._numbers = None
