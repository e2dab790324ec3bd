"""`IQueueSource` of the shared queue. Servers are shut out while it is read, until the conversion has come to an end.

*Rule*: what was built from another provider and does not count yet is read as it is, to be compared.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Sequence

from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Entry
from mailismus.queue.provider import StoredPart
from mailismus.queue.providers.distributed.conversion.living import Living
from mailismus.queue.providers.distributed.conversion.shutting import shut
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import SPIDS
from mailismus.queue.providers.distributed.identity.epochs import LAST
from mailismus.queue.providers.distributed.identity.gate import ConversionGate
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.alone import AloneLease
from mailismus.queue.providers.distributed.stopped.look import LookTerms, SharedLook, look_at
from mailismus.queue.providers.distributed.stores.objects import IObject


class SharedSource:
    """`IQueueSource`."""

    def __init__(self, reached: IReached, terms: LookTerms) -> None:
        """Raises `StartError`: 75 where a server serves the queue, or another conversion is at it."""
        self._reached = reached
        self._alone = AloneLease(reached)
        try:
            look, self.epoch = reached.wait(self._begin(terms))
        except BaseException:
            self.close()
            raise
        self._living = Living(look)

    async def _begin(self, terms: LookTerms) -> tuple[SharedLook, int]:
        rows = self._reached.stores.rows
        await self._alone.begin()
        await shut(
            rows,
            self._alone,
            (ConversionGate.OPEN, ConversionGate.LEAVING),
            ConversionGate.LEAVING,
            as_it_is=(ConversionGate.FILLED,),
        )
        row = await rows.row(SPIDS, (LAST,))
        epoch = 0 if row is None else row["epoch"]
        return await look_at(self._reached.stores, terms), epoch if isinstance(epoch, int) else 0

    def parts(self) -> Iterator[StoredPart]:
        shares = self._living.shares()
        while (found := self._reached.wait(_next(shares))) is not None:
            share, entries = found
            at = f"{share.blob.key}:{share.blob.sha256.hex()}".encode("ascii")
            yield StoredPart(share.message.with_entries(list(entries)), at)

    @property
    def damage(self) -> str:
        return self._living.damage

    def content(self, spool_id: SpoolId, content_at: bytes) -> Iterator[bytes]:
        wait, total = self._reached.wait, hashlib.sha256()
        key, _, digest = content_at.decode("ascii").partition(":")
        found = wait(self._get(key))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
        try:
            while piece := wait(_piece_of(found)):
                total.update(piece)
                yield piece
        finally:
            found.close()
        if total.hexdigest() != digest:
            raise Corrupt(key, 0, "the content does not have its sum")

    async def _get(self, key: str) -> IObject | None:
        return await self._reached.stores.objects.get(key)

    def close(self) -> None:
        self._alone.close()


async def _next(shares: AsyncIterator[tuple[Share, Sequence[Entry]]]) -> tuple[Share, Sequence[Entry]] | None:
    return await anext(shares, None)


async def _piece_of(found: IObject) -> bytes:
    return await found.next()
