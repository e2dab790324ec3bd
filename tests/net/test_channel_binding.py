"""Channel binding: both ends of a connection have the same one, and those of two connections differ where they can."""

from __future__ import annotations

import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from mailismus.net.channel_binding import END_POINT, EXPORTER, channel_binding
from tests.fakes.certificates import Made, make_certificate


def connect(made: Made, version: int) -> tuple[SSL.Connection, SSL.Connection]:
    """A client and a server in memory, after their handshake."""
    server_context = SSL.Context(SSL.TLS_SERVER_METHOD)
    server_context.use_certificate(made.certificate)
    server_context.use_privatekey(load_pem_private_key(made.key_pem, None))  # type: ignore[arg-type]  # it is one for TLS
    server_context.set_max_proto_version(version)
    client, server = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD)), SSL.Connection(server_context)
    client.set_connect_state()
    server.set_accept_state()
    for _ in range(4):
        for one, other in ((client, server), (server, client)):
            try:
                one.do_handshake()
            except SSL.WantReadError:
                pass
            try:
                other.bio_write(one.bio_read(65536))
            except SSL.WantReadError:
                pass
    return client, server


def test_tls_1_3_is_bound_by_its_exporter() -> None:
    made = make_certificate()
    first, second = connect(made, SSL.TLS1_3_VERSION), connect(made, SSL.TLS1_3_VERSION)
    assert channel_binding(first[0]) == channel_binding(first[1])
    found = channel_binding(first[0])
    assert found is not None
    assert (found[0], len(found[1])) == (EXPORTER, 32)
    assert found != channel_binding(second[0])


def test_tls_1_2_is_bound_to_the_certificate_of_the_server() -> None:
    made = make_certificate()
    client, _ = connect(made, SSL.TLS1_2_VERSION)
    assert channel_binding(client) == (END_POINT, hashlib.sha256(made.der).digest())


class _Peer:
    """A connection of TLS 1.2 whose certificate is the test's."""

    def __init__(self, certificate: x509.Certificate | None) -> None:
        self.certificate = certificate

    def get_protocol_version(self) -> int:
        return SSL.TLS1_2_VERSION

    def get_peer_certificate(self, *, as_cryptography: bool) -> x509.Certificate | None:
        return self.certificate


@pytest.mark.parametrize("has_certificate", [False, True])
def test_a_certificate_without_a_hash_gives_none(has_certificate: bool) -> None:
    made = make_certificate()
    builder = x509.CertificateBuilder(
        made.certificate.issuer,
        made.certificate.subject,
        made.certificate.public_key(),
        made.certificate.serial_number,
        made.certificate.not_valid_before_utc,
        made.certificate.not_valid_after_utc,
    )
    certificate = builder.sign(ed25519.Ed25519PrivateKey.generate(), None) if has_certificate else None
    assert channel_binding(_Peer(certificate)) is None  # type: ignore[arg-type]  # a connection, as far as it is asked


@pytest.mark.parametrize("error", [ValueError("error parsing asn1 value"), x509.InvalidVersion("5 is no version", 5)])
def test_a_certificate_that_openssl_alone_can_read_gives_none(error: Exception) -> None:
    class Odd(_Peer):
        def get_peer_certificate(self, *, as_cryptography: bool) -> x509.Certificate | None:
            raise error

    assert channel_binding(Odd(None)) is None  # type: ignore[arg-type]  # as above
