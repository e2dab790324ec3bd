"""TLS for connections from clients: Twisted's own pump, between a TCP connection and a session (RFC 8446, RFC 5246).

    server = TlsServer(chain, key, clock)          once for each certificate
    transport = server.begin(tcp, session)         the session writes to `transport` from now on

*Rules*:
- TLS 1.2 or later; only ciphers with forward secrecy and authentication; no compression, renegotiation or session resumption
  (nothing of a closed connection is kept).
- Written bytes are encrypted and sent in the same turn. Bytes that the kernel does not take wait in the TCP connection,
  where `send.is_backed_up` sees them; so a session slows down its client under TLS as without.
- One read of the TCP connection yields one piece, so that reading can stop between any two.
- Memory for a handshake is bounded, and so are bytes that say nothing, in it and later: key updates and tickets cost as much
  as mail does, and no limit of time would count them.

*Not here*: TLS towards other servers (`net.tls_client`), STARTTLS (`smtp.server`), time-outs and closing
(`submit.protocol`), reading certificates (`config.read.certificates`).

*Weakness*: `connection.protocol` is set here, as Twisted's `startTLS` does, and so is `_lostTLSConnection` of its pump: no
interface offers that. `startTLS` itself would send each reply a turn later and hide waiting bytes.
"""

from __future__ import annotations

from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IAddress,
    IHandshakeListener,
    IOpenSSLServerConnectionCreator,
    IProtocol,
    IReactorTime,
    ITransport,
)
from twisted.internet.protocol import connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.send import send_now

_CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
"""For TLS 1.2; all ciphers of TLS 1.3 qualify."""
SLICE = 8192
"""Bytes given to OpenSSL at a time: its buffers grow to the largest piece and never shrink."""
MAX_HELLO = 16384
"""Bytes of a client's first message: OpenSSL allocates the declared size, up to 128 KiB. Real ones have 2 KiB."""

MAX_SILENT = 1 << 18
"""Bytes of a peer that bring no plain byte: a chain of certificates has at most 100 KB."""
FLOODED = b"too many bytes that say nothing"
SILENT_PER_PLAIN = 128
"""Bytes of a peer for which one plain byte makes up: a record has some 20 to 90 beside it."""


class TlsSession(Protocol):
    """The session above TLS."""

    def handshake_completed(self, tls: bytes) -> None:
        """Note that TLS is established; `tls` describes it (`TLSv1.3 with cipher ...`). No bytes come earlier."""

    def dataReceived(self, data: bytes) -> None:
        """Take decrypted bytes of the client."""

    def handshake_failed(self, why: bytes) -> None:
        """Note that the handshake failed, or the connection ended before its end; `connectionLost` follows."""

    def connectionLost(self, reason: Failure) -> None:
        """Note that the connection is over."""


def make_context(chain_pem: bytes, key_pem: bytes) -> SSL.Context:
    """A server's context with this chain (its own certificate first) and key; `config.read.certificates` has checked both.
    Raises `ValueError` or `SSL.Error`."""
    own, *others = x509.load_pem_x509_certificates(chain_pem)
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(_CIPHERS)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE | SSL.OP_NO_TICKET)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    context.use_certificate(own)
    for other in others:
        context.add_extra_chain_cert(other)
    # Validation is skipped: the proof of an RSA key's primes would block the interpreter for seconds.
    key = load_pem_private_key(key_pem, None, unsafe_skip_rsa_key_validation=True)
    context.use_privatekey(key)  # type: ignore[arg-type]  # it refuses a key that is unfit for TLS
    context.check_privatekey()
    return context


