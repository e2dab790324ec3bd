"""Sending at once: bytes that fit go to the kernel in this turn of the reactor, not in the next one.

A Twisted transport stores bytes and asks the reactor to report when the socket is writable: two system calls and a turn for
every reply. Here a plain TCP socket without waiting bytes is written at once.

*Rules*: bytes keep the order of the calls, also mixed with `transport.write`: nothing overtakes waiting bytes. Bytes that do
not fit, other transports (a test's) and errors take the usual way. A connection of an accepted client (`net.connection`)
and a transport with a `wire` (TLS) send at once by themselves; bytes under TLS wait in the `wire`.

*Weakness*: `dataBuffer` and `_tempDataBuffer` are private names of Twisted: no public interface tells that nothing waits.
They are used in this file alone, have been there since Twisted 2, and tests check their meaning.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IPullProducer, ITransport
from twisted.internet.tcp import Connection
from zope.interface import implementer

from mailismus.net.connection import AcceptedConnection


class Sent(enum.Enum):
    """Where the bytes are: all with the kernel (or lost with the connection), or some waiting in the transport."""

    ALL = "all"
    WAITING = "waiting"


# Read for each message: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_ALL, _WAITING = Sent.ALL, Sent.WAITING


def send_now(transport: ITransport, parts: Sequence[bytes]) -> Sent:
    """Send these bytes, at once if the transport is a plain TCP socket without waiting bytes. Never blocks, never raises.

    On a closing or closed transport it does only what `write` does.
    """
    if isinstance(transport, AcceptedConnection):
        return _ALL if transport.send(parts[0] if len(parts) == 1 else b"".join(parts)) else _WAITING
    if not isinstance(transport, Connection) or transport.TLS:
        transport.writeSequence(parts)
        return _WAITING if is_backed_up(transport) else _ALL
    if not transport.connected:
        return _ALL
    sent = 0
    if not (transport.dataBuffer or transport._tempDataBuffer or transport.disconnecting):
        try:
            if len(parts) == 1:
                sent = transport.socket.send(parts[0])
                if sent == len(parts[0]):
                    return _ALL
            else:
                sent = transport.socket.sendmsg(parts)
                if sent == sum(map(len, parts)):
                    return _ALL
        except OSError:  # full, broken, or more than 1024 parts: the usual way handles each
            pass
    for part in parts:
        if sent < len(part):
            transport.write(part[sent:] if sent else part)  # type: ignore[no-untyped-call]  # TCP's mix-in has no annotations
        sent = max(0, sent - len(part))
    return _WAITING if transport.dataBuffer or transport._tempDataBuffer else _ALL


def is_backed_up(transport: ITransport) -> bool:
    """Whether bytes wait in a TCP transport, under TLS too; False for other transports: their `write` handles that."""
    transport = getattr(transport, "wire", transport)
    if isinstance(transport, AcceptedConnection):
        return transport.waiting_bytes > 0
    return isinstance(transport, Connection) and bool(transport.dataBuffer or transport._tempDataBuffer)


def when_drained(transport: ITransport, done: Callable[[], None]) -> None:
    """Call `done` once when no bytes wait in the transport any more; never if the connection is lost before.

    For a transport with waiting bytes (`Sent.WAITING`) and without a producer.
    """
    wire = getattr(transport, "wire", transport)
    if isinstance(wire, AcceptedConnection):
        wire.when_drained(done)
    else:
        _Drain(wire, done)


@implementer(IPullProducer)
class _Drain:
    """A producer without data: a request for more means that all bytes are sent."""

    def __init__(self, transport: ITransport, done: Callable[[], None]) -> None:
        self.transport, self.done, self.registered = transport, done, False
        transport.registerProducer(self, False)  # type: ignore[attr-defined]  # ITransport lacks it; every TCP transport has it
        self.registered = True

    def resumeProducing(self) -> None:
        if self.registered:  # the first call comes from registerProducer itself
            self.transport.unregisterProducer()  # type: ignore[attr-defined]  # as above
            self.done()

    def stopProducing(self) -> None:
        """Ignored: the connection is lost."""
