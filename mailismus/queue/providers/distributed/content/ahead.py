"""Small contents are fetched before they are asked for, in the order in which their shares come into the hand.

    wanted -> being fetched -> here, not asked for yet -> asked for: kept as all that is read (`kept`)

*Rules*: at most `AT_A_TIME` are fetched at once; those that are being fetched, or are here and were not asked for, have
`AHEAD_BYTES` at most. What leaves the hand is forgotten. Who asks for a content that is being fetched waits for it: it is
fetched once. A fetch that fails says nothing: who needs the content asks for it. While the object store is left alone no
content is fetched ahead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.content.kept import LARGEST, KeptContents
from mailismus.queue.providers.distributed.content.stored import ContentInPieces, read_whole
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.objects import IObjects

NEEDED = frozenset((Area.INCOMING, Area.DEFERRED, Area.BOUNCES))
"""Areas whose entries are tried or reported. What comes back from others moves on, or is removed, without its content."""
AT_A_TIME = 16
AHEAD_BYTES = 8 << 20


@attrs.define(eq=False)
class _Fetch:
    """A content that is being fetched, and who waits for it."""

    size_bytes: int
    waiting: list[Deferred[bytes | None]] = attrs.field(factory=list)


class ContentAhead:
    """The fetches of one server. `is_here`: whether something of a message is in the hand; `may_ask`: whether the object
    store is asked."""

    _log = Logger()

    def __init__(
        self,
        objects: IObjects,
        kept: KeptContents,
        is_here: Callable[[SpoolId], bool],
        may_ask: Callable[[], bool],
        reactor: IReactorTime,
    ) -> None:
        self._objects, self._kept, self._is_here, self._may_ask = objects, kept, is_here, may_ask
        self._reactor = reactor
        self._line: OrderedDict[SpoolId, Share] = OrderedDict()
        self._coming: dict[SpoolId, _Fetch] = {}
        self._contents: dict[SpoolId, bytes] = {}
        self._doubtful: set[SpoolId] = set()
        """Messages of which it is looked, in the next turn, whether they are in the hand."""
        self.used_bytes = 0
        """Of what is being fetched, or is here."""
        self.fetched = 0
        """So many contents were fetched."""
        self._is_closed = False

    def close(self) -> None:
        """Fetch nothing more, forget what is here."""
        self._is_closed = True
        self._line.clear()
        self.used_bytes -= sum(map(len, self._contents.values()))
        self._contents.clear()

    def want(self, share: Share) -> None:
        """A share comes into the hand, in this turn."""
        spool_id = share.message.spool_id
        is_known = spool_id in self._line or spool_id in self._coming or spool_id in self._contents
        is_needed = share.area in NEEDED and share.message.stored_bytes <= LARGEST
        if is_known or self._is_closed or not is_needed or self._kept.has(spool_id):
            return
        self._line[spool_id] = share
        self.go_on()
        self._look_later(spool_id)

    def left(self, spool_id: SpoolId) -> None:
        """A message has left the hand. It may come back in this turn, as a bounce, say."""
        if spool_id in self._line or spool_id in self._contents:
            self._look_later(spool_id)

    def _look_later(self, spool_id: SpoolId) -> None:
        if not self._doubtful:
            self._reactor.callLater(0, self._look)
        self._doubtful.add(spool_id)

    def _look(self) -> None:
        doubtful, self._doubtful = self._doubtful, set()
        for spool_id in doubtful:
            if not self._is_here(spool_id):
                self._forget(spool_id)
        self.go_on()

    def _forget(self, spool_id: SpoolId) -> bytes | None:
        self._line.pop(spool_id, None)
        content = self._contents.pop(spool_id, None)
        self.used_bytes -= len(content or b"")
        return content

    def ask(self, spool_id: SpoolId) -> bytes | Deferred[bytes | None] | None:
        """A content is asked for. Return it, or what fires with it, or with None if the fetch has failed; None: it was not
        fetched, and is not being fetched."""
        content = self._forget(spool_id)
        if content is not None:
            self._kept.keep(spool_id, content)
            self.go_on()
            return content
        fetch = self._coming.get(spool_id)
        if fetch is None:
            return None
        coming: Deferred[bytes | None] = Deferred()
        fetch.waiting.append(coming)
        return coming

    def go_on(self) -> None:
        """There may be room, or the store is asked again."""
        while self._line and len(self._coming) < AT_A_TIME and self._may_ask():
            spool_id, share = next(iter(self._line.items()))
            size = share.message.stored_bytes
            if self.used_bytes + size > AHEAD_BYTES:
                return
            del self._line[spool_id]
            self._coming[spool_id] = _Fetch(size)
            self.used_bytes += size
            fetched = Deferred.fromCoroutine(self._fetch(share)).addErrback(self._failed)
            fetched.addCallback(self._done, spool_id)

    async def _fetch(self, share: Share) -> bytes | None:
        """The content; None: it is not there, or has not its size. Raises `StoreFailure`, `Unavailable`, `Corrupt`."""
        found = await self._objects.get(share.blob.key)
        if found is None:
            return None
        if found.size_bytes != share.message.stored_bytes:
            found.close()
            return None
        return await read_whole(ContentInPieces(found, share.blob.key, share.blob.sha256))

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure | Unavailable | Corrupt):
            self._log.failure("a content can't be fetched ahead", failure)

    def _done(self, content: bytes | None, spool_id: SpoolId) -> None:
        fetch = self._coming.pop(spool_id)
        self.fetched += content is not None
        if content is not None and fetch.waiting:
            self._kept.keep(spool_id, content)
        elif content is not None and self._is_here(spool_id) and not self._is_closed:
            self._contents[spool_id] = content
        if spool_id not in self._contents:
            self.used_bytes -= fetch.size_bytes
        for coming in fetch.waiting:
            coming.callback(content)
        self.go_on()
