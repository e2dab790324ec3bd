"""The answer to `settings`: what the running server's configuration says, value by value."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.admin.protocol.settings import encode_setting
from mailismus.config.values.effective import Effective
from mailismus.queue.gaps import Gaps

PART_SETTINGS = 100
"""Values of one part."""


class SettingsAnswer:
    """Every effective value, in the table's order."""

    def __init__(self, effective: Sequence[Effective]) -> None:
        self.gaps = Gaps()
        self._left = effective

    async def next(self) -> list[bytes] | None:
        part, self._left = self._left[:PART_SETTINGS], self._left[PART_SETTINGS:]
        return [encode_setting(value) for value in part] or None

    def close(self) -> None:
        """It holds nothing open."""
