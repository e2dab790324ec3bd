"""Closing at once: a plain TCP connection with nothing left to send is closed in this turn of the reactor, not in the next.
Connections of accepted clients do so by themselves (`net.connection`).

Twisted's `loseConnection` waits until the socket is writable, although there is nothing to write: four system calls.

*Rules*: waiting bytes are sent first, as by `loseConnection`. If there are none, `connectionLost` is called before
`close_now` returns, so the caller must have finished with its state.
"""

from __future__ import annotations

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import ITransport
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure

from mailismus.net.connection import AcceptedConnection
from mailismus.net.send import is_backed_up

_DONE = Failure(ConnectionDone())  # type: ignore[no-untyped-call]  # Twisted's


def close_now(transport: ITransport) -> None:
    """Close the connection after all bytes are sent."""
    if isinstance(transport, AcceptedConnection):
        transport.close()
    elif (
        isinstance(transport, Connection)
        and transport.connected
        and not (transport.TLS or transport.disconnecting or transport.producer or is_backed_up(transport))
    ):
        transport.connectionLost(_DONE)  # as Twisted's loseConnection does after the last write
    else:
        transport.loseConnection()
