"""Closing at once: a plain TCP connection with nothing left to send goes in this turn of the reactor, not in the next.

`loseConnection` of Twisted waits until the socket can be written, to find that nothing is to be written: four system calls.

*Rules*: what waits is sent first, as with `loseConnection`; `connectionLost` is called before `close_now` returns when
nothing waits, so the caller must be done with its state.
"""

from __future__ import annotations

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import ITransport
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure

from mailismus.net.send import is_backed_up

_DONE = Failure(ConnectionDone())  # type: ignore[no-untyped-call]  # Twisted's


def close_now(transport: ITransport) -> None:
    """Close the connection once all is sent."""
    if (
        isinstance(transport, Connection)
        and transport.connected
        and not (transport.TLS or transport.disconnecting or transport.producer or is_backed_up(transport))
    ):
        transport.connectionLost(_DONE)  # as Twisted's loseConnection itself does when writing is over
    else:
        transport.loseConnection()
