"""Contents in memory, within a budget: those that came in here, and those that were read. Pure."""

from __future__ import annotations

from collections import OrderedDict

from mailismus.mail.ids import SpoolId

LARGEST = 128 << 10
"""Bytes of a content that is kept."""


class KeptContents:
    """The contents that were needed last. `limit`: bytes of all."""

    def __init__(self, limit: int) -> None:
        self._limit, self._used = limit, 0
        self._contents: OrderedDict[SpoolId, bytes] = OrderedDict()

    def keep(self, spool_id: SpoolId, content: bytes) -> None:
        """Keep a content, if it is small enough; those that were not needed for the longest time make room."""
        if len(content) > LARGEST or spool_id in self._contents:
            return
        self._contents[spool_id] = content
        self._used += len(content)
        while self._used > self._limit:
            self._used -= len(self._contents.popitem(last=False)[1])

    def get(self, spool_id: SpoolId) -> bytes | None:
        """The content, if it is kept."""
        content = self._contents.get(spool_id)
        if content is not None:
            self._contents.move_to_end(spool_id)
        return content

    def has(self, spool_id: SpoolId) -> bool:
        """Whether the content is kept. It is not needed now."""
        return spool_id in self._contents

    def forget(self, spool_id: SpoolId) -> None:
        """The message is over."""
        self._used -= len(self._contents.pop(spool_id, b""))
