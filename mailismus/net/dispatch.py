"""The reactor's round, without a log context for each event.

Twisted wraps each event of each socket in a call that says whose it is, for the log (`log.callWithLogger`): seven calls and
a dictionary, about 3 us, at every packet. Our log says whose an event is by itself. Here a plain "there is something to
read" goes straight to its reader; every other event, and every trouble, goes Twisted's own way.

*Weakness*: `_poller`, `_selectables`, `_doReadOrWrite` and `_disconnectSelectable` are Twisted's own business, used in this
file alone. A reactor that is not exactly the epoll reactor is left as it is.
"""

from __future__ import annotations

import errno
import sys
from typing import Any

from twisted.internet.epollreactor import EPollReactor
from twisted.python import log

_in_context: Any = log.callWithLogger  # neither is annotated
_log_error: Any = log.err
_READABLE = 1
"""EPOLLIN alone."""


def shorten_dispatch(reactor: object) -> bool:
    """Make this reactor's rounds shorter; False: it is of another kind, nothing was changed. Before it runs."""
    if type(reactor) is not EPollReactor:
        return False
    changed: Any = reactor  # its attributes are not annotated
    changed.doIteration = _Rounds(changed).do_iteration
    return True


class _Rounds:
    def __init__(self, reactor: Any) -> None:  # Any: as above
        self._reactor = reactor
        self._poll = reactor._poller.poll
        self._selectables: dict[int, Any] = reactor._selectables

    def do_iteration(self, timeout: float | None) -> None:
        """Wait for events, at most so many seconds (None: for ever), and tell whom they concern."""
        selectables = self._selectables
        try:
            events = self._poll(-1 if timeout is None else timeout, len(selectables))
        except OSError as error:
            if error.errno == errno.EINTR:
                return
            raise
        reactor = self._reactor
        for fd, event in events:
            selectable = selectables.get(fd)
            if selectable is None:
                continue  # gone by what another event led to
            if event != _READABLE:
                _in_context(selectable, reactor._doReadOrWrite, selectable, fd, event)
                continue
            try:
                why = selectable.doRead()
            except BaseException:
                why = sys.exc_info()[1]
                _log_error()
            if why:
                reactor._disconnectSelectable(selectable, why, True)
