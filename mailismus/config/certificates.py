"""Certificates: the files that an `<ssl>` block names, read and checked as far as can be without a client.

*Rules*: what is wrong with a file is a `UnitError` that says what to put there instead. Nothing of a private key is in any
text. OpenSSL is loaded only where a configuration names a certificate: most commands don't.

*Not here*: TLS itself (`net.tls`), which is given the bytes read here, so that a file which changes between breaks nothing.
"""

from __future__ import annotations

import os
import re
import stat

import attrs

from mailismus.config.units import UnitError

MAX_BYTES = 2**20
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
DAY_S = 86400.0


@attrs.frozen
class Chain:
    """Certificates in PEM, the server's own first. `begins_at`, `ends_at`: UTC seconds, of the one that ends first."""

    pem: bytes
    begins_at: float
    ends_at: float


def read_chain(path: str) -> Chain:
    """The chain in a file. Raises `UnitError`."""
    from cryptography import x509

    data = _read(path)
    if _CERTIFICATE not in data:
        raise UnitError(f"{path} holds no certificate in PEM ({_CERTIFICATE.decode()})")
    try:
        certificates = x509.load_pem_x509_certificates(data)
        begins_at = max(certificate.not_valid_before_utc.timestamp() for certificate in certificates)
        ends_at = min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
    except ValueError as error:
        raise UnitError(f"{path} holds a certificate that can't be read: {error}") from None
    return Chain(data, begins_at, ends_at)


def read_key(path: str) -> bytes:
    """The private key in a file, which may hold certificates too; in PEM. Raises `UnitError`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _KEY.search(_read(path))
    if found is None:
        raise UnitError(f"{path} holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    try:
        load_pem_private_key(found[0], None)
    except TypeError:
        raise UnitError(f"the private key in {path} is encrypted: store it without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):  # their texts may quote the file
        raise UnitError(f"the private key in {path} can't be read: store it as PKCS #8 in PEM") from None
    return found[0]


def check_pair(chain: Chain, key_pem: bytes) -> None:
    """Whether the key is that of the chain's first certificate, and both are good enough for OpenSSL. Raises `UnitError`."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from OpenSSL import SSL

    own, *others = x509.load_pem_x509_certificates(chain.pem)
    key = load_pem_private_key(key_pem, None)
    if key.public_key() != own.public_key():
        raise UnitError("it is not the key of the first certificate in <certificate>")
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    try:
        context.use_certificate(own)
        context.use_privatekey(key)  # type: ignore[arg-type]  # what is no key for TLS, it refuses
        for other in others:
            context.add_extra_chain_cert(other)
        context.check_privatekey()
    except SSL.Error as error:
        words = str(error.args[0][0][2]) if error.args and error.args[0] else "unknown"
        raise UnitError(f"OpenSSL does not take this certificate and key: {words}") from None
    except TypeError:
        raise UnitError("it is a key of a kind that TLS does not use: write one of RSA or an elliptic curve") from None


def is_readable_by_all(path: str) -> bool:
    """Whether users other than the file's owner and group may read it."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:
        return False


def describe_end(ends_at: float, now: float) -> str:
    """`ends in 42 days`, `ended 3 days ago`."""
    days = int(abs(ends_at - now) // DAY_S)
    text = f"{days} day" if days == 1 else f"{days} days"
    return f"ends in {text}" if ends_at >= now else f"ended {text} ago"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", opener=_open_at_once) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnitError(f"{path} can't be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise UnitError(f"{path} is larger than {MAX_BYTES} bytes")
    return data


def _open_at_once(path: str, flags: int) -> int:
    """A running server reads it too, and is not to wait for whoever writes into a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
