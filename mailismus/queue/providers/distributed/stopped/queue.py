"""`IStoppedQueue` of the stores: they are asked when something is."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import cast

from twisted.internet.defer import Deferred

from mailismus.config.values.services import ServicesSettings
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Filter, Page, Summary
from mailismus.queue.providers.distributed.identity.notes import known_servers
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.look import LookTerms, SharedLook, look_at
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.servers import KnownServer
from mailismus.queue.stopped import StoppedQueue


def terms_of(services: ServicesSettings, reached: IReached) -> LookTerms:
    """The terms of a command."""
    view = services.view
    wanted = ViewSettings(view.slicewindow_s, view.bucketcount, view.updatebrowsestartpace)
    return LookTerms(wanted, view.keep_s, reached.now, random.SystemRandom().getrandbits)


class _Asked:
    """A queue that is looked at by the first question: a `StoppedSearch`."""

    def __init__(self, reached: IReached, terms: LookTerms) -> None:
        self._reached, self._terms = reached, terms
        self._look: SharedLook | None = None

    async def look(self) -> SharedLook:
        """The queue as the first question found it. Raises `StartError`, `NotDone`."""
        if self._look is None:
            self._look = await look_at(self._reached.stores, self._terms)
        return self._look

    async def summarize(self) -> Summary:
        """As `StoppedSearch`."""
        return await (await self.look()).summarize()

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        """As `StoppedSearch`."""
        return await (await self.look()).search(wanted, after, limit)

    def pieces(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message."""
        wait = self._reached.wait
        content = wait(self._open(spool_id))
        try:
            while piece := wait(_next_of(content)):
                yield piece
        finally:
            content.close()

    async def _open(self, spool_id: SpoolId) -> IContent:
        look = await self.look()
        return await cast("Deferred[IContent]", look.contents.read(spool_id))  # nothing is kept


class SharedStoppedQueue(StoppedQueue):
    """The queue. A store that does not answer ends the command (75)."""

    def __init__(self, reached: IReached, terms: LookTerms) -> None:
        asked = _Asked(reached, terms)
        super().__init__(asked, asked.pieces, Gaps(), reached.wait)
        self._reached, self._asked = reached, asked

    def servers(self) -> Sequence[KnownServer] | None:
        return self._reached.wait(self._known())

    async def _known(self) -> Sequence[KnownServer]:
        await self._asked.look()
        return await known_servers(self._reached.stores.rows)

    def close(self) -> None:
        self._reached.close()


async def _next_of(content: IContent) -> bytes:
    return await content.next()
