"""One question to what listens at an address, in its own words: whether it is answered well, in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol

from tests.services.front import FrontReactor


class Question(Protocol):
    """A connection that tells `answer` whether it was answered well."""

    def __init__(self, answer: Deferred[bool]) -> None:
        self._answer, self._heard = answer, b""

    def say(self, words: bytes) -> None:
        """Send something."""
        cast(ITCPTransport, self.transport).write(words)

    def leave(self) -> None:
        """Hear nothing more."""
        cast(ITCPTransport, self.transport).abortConnection()


async def ask(
    reactor: FrontReactor, address: tuple[str, int], patience_s: float, make: Callable[[Deferred[bool]], Question]
) -> bool:
    """Whether it was answered well within so many seconds."""
    answer: Deferred[bool] = Deferred()
    endpoint = TCP4ClientEndpoint(reactor, *address, timeout=patience_s)
    try:
        asking = await connectProtocol(endpoint, make(answer))  # type: ignore[no-untyped-call]  # Twisted's
    except ConnectError:
        return False
    late = reactor.callLater(patience_s, asking.leave)
    is_well = await answer
    if late.active():
        late.cancel()
    return is_well
