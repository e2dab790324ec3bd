"""All that lives, share by share, as it would be delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import attrs

from mailismus.queue.interface import Area, Entry, Gap
from mailismus.queue.providers.distributed.format.ids import CLOCKS_DIFFER_S
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.stopped.look import SharedLook


@attrs.define
class Living:
    """A walk over a queue that nobody changes."""

    look: SharedLook
    damage: str = ""
    """Something that could not be read, in a sentence without its full stop."""

    async def shares(self) -> AsyncIterator[tuple[Share, Sequence[Entry]]]:
        """The shares of which something lives, and what does. Raises `NotDone`."""
        look = self.look
        # The clock of a server may have been ahead, and that of this host may be behind, by whatever it is.
        until = max(look.now(), await look.rows.now()) + max(look.view.reading().slice_window_s, CLOCKS_DIFFER_S)
        gaps = list[Gap]()
        for area in Area:
            async for living in look.starts.living(area, until, gaps):
                entries = await self._counting(living.share, living.entries)
                if entries:
                    yield living.share, entries
        if gaps:
            self.note(f"{gaps[0].path}: {gaps[0].reason}")

    async def _counting(self, share: Share, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Of these entries those that do not live in another share."""
        if share.origin is None:
            return entries
        found = await read_share(self.look.rows, share.name)
        if found.condition is Condition.LIVES:
            return [entry for entry in entries if entry.number in found.left]
        if found.condition is not Condition.OVER:
            self.note(f"{share_name(share.name)}: {found.condition.value}")
        return ()

    def note(self, damage: str) -> None:
        """Something can't be read."""
        self.damage = self.damage or damage
