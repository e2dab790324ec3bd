"""The end of a reactor that a test made for itself: its descriptors would last as long as the process."""

from __future__ import annotations

from typing import Any


def close_reactor(reactor: Any) -> None:
    """Close what a reactor that does not run any more holds open of its own; its readers and writers are forgotten.

    Threads that give results to it should have ended: what a late one gives is lost without a word.
    """
    reactor.wakeUp = lambda: None
    reactor.removeAll()
    reactor.waker.connectionLost(None)
    if hasattr(reactor, "_poller"):
        reactor._poller.close()
