"""TLS towards other servers: the same pump as that of listeners, from the other side (RFC 8446, RFC 5246, RFC 6066).

    client = TlsClient(Demands(is_verified=True), clock)       once for each set of demands
    transport = client.begin(tcp, session, server_name, known) the session writes to `transport` from now on

*Rules*
- TLS 1.2 or later, no compression, no renegotiation. A chain of certificates has at most 100 KB (OpenSSL's own bound), and
  a session takes no byte before the handshake is over.
- With `is_verified` the handshake fails if the chain leads to no trusted issuer or a date has passed. The name is the
  caller's concern: `certificate` gives it.
- Without it nothing is checked, and old ciphers and small keys are taken: nothing better would come of a refusal than a
  connection without TLS.
- A session is resumed from `known`, which an earlier transport gave as `keep`. Who may use it is the caller's concern. It
  holds the host's chain, in about ten times the bytes; one with more than `MAX_KEPT` is not given.

*Not here*: STARTTLS (`smtp.client`), time-outs (`deliver.sessions.host_session`), names (`deliver.security`), which sessions
are kept (`net.tls_sessions`).
"""

from __future__ import annotations

import socket

import attrs
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL, crypto
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IReactorTime, ITransport
from twisted.internet.tcp import Connection
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from mailismus.net.channel_binding import peer_certificate
from mailismus.net.tls import TlsSession, TlsTransport, start_pump

MAX_KEPT = 16384
"""Bytes received up to EHLO under TLS, most of them the chain: usually 2 to 8 KB."""
_VERIFIED_CIPHERS = b"DEFAULT:!aNULL"
_ANY_CIPHERS = b"DEFAULT:@SECLEVEL=1"
_UNKNOWN_ISSUER = "unknown issuer (cafile names those that are trusted)"
_WHY = {
    2: _UNKNOWN_ISSUER,
    9: "certificate is not yet valid",
    10: "certificate has expired",
    18: "self-signed certificate",
    19: "self-signed certificate in the chain",
    20: _UNKNOWN_ISSUER,
    21: "unable to verify the first certificate",
    23: "certificate was revoked",
    24: "the issuer is no authority",
    26: "certificate is not for a server",
    66: "the key of the certificate is too small",
    67: "the key of the issuer is too small",
    68: "the signature of the certificate is too weak",
}
"""OpenSSL's numbers of what is wrong with a chain (X509_V_ERR), in its own words where they are plain."""
NO_TLS = b"wrong version number"
"""OpenSSL's words for a first byte that is none of TLS."""


@attrs.frozen
class Demands:
    """What a host must show, and what it is shown. `ca_pem` None: the system's issuers; `chain_pem` and `key_pem`: our
    certificate, or empty."""

    is_verified: bool = False
    is_1_3: bool = False
    ca_pem: bytes | None = attrs.field(default=None, repr=False)
    chain_pem: bytes = attrs.field(default=b"", repr=False)
    key_pem: bytes = attrs.field(default=b"", repr=False)