@implementer(IOpenSSLServerConnectionCreator)
class TlsServer:
    """TLS with one certificate. The constructor raises as `make_context` does; nothing raises afterwards."""

    def __init__(self, chain_pem: bytes, key_pem: bytes, clock: IReactorTime) -> None:
        self._context = make_context(chain_pem, key_pem)
        # The factory wraps no other one: connections are given to it one by one, as Twisted's `startTLS` does.
        self._factory = TLSMemoryBIOFactory(self, False, None, clock)  # type: ignore[arg-type]

    def serverConnectionForTLS(self, protocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """Called by Twisted's pump."""
        return SSL.Connection(self._context, None)

    def begin(self, tcp: ITransport, session: TlsSession) -> TlsTransport:
        """Start TLS on a TCP connection. Returns the transport for the session. A handshake that fails ends in
        `connectionLost`; the session must end one that never ends."""
        transport = TlsTransport(self._factory, tcp, session)
        start_pump(transport, tcp)
        return transport


def start_pump(transport: TlsTransport, tcp: ITransport) -> None:
    """Put the pump between a TCP connection and its session."""
    tcp.protocol = transport  # type: ignore[attr-defined]  # see *Weakness*
    transport.makeConnection(_Wire(tcp))  # type: ignore[no-untyped-call]  # Twisted's


class TlsTransport(TLSMemoryBIOProtocol):
    """TLS of one connection: a protocol to TCP, a transport to the session. `wire`: the TCP connection."""

    WENT_AWAY = b"the client went away"
    """Why a handshake failed that the other side ended without a word."""

    def __init__(self, factory: TLSMemoryBIOFactory, tcp: ITransport, session: TlsSession) -> None:
        self.wire = tcp
        self._silent = 0
        """Bytes that brought no plain ones."""
        self.is_flooded = False
        """Whether there were too many of them."""
        self._head: bytes | None = b""  # the first bytes, until they tell the size of the client's first message
        super().__init__(factory, _Plain(self, session), False)  # type: ignore[no-untyped-call]  # Twisted's

    def dataReceived(self, data: bytes) -> None:
        """Take encrypted bytes of the client."""
        if self._head is not None:
            data = self._head + data
            if len(data) < 9:
                self._head = data
                return
            self._head = None
            if data[0] == 0x16 and int.from_bytes(data[6:9], "big") > MAX_HELLO:
                self.abortConnection()  # type: ignore[no-untyped-call]  # Twisted's
                return
        plain = self.wrappedProtocol
        assert isinstance(plain, _Plain)  # it is until the connection is lost
        for start in range(0, len(data), SLICE):
            super().dataReceived(data[start : start + SLICE])  # type: ignore[no-untyped-call]  # Twisted's
        self._silent = max(0, self._silent + len(data) - SILENT_PER_PLAIN * plain.pass_on())
        if self._silent > MAX_SILENT:
            self.is_flooded = True
            self.abortConnection()  # type: ignore[no-untyped-call]  # Twisted's

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note that the TCP connection is over."""
        # All earlier bytes have been passed on. Reading more would end in a failure whose traceback refers to itself, which
        # keeps OpenSSL's memory of every connection that ended without close_notify until the next garbage collection.
        self._lostTLSConnection = True
        super().connectionLost(reason)  # type: ignore[no-untyped-call]  # Twisted's

    def explain(self) -> bytes:
        """Version and cipher: `TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256 bits)`."""
        connection = self.getHandle()  # type: ignore[no-untyped-call]  # Twisted's
        words = (
            f"{connection.get_protocol_version_name()} with cipher {connection.get_cipher_name()}"
            f" ({connection.get_cipher_bits()} bits)"
        )
        return words.encode("ascii", "replace")

    def explain_failure(self, reason: Failure) -> bytes:
        """Why the handshake failed, in a few words."""
        if self.is_flooded:
            return FLOODED
        match reason.value:
            case SSL.Error(args=([(_, _, words), *_],)):
                return str(words).encode("ascii", "replace")
            case ConnectionDone() | ConnectionLost():
                return self.WENT_AWAY
            case _:
                return b"given up"

    def pauseProducing(self) -> None:
        """Stop reading."""
        self.wire.pauseProducing()  # type: ignore[attr-defined]  # every stream transport has it

    def resumeProducing(self) -> None:
        """Read again."""
        self.wire.resumeProducing()  # type: ignore[attr-defined]  # as above


@implementer(IProtocol, IHandshakeListener)
class _Plain:
    """The decrypted side of the pump: joins the pieces of one read for the session."""

    __slots__ = ("_is_on", "_pieces", "_session", "_transport")

    def __init__(self, transport: TlsTransport, session: TlsSession) -> None:
        self._transport, self._session, self._is_on = transport, session, False
        self._pieces: list[bytes] = []

    def makeConnection(self, transport: ITransport) -> None:
        """Ignored: the session is connected already."""

    def connectionMade(self) -> None:
        """As above."""

    def handshakeCompleted(self) -> None:
        self._is_on = True
        self._session.handshake_completed(self._transport.explain())

    def dataReceived(self, data: bytes) -> None:
        self._pieces.append(data)

    def pass_on(self) -> int:
        """Give the session the bytes of this read. Return their number."""
        if not self._pieces:
            return 0
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._session.dataReceived(data)
        return len(data)

    def connectionLost(self, reason: Failure) -> None:
        if not self._is_on:
            self._session.handshake_failed(self._transport.explain_failure(reason))
        self._session.connectionLost(reason)


class _Wire:
    """The TCP connection as the pump's transport: writes are sent at once."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: ITransport) -> None:
        self._tcp = tcp

    def write(self, data: bytes) -> None:
        send_now(self._tcp, (data,))

    def loseConnection(self) -> None:
        self._tcp.loseConnection()

    def abortConnection(self) -> None:
        self._tcp.abortConnection()  # type: ignore[attr-defined]  # every stream transport has it

    def getPeer(self) -> IAddress:
        return self._tcp.getPeer()

    def getHost(self) -> IAddress:
        return self._tcp.getHost()
