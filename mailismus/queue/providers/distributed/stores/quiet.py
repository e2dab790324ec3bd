"""Connections that begin and end without a line in the log: clients of the stores make and drop them all day."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IProtocol, IProtocolFactory, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from zope.interface import implementer


@implementer(IStreamClientEndpoint)
class QuietEndpoint:
    """Connects as another endpoint does."""

    def __init__(self, endpoint: IStreamClientEndpoint) -> None:
        self._endpoint = endpoint

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        connected: Deferred[IProtocol] = self._endpoint.connect(_QuietFactory(factory))
        return connected


class _QuietFactory(Factory):
    noisy = False

    def __init__(self, inner: IProtocolFactory) -> None:
        self._inner = inner

    def buildProtocol(self, addr: IAddress | None) -> Any:
        return self._inner.buildProtocol(cast(IAddress, addr))