def make_client_context(demands: Demands) -> SSL.Context:
    """A context for these demands. `config.read.tls` has checked the files. Raises `ValueError`, or errors of
    OpenSSL."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION if demands.is_1_3 else SSL.TLS1_2_VERSION)
    context.set_cipher_list(_VERIFIED_CIPHERS if demands.is_verified else _ANY_CIPHERS)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    if not demands.is_verified:
        context.set_verify(SSL.VERIFY_NONE, _note_certificate)
    else:
        context.set_verify(SSL.VERIFY_PEER, _note_verification)
        if demands.ca_pem is None:
            context.set_default_verify_paths()
        else:
            store = context.get_cert_store()
            assert store is not None
            for issuer in x509.load_pem_x509_certificates(demands.ca_pem):
                store.add_cert(crypto.X509.from_cryptography(issuer))
    if demands.chain_pem:
        own, *others = x509.load_pem_x509_certificates(demands.chain_pem)
        context.use_certificate(own)
        for other in others:
            context.add_extra_chain_cert(other)
        key = load_pem_private_key(demands.key_pem, None, unsafe_skip_rsa_key_validation=True)
        context.use_privatekey(key)  # type: ignore[arg-type]  # it refuses a key that is unfit for TLS
        context.check_privatekey()
    return context


def _note_certificate(connection: SSL.Connection, *_: object) -> bool:
    """Called by OpenSSL for each certificate of a chain and each thing that is wrong with it, where that does not matter."""
    transport = connection.get_app_data()
    assert isinstance(transport, ClientTlsTransport)
    transport.note_certificate()
    return True


def _note_verification(connection: SSL.Connection, _: object, number: int, depth: int, is_well: int) -> bool:
    """The same where it does matter."""
    _note_certificate(connection)
    if not is_well:
        transport = connection.get_app_data()
        assert isinstance(transport, ClientTlsTransport)
        transport.note_untrusted(_WHY.get(number, f"verification error {number}"))
    return bool(is_well)


@implementer(IOpenSSLClientConnectionCreator)
class TlsClient:
    """TLS with one set of demands. The constructor raises as `make_client_context` does; nothing raises afterwards."""

    def __init__(self, demands: Demands, clock: IReactorTime) -> None:
        self._context = make_client_context(demands)
        # The factory wraps no other one: connections are given to it one by one, as Twisted's `startTLS` does.
        self._factory = TLSMemoryBIOFactory(self, True, None, clock)  # type: ignore[arg-type]

    def clientConnectionForTLS(self, protocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """Called by Twisted's pump."""
        assert isinstance(protocol, ClientTlsTransport)
        connection = SSL.Connection(self._context, None)
        connection.set_app_data(protocol)
        if protocol.server_name:
            connection.set_tlsext_host_name(protocol.server_name)
        if protocol.known is not None:
            connection.set_session(protocol.known)
        return connection

    def begin(
        self, tcp: ITransport, session: TlsSession, server_name: bytes, known: SSL.Session | None
    ) -> ClientTlsTransport:
        """Start TLS on a TCP connection. Returns the transport for the session. `server_name`: sent to the host (SNI);
        empty: none is. A handshake that fails ends in `connectionLost`; the session must end one that never ends."""
        transport = ClientTlsTransport(self._factory, tcp, session, server_name, known)
        start_pump(transport, tcp)
        return transport


def has_plain_bytes(tcp: ITransport) -> bool:
    """Whether bytes wait in the socket of a TCP connection before TLS has begun: they can't belong to it."""
    if not isinstance(tcp, Connection):
        return False
    try:
        return bool(tcp.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:  # there are none
        return False


class ClientTlsTransport(TlsTransport):
    """TLS of one connection to another server. `untrusted`: what is wrong with its chain, if that ended the handshake."""

    WENT_AWAY = b"connection lost"

    def __init__(
        self,
        factory: TLSMemoryBIOFactory,
        tcp: ITransport,
        session: TlsSession,
        server_name: bytes,
        known: SSL.Session | None,
    ) -> None:
        self.server_name, self.known = server_name, known
        self.untrusted = ""
        self.has_begun_plainly = False
        """Whether its first byte is that of a reply of SMTP that accepts something, in place of TLS."""
        self._is_shown = self._is_begun = False
        self._received = 0
        super().__init__(factory, tcp, session)
        self._head = None  # the size of a hello is a rule for clients

    def dataReceived(self, data: bytes) -> None:
        """Take encrypted bytes of the host."""
        if not self._is_begun:
            self._is_begun, self.has_begun_plainly = True, data[:1] in (b"2", b"3")
        self._received += len(data)
        super().dataReceived(data)

    def note_certificate(self) -> None:
        """Note that the host showed a certificate."""
        self._is_shown = True

    def note_untrusted(self, why: str) -> None:
        """Note what is wrong with the chain."""
        self.untrusted = self.untrusted or why

    @property
    def certificate(self) -> x509.Certificate | None:
        """The host's own certificate; None: it has none that can be read."""
        connection: SSL.Connection = self.getHandle()  # type: ignore[no-untyped-call]  # Twisted's
        return peer_certificate(connection)

    def keep(self) -> SSL.Session | None:
        """What a later connection can resume; None: nothing worth its memory. Of TLS 1.3 it comes with the first bytes
        behind the handshake."""
        if self._received > MAX_KEPT:
            return None
        connection: SSL.Connection = self.getHandle()  # type: ignore[no-untyped-call]  # Twisted's
        return connection.get_session()

    @property
    def is_resumed(self) -> bool:
        """Whether the handshake resumed `known`: the host showed no certificate."""
        return not self._is_shown
