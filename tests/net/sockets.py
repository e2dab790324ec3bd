"""Real transports of Twisted over socket pairs, with a reactor that only remembers who wants to read and write."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor, IWriteDescriptor
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.tcp import Server
from zope.interface import implementer

from mailismus.net.connection import AcceptedConnection


@implementer(IReactorFDSet)
class FakeReactor(Clock):
    """Who is to be told when it may read or write."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[Any] = []
        self.writers: list[Any] = []

    def addReader(self, reader: IReadDescriptor) -> None:
        if reader not in self.readers:
            self.readers.append(reader)

    def addWriter(self, writer: IWriteDescriptor) -> None:
        if writer not in self.writers:
            self.writers.append(writer)

    def removeReader(self, reader: IReadDescriptor) -> None:
        if reader in self.readers:
            self.readers.remove(reader)

    def removeWriter(self, writer: IWriteDescriptor) -> None:
        if writer in self.writers:
            self.writers.remove(writer)

    def removeAll(self) -> list[IReadDescriptor | IWriteDescriptor]:
        return []

    def getReaders(self) -> list[IReadDescriptor]:
        return self.readers

    def getWriters(self) -> list[IWriteDescriptor]:
        return self.writers


class Lost(Protocol):
    """A protocol that remembers what it was told."""

    def __init__(self) -> None:
        self.data = b""
        self.losses = 0

    def dataReceived(self, data: bytes) -> None:
        self.data += data

    def connectionLost(self, reason: object = None) -> None:
        self.losses += 1


class Pair:
    """A transport and the socket at its other end, which holds little. The transport is that of an accepted client, or one
    of Twisted's."""

    def __init__(self, protocol: Any = None, *, is_accepted: bool = True) -> None:
        ours, self.peer = socket.socketpair()
        for end in (ours, self.peer):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.peer.setblocking(False)
        self.reactor, self.protocol = FakeReactor(), protocol or Lost()
        server: Any = None
        address = ("192.0.2.1", 1)
        self.transport: Any = (
            AcceptedConnection(ours, self.protocol, address, self.reactor, self.reactor)
            if is_accepted
            else Server(ours, self.protocol, address, server, 1, self.reactor)
        )
        if is_accepted:
            self.transport.resumeProducing()
        self.protocol.makeConnection(self.transport)

    def received(self) -> bytes:
        """What can be read at the other end."""
        data = b""
        try:
            while piece := self.peer.recv(65536):
                data += piece
        except BlockingIOError:
            pass
        return data

    def turn(self) -> None:
        """A turn of the reactor: who may write, writes; then is lost, if it says so."""
        for writer in tuple(self.reactor.writers):
            why = writer.doWrite()
            if why:
                from twisted.python.failure import Failure

                writer.connectionLost(Failure(why))  # type: ignore[no-untyped-call]  # Twisted's

    def drain(self) -> bytes:
        """All that comes until nothing is left to write."""
        data = self.received()
        while self.reactor.writers:
            self.turn()
            data += self.received()
        return data

    def close(self) -> None:
        self.peer.close()
        self.transport.abortConnection()
        self.reactor.advance(0)
