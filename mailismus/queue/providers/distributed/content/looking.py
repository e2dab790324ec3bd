"""Looks for contents while mail is stopped because several in a row were absent: one that is found lets it go on.

*Rule*: what came in here and is still in memory is not looked for: it may have been put into the wrong bucket.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.content.absent import AbsentContents
from mailismus.queue.providers.distributed.content.kept import KeptContents
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.objects import IObjects

PAUSE_S = 5.0
AT_A_TIME = 20
"""Contents of other messages that are looked for at once."""


class ContentLooking:
    """The looks of one server. `here`: messages in the hand, and the keys of their contents."""

    _log = Logger()

    def __init__(
        self,
        objects: IObjects,
        kept: KeptContents,
        absent: AbsentContents,
        here: Callable[[], Iterable[tuple[SpoolId, str]]],
        reactor: IReactorTime,
        resumed: Callable[[], None],
    ) -> None:
        """`resumed`: told when mail goes on."""
        self._objects, self._kept, self._absent, self._here = objects, kept, absent, here
        self._reactor, self._resumed = reactor, resumed
        self._is_closed = self._is_looking = False

    def start(self) -> None:
        """Hear of absent contents from now on."""
        self._absent.listen(self._on_change)

    def close(self) -> None:
        """Look no more."""
        self._is_closed = True

    def _on_change(self) -> None:
        if not self._absent.is_stopped:
            self._log.warn("Contents of messages are there again: mail goes on.")
            self._resumed()
            return
        self._log.critical(
            "{count} contents in a row are not in the object store, the last is {key}: is it the right bucket? Nothing is "
            "delivered and no mail is accepted until one of them, or of the other messages here, is found. If they are "
            "lost: stop all servers, then mailismus fsck --repair.",
            count=len(self._absent.keys),
            key=self._absent.keys[-1],
        )
        self._later()

    def _later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._reactor.callLater(PAUSE_S, self._begin)

    def _begin(self) -> None:
        self._is_looking = False
        if self._absent.is_stopped and not self._is_closed:
            Deferred.fromCoroutine(self._look()).addErrback(
                lambda failure: self._log.failure("contents can't be looked for", failure)
            ).addBoth(lambda _: self._later())

    async def _look(self) -> None:
        others = (key for spool_id, key in self._here() if self._kept.get(spool_id) is None)
        for key in dict.fromkeys([*self._absent.keys, *itertools.islice(others, AT_A_TIME)]):
            try:
                found = await self._objects.get(key)
            except StoreFailure:
                return
            if found is not None:
                found.close()
                self._absent.found()
                return
