"""The reactor's event loop, without a log context for each event, and without a wake-up that nobody needs.

Twisted wraps each event of each socket in a call that tells the log the socket's name (`log.callWithLogger`): seven calls
and a dictionary, about 3 us for every packet. Our log lines contain that name themselves. Here a plain "readable" event goes
straight to its reader; every other event, and every error, takes Twisted's own way.

A thread that hands over a call wakes the reactor through a pipe. That is a write, a read and an event, and the thread gives
up the interpreter once more. Here it does so only while the reactor may sleep: one that works looks at the calls of threads
before it sleeps.

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
    rounds = _Rounds(changed)
    changed.doIteration, changed.wakeUp = rounds.do_iteration, rounds.wake_up
    return True


class _Rounds:
    def __init__(self, reactor: Any) -> None:  # Any: as above
        self._reactor = reactor
        self._poll = reactor._poller.poll
        self._selectables: dict[int, Any] = reactor._selectables
        self._wake = reactor.wakeUp
        self._may_sleep = False

    def wake_up(self) -> None:
        """End the wait for events, in any thread. The call that is to be found has been appended before."""
        if self._may_sleep:
            self._wake()

    def do_iteration(self, timeout: float | None) -> None:
        """Wait for events, at most this many seconds (None: for ever), and dispatch them."""
        selectables = self._selectables
        reactor = self._reactor
        # First this, then the look at the calls: a thread that appends one behind the look finds that it has to wake us.
        self._may_sleep = True
        if reactor.threadCallQueue:
            timeout = 0
        try:
            events = self._poll(-1 if timeout is None else timeout, len(selectables))
        except OSError as error:
            if error.errno == errno.EINTR:
                return
            raise
        finally:
            self._may_sleep = False
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
