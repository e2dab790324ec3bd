"""Which messages an act has counted: one whose entries lie in several slices counts once. Pure."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId

MOST = 10_000
"""Messages that are known, at most: 1 to 2 MB while the act goes on."""


class CountedMessages:
    """The messages that were met last. One that comes again behind `MOST` others, or behind a start, counts again."""

    def __init__(self) -> None:
        self._latest: dict[SpoolId, None] = {}

    def is_new(self, spool_id: SpoolId) -> bool:
        """Note a message. Return whether it was not known."""
        is_known = spool_id in self._latest
        if is_known:
            del self._latest[spool_id]
        self._latest[spool_id] = None
        if len(self._latest) > MOST:
            del self._latest[next(iter(self._latest))]
        return not is_known
