"""Contents that are not in the object store though their messages are there. Pure.

*Rule*: `MOST` different ones in a row, none found between them, are taken for a wrong bucket, not for lost mail: from then
on nothing is handed out and no mail is taken, until one that was stored before is found.
"""

from __future__ import annotations

from collections.abc import Callable

MOST = 5


class AbsentContents:
    """What is known of them. `changed`: told whenever mail is stopped or goes on."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        """Those that were missed in a row."""
        self.is_stopped = False
        self._changed: Callable[[], None] = lambda: None

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this whenever `is_stopped` has changed."""
        self._changed = changed

    def found(self) -> None:
        """A content was there."""
        self.keys.clear()
        self._set(False)

    def missed(self, key: str) -> None:
        """A content was not there."""
        if key not in self.keys and len(self.keys) < MOST:
            self.keys.append(key)
        if len(self.keys) >= MOST:
            self._set(True)

    def _set(self, is_stopped: bool) -> None:
        if is_stopped is not self.is_stopped:
            self.is_stopped = is_stopped
            self._changed()
