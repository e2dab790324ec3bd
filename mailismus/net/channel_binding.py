"""Channel binding: bytes that both ends of one TLS connection know and nobody in between can make equal (RFC 5056).

*Rules*: under TLS 1.3 `tls-exporter` (RFC 9266); under TLS 1.2 `tls-server-end-point` (RFC 5929 4), the digest of the
server's certificate, for an exporter of TLS 1.2 binds nothing without extended master secret, and OpenSSL's wrapper does not
tell whether that was used. A certificate whose signature names no hash (Ed25519) gives none.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from OpenSSL import SSL

EXPORTER, END_POINT = b"tls-exporter", b"tls-server-end-point"
_LABEL = b"EXPORTER-Channel-Binding"
_EXPORTED = 32
_WEAK = ("md5", "sha1")
"""Hashes for which SHA-256 stands in."""


def channel_binding(connection: SSL.Connection) -> tuple[bytes, bytes] | None:
    """Return kind and bytes of the binding of a connection whose handshake is done, on its client's side; None: it has
    none."""
    if connection.get_protocol_version() >= SSL.TLS1_3_VERSION:
        return EXPORTER, connection.export_keying_material(_LABEL, _EXPORTED, b"")
    certificate = peer_certificate(connection)
    if certificate is None:
        return None
    try:
        algorithm = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    if algorithm is None:
        return None
    return END_POINT, certificate.fingerprint(hashes.SHA256() if algorithm.name in _WEAK else algorithm)


def peer_certificate(connection: SSL.Connection) -> x509.Certificate | None:
    """Return the certificate of the other side; None: it showed none, or one that OpenSSL takes and nobody else can read."""
    try:
        return connection.get_peer_certificate(as_cryptography=True)
    except (ValueError, x509.InvalidVersion):
        return None
