"""Objects, and whose they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial

from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import PROBE_KEYS
from mailismus.queue.providers.distributed.fsck.fault import SharedFault, fault
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind as Kind
from mailismus.queue.providers.distributed.fsck.repairs import LOST, SharedRepairs
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.identity.epochs import COUNTER_BITS
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows

PAGE = 1000
_LIVE = (Condition.LIVES, Condition.UNDER_WAY, Condition.DAMAGED)
_KEY = re.compile(rf"mail/[0-9]{{1,9}}/([0-9a-f]{{16}})(?:{LOST})?")
_KNOWN = 1000
"""Contents whose state is kept: that of a message with several shares is read once."""


class ContentCheck:
    """The contents of one queue."""

    def __init__(
        self,
        objects: IObjects,
        rows: IRows,
        finding: ShareFinding,
        repairs: SharedRepairs,
        wanted: Collection[str] | None = None,
    ) -> None:
        """`wanted`: keys of the contents that are read; None: all."""
        self._objects, self._rows, self._finding, self._repairs = objects, rows, finding, repairs
        self._wanted = wanted
        self._known: dict[tuple[str, bytes], Kind | None] = {}
        self._named: set[str] = set()
        """Keys of contents that entries have: met share by share."""
        self.highest_epoch = 0
        """Contents of later epochs belong to a server that has started since."""
        self.count = 0
        """Objects that were met."""

    async def fault_of(self, share: Share, numbers: Sequence[int]) -> SharedFault | None:
        """What is wrong with the content of a share. Raises `NotDone`."""
        blob = share.blob
        self._named.add(blob.key)
        if self._wanted is not None and blob.key not in self._wanted:
            return None
        key = (blob.key, blob.sha256)
        if key not in self._known:
            while len(self._known) >= _KNOWN:
                del self._known[next(iter(self._known))]
            self._known[key] = await self._state_of(share)
        kind = self._known[key]
        if kind is None:
            return None

        async def mend() -> None:
            await self._repairs.keep_content(blob.key)
            await self._repairs.bounce(share, numbers)

        words = {"message": format_spool_id(share.message.spool_id), "share": share_name(share.name), "count": len(numbers)}
        return fault(kind, blob.key, mend, **words)

    async def _state_of(self, share: Share) -> Kind | None:
        found = await self._objects.get(share.blob.key)
        if found is None:
            return Kind.CONTENT_MISSING
        total = hashlib.sha256()
        try:
            if found.size_bytes != share.message.stored_bytes:
                return Kind.CONTENT_DAMAGED
            while piece := await found.next():
                total.update(piece)
        finally:
            found.close()
        return None if total.digest() == share.blob.sha256 else Kind.CONTENT_DAMAGED

    async def faults(self) -> AsyncIterator[SharedFault]:
        """Objects that nobody has. Raises `NotDone`."""
        after = ""
        while True:
            keys = await self._objects.keys("", after, PAGE)
            for key in keys:
                self.count += 1
                named = _KEY.fullmatch(key)
                if key.startswith(PROBE_KEYS):  # of a server that was killed while it looked for room
                    yield fault(Kind.CONTENT_LEFT, key, partial(self._repairs.remove_content, key))
                elif named is None:
                    yield fault(Kind.OBJECT_FOREIGN, key, None)
                elif not await self._is_needed(SpoolId(int(named[1], 16)), key):
                    yield fault(Kind.CONTENT_LEFT, key, partial(self._repairs.remove_content, key))
            if len(keys) < PAGE:
                return
            after = keys[-1]

    async def _is_needed(self, spool_id: SpoolId, key: str) -> bool:
        """Whether a share that lives has it, or one that can't be read, or was put in since the look began, may."""
        if key in self._named or spool_id >> COUNTER_BITS > self.highest_epoch:
            return True
        for name in await self._finding.shares_of(spool_id):
            found = await read_share(self._rows, name)
            if found.condition in _LIVE and (found.share is None or found.share.blob.key == key):
                return True
        return False
