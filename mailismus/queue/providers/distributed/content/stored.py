"""Contents from the object store: small ones whole, others in pieces, all of them checked by their sum.

*Rules*: a content that is not there is `Unavailable`: where a bucket is the wrong one, no mail may come to its end by that.
It is noted as absent if its share lives: another server may have delivered it a moment ago.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.queue.content import IContent
from mailismus.queue.providers.distributed.content.absent import AbsentContents
from mailismus.queue.providers.distributed.content.kept import LARGEST, KeptContents
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.objects import IObject, IObjects
from mailismus.spool.content import WholeContent


class StoredContents:
    """The contents of one queue. `find`: a share of a message that is not in the hand; `lives`: whether anything of it is
    left, by its marks. Both raise `StoreFailure`. `ahead`: a content that was fetched before it was asked for, or what
    fires with it, or with None if that has failed; None: neither."""

    def __init__(
        self,
        objects: IObjects,
        kept: KeptContents,
        absent: AbsentContents,
        find: Callable[[SpoolId], Awaitable[Share | None]],
        lives: Callable[[Share], Awaitable[bool]],
        ahead: Callable[[SpoolId], bytes | Deferred[bytes | None] | None],
    ) -> None:
        self._objects, self._kept, self._absent, self._find, self._lives = objects, kept, absent, find, lives
        self._ahead = ahead

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """As `IQueue.read`."""
        content = self._kept.get(spool_id)
        if content is not None:
            return content
        ahead = self._ahead(spool_id)
        if not isinstance(ahead, bytes):
            return Deferred.fromCoroutine(self._read_behind(ahead, spool_id))
        self._absent.found()
        return ahead

    async def _read_behind(self, coming: Deferred[bytes | None] | None, spool_id: SpoolId) -> IContent:
        content = None if coming is None else await coming
        if content is None:
            return await self._read(spool_id)
        self._absent.found()
        return WholeContent(content)

    async def _read(self, spool_id: SpoolId) -> IContent:
        name = format_spool_id(spool_id)
        try:
            share = await self._find(spool_id)
            if share is None:
                raise Unavailable(f"no message {name}")
            found = await self._objects.get(share.blob.key)
            if found is None and await self._lives(share):
                self._absent.missed(share.blob.key)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure
        if found is None:
            raise Unavailable(f"the content of message {name} is not in the object store: {share.blob.key}")
        self._absent.found()
        size = share.message.stored_bytes
        if found.size_bytes != size:
            found.close()
            raise Corrupt(share.blob.key, 0, f"the content has {found.size_bytes} bytes, not {size}")
        content = ContentInPieces(found, share.blob.key, share.blob.sha256)
        if size > LARGEST:
            return content
        whole = await read_whole(content)
        self._kept.keep(spool_id, whole)
        return WholeContent(whole)


async def read_whole(content: ContentInPieces) -> bytes:
    """All of a small content. Raises as it does; it is closed in any case."""
    whole = bytearray()
    try:
        while piece := await content.next():
            whole += piece
    finally:
        content.close()
    return bytes(whole)


class ContentInPieces:
    """`IContent` of an object that is being read. The last piece comes once the sum is right."""

    at_hand = None

    def __init__(self, found: IObject, key: str, sha256: bytes) -> None:
        self._object, self._key, self._sha256 = found, key, sha256
        self._sum = hashlib.sha256()
        self._left = self._size = found.size_bytes
        self._is_closed = False

    @property
    def stored_bytes(self) -> int:
        return self._size

    def next(self) -> Deferred[bytes]:
        return Deferred.fromCoroutine(self._next())

    async def _next(self) -> bytes:
        if self._is_closed:
            raise Unavailable("the content was closed")
        try:
            piece = await self._object.next()
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure
        self._sum.update(piece)
        self._left -= len(piece)
        if self._left <= 0 and self._sum.digest() != self._sha256:
            raise Corrupt(self._key, 0, "the content does not have its sum")
        return piece

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._object.close()
