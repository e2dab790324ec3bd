"""The reactor's event loop, without a log context for each event.

Twisted wraps each event of each socket in a call that tells the log the socket's name (`log.callWithLogger`): seven calls
and a dictionary, about 3 us for every packet. Our log lines contain that name themselves. Here a plain "readable" event goes
straight to its reader; every other event, and every error, takes Twisted's own way.

*Weakness*: `_poller`, `_selectables`, `_doReadOrWrite` and `_disconnectSelectable` are private names of Twisted, used in
this file alone. A reactor whose class is not exactly the epoll reactor stays unchanged.
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
    """Shorten this reactor's event loop, before it runs. False: it is of another class, and unchanged."""
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
        """Wait for events, at most this many seconds (None: for ever), and dispatch them."""
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
                continue  # removed by an earlier event
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
