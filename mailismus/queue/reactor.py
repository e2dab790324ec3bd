"""The part of the reactor that a queue provider may use."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorCore, IReactorTCP, IReactorThreads, IReactorTime


class QueueReactor(IReactorCore, IReactorTCP, IReactorThreads, IReactorTime):
    """What a provider is given. Its time never jumps."""
