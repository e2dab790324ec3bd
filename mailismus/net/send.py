"""Sending at once: bytes that fit go to the kernel in this turn of the reactor, not in the next one.

A transport of Twisted keeps what it is given and asks the reactor to tell it when the socket can be written: two
system calls and a turn for every reply. Here a plain TCP socket with nothing waiting is written at once.

*Rules*: the order of bytes is that of the calls, mixed with `transport.write` too: nothing is sent past what waits.
What does not fit, and every other transport (a test's), goes the usual way. Trouble is left to the usual way. A transport
that has a `wire` (TLS) sends at once by itself; what waits, waits there.

*Weakness*: `dataBuffer` and `_tempDataBuffer` are Twisted's own business: no public interface says "nothing waits".
They are used in this file alone; they have been there since Twisted 2, and tests hold them to their meaning.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IPullProducer, ITransport
from twisted.internet.tcp import Connection
from zope.interface import implementer


class Sent(enum.Enum):
    """What became of the bytes: all are the kernel's (or gone with the connection), or some wait in the transport."""

    ALL = "all"
    WAITING = "waiting"


def send_now(transport: ITransport, parts: Sequence[bytes]) -> Sent:
    """Send these bytes, now if the transport is a plain TCP socket with nothing waiting. Never blocks, never raises.

    On a transport that is closing or closed nothing happens beyond what its `write` does.
    """
    if not isinstance(transport, Connection) or transport.TLS:
        transport.writeSequence(parts)
        return Sent.WAITING if is_backed_up(transport) else Sent.ALL
    if not transport.connected:
        return Sent.ALL
    sent = 0
    if not (transport.dataBuffer or transport._tempDataBuffer or transport.disconnecting):
        try:
            if len(parts) == 1:
                sent = transport.socket.send(parts[0])
                if sent == len(parts[0]):
                    return Sent.ALL
            else:
                sent = transport.socket.sendmsg(parts)
        except OSError:  # full, broken, or more than 1024 parts: the usual way copes with each
            pass
    for part in parts:
        if sent < len(part):
            transport.write(part[sent:] if sent else part)  # type: ignore[no-untyped-call]  # TCP's mix-in has no annotations
        sent = max(0, sent - len(part))
    return Sent.WAITING if transport.dataBuffer or transport._tempDataBuffer else Sent.ALL


def is_backed_up(transport: ITransport) -> bool:
    """Whether bytes wait in a TCP transport, under TLS too; for other transports False: their `write` copes."""
    transport = getattr(transport, "wire", transport)
    return isinstance(transport, Connection) and bool(transport.dataBuffer or transport._tempDataBuffer)


def when_drained(transport: ITransport, done: Callable[[], None]) -> None:
    """Call `done` once, when nothing waits in the transport any more; never, if the connection goes first.

    For a transport on which bytes wait (`Sent.WAITING`) and which has no producer.
    """
    _Drain(getattr(transport, "wire", transport), done)


@implementer(IPullProducer)
class _Drain:
    """A producer that has nothing to give: being asked for more means that all has gone."""

    def __init__(self, transport: ITransport, done: Callable[[], None]) -> None:
        self.transport, self.done, self.registered = transport, done, False
        transport.registerProducer(self, False)  # type: ignore[attr-defined]  # ITransport does not name IConsumer; TCP has it
        self.registered = True

    def resumeProducing(self) -> None:
        if self.registered:  # the first call comes from registerProducer itself
            self.transport.unregisterProducer()  # type: ignore[attr-defined]  # as above
            self.done()

    def stopProducing(self) -> None:
        """The connection is gone."""
