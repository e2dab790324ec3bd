"""A sink that offers STARTTLS, or has TLS from the start, by Twisted's own TLS; and, where told to, does it wrong."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from OpenSSL import SSL, crypto
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.fakes.certificates import Made
from tests.fakes.sink import Script, Sink, SinkFactory

OFFERS = b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n"


class Flaw(enum.Enum):
    """What a sink does wrong about TLS."""

    NONE = "nothing"
    NOT_OFFERED = "it offers no STARTTLS"
    REFUSES = "it refuses STARTTLS"
    GOODBYE = "it ends the session at STARTTLS"
    HANGS_UP = "it closes the connection in place of a handshake"
    MUTE = "it says nothing in place of a handshake"
    GARBAGE = "it says what is no TLS in place of a handshake"
    OLD = "it takes TLS 1.1 at most"
    INJECTS = "it sends a reply behind the one to STARTTLS"
    INJECTS_APART = "it sends that reply in a packet of its own"
    HALF = "it sends a part of a reply behind the one to STARTTLS"


@implementer(IOpenSSLServerConnectionCreator)
class Contexts:
    """Twisted's factory of connections: one context for all."""

    def __init__(self, chain: Sequence[Made], flaw: Flaw = Flaw.NONE, client_issuer: Made | None = None) -> None:
        self.context = context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.use_certificate(chain[0].certificate)
        for other in chain[1:]:
            context.add_extra_chain_cert(other.certificate)
        context.use_privatekey(chain[0].key)
        context.set_session_id(b"sink")
        context.set_tlsext_servername_callback(self._note_name)
        self.server_names: list[bytes | None] = []
        if flaw is Flaw.OLD:
            context.set_min_proto_version(SSL.TLS1_VERSION)
            context.set_max_proto_version(SSL.TLS1_1_VERSION)
            context.set_cipher_list(b"ALL:@SECLEVEL=0")
        if client_issuer is not None:
            store = context.get_cert_store()
            assert store is not None
            store.add_cert(crypto.X509.from_cryptography(client_issuer.certificate))
            context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT)

    def _note_name(self, connection: SSL.Connection) -> None:
        self.server_names.append(connection.get_servername())

    def serverConnectionForTLS(self, protocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return SSL.Connection(self.context, None)


class TlsSink(Sink):
    """One connection."""

    sinks: TlsSinkFactory

    def __init__(self, factory: TlsSinkFactory) -> None:
        super().__init__(factory)
        self.is_tls = self._wants_hello = False

    def dataReceived(self, data: bytes) -> None:
        if self._wants_hello:
            self.transport_of().write(b"not TLS at all, as anybody can see\r\n")
            self._wants_hello = False
        super().dataReceived(data)

    def connectionMade(self) -> None:
        if self.sinks.is_immediate:
            self._be_tls()
        super().connectionMade()

    def _be_tls(self) -> None:
        """Put Twisted's pump under this protocol, with the clock of the test's own reactor."""
        self.is_tls = True
        tcp: Any = self.transport
        factory = TLSMemoryBIOFactory(self.sinks.contexts, False, None, self.sinks.clock)  # type: ignore[arg-type]  # as in net.tls
        pump = TLSMemoryBIOProtocol(factory, self, False)  # type: ignore[no-untyped-call]  # Twisted's
        tcp.protocol = self.transport = pump
        pump.makeConnection(tcp)  # type: ignore[no-untyped-call]  # Twisted's

    def _command(self, line: bytes) -> None:
        verb = line[:4].upper()
        flaw = self.sinks.flaw
        if verb == b"EHLO" and not self.is_tls:
            self.commands.append(line)
            offered = b"" if flaw is Flaw.NOT_OFFERED else b"250-STARTTLS\r\n"
            self.do("EHLO", b"250-sink\r\n" + offered + OFFERS[len(b"250-sink\r\n") :])
        elif verb == b"EHLO":
            self.commands.append(line)
            self.do("EHLO", OFFERS)
        elif verb == b"STAR":
            self.commands.append(line)
            self._start_tls(flaw)
        else:
            if verb == b"MAIL":
                self.sinks.mail_over_tls.append(self.is_tls)
            super()._command(line)

    def _start_tls(self, flaw: Flaw) -> None:
        transport: Any = self.transport
        if flaw is Flaw.REFUSES:
            transport.write(b"454 4.7.0 TLS not available\r\n")
        elif flaw is Flaw.GOODBYE:
            transport.write(b"421 4.7.0 not today\r\n")
            transport.loseConnection()
        elif flaw in (Flaw.INJECTS, Flaw.HALF):
            transport.write(b"220 go\r\n250 injected" + (b"\r\n" if flaw is Flaw.INJECTS else b""))
        else:
            transport.write(b"220 go\r\n")
            if flaw is Flaw.INJECTS_APART:
                transport.doWrite()
                transport.socket.send(b"250 injected\r\n")
            if flaw is Flaw.HANGS_UP:
                transport.loseConnection()
            elif flaw is Flaw.GARBAGE:
                self._is_mute = True
                self._wants_hello = True
            elif flaw is Flaw.MUTE:
                self._is_mute = True
            else:
                self._be_tls()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(reason)
        self.sinks.ends.append(reason)


class TlsSinkFactory(SinkFactory):
    """The sinks of one port. `mail_over_tls`: of each MAIL, whether it came over TLS."""

    def __init__(
        self,
        chain: Sequence[Made],
        clock: IReactorTime,
        flaw: Flaw = Flaw.NONE,
        script: Script | None = None,
        *,
        is_immediate: bool = False,
        client_issuer: Made | None = None,
    ) -> None:
        super().__init__(script)
        self.flaw, self.clock = flaw, clock
        self.is_immediate = is_immediate
        self.contexts = Contexts(chain, flaw, client_issuer)
        self.mail_over_tls: list[bool] = []
        self.ends: list[Failure] = []

    def buildProtocol(self, addr: object) -> Sink:
        sink = TlsSink(self)
        self.connections.append(sink)
        return sink
