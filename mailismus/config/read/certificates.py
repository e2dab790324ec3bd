"""Certificates: the files that an `<ssl>` or `<tls>` block names, read and checked as far as can be without a client.

*Rules*: what is wrong with a file is a `UnitError` that says what to put there instead. Nothing of a private key is in any
text. OpenSSL is loaded only where a configuration names a certificate: most commands don't.

That a key is whole is shown by what it is for: it signs, and the certificate's public key verifies. The proof that its
primes are primes takes a hundred times as long (seconds for 8192 bits), and holds the interpreter for all of it.

*Not here*: TLS itself (`net.tls`, `net.tls_client`), which is given the bytes read here, so that a file which changes
between breaks nothing.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

import attrs

from mailismus.config.read.files import Files
from mailismus.config.values.units import UnitError
from mailismus.regular_file import Content

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

MAX_BYTES = 2**20
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_TRIAL = b"whether this key signs what its certificate verifies"


@attrs.frozen
class Chain:
    """Certificates in PEM, the server's own first. `begins_at`, `ends_at`: UTC seconds, of the one that ends first."""

    pem: bytes
    begins_at: float
    ends_at: float


@attrs.frozen
class Issuers:
    """Certificates of issuers in PEM. `ends_at`: UTC seconds, of the one that ends last: a file may hold the next one beside
    one that has ended."""

    pem: bytes
    ends_at: float


@attrs.frozen
class Key:
    """A private key in PEM. `is_readable_by_all`: users other than its file's owner and group may read it."""

    pem: bytes = attrs.field(repr=False)
    is_readable_by_all: bool


def read_chain(path: str, files: Files, line: int) -> Chain:
    """The chain in a file that stands in that line. Raises `UnitError`."""
    data = _read(path, files, line).data
    return files.make("chain", data, lambda: _parse_chain(data, path))


def _parse_chain(data: bytes, path: str) -> Chain:
    from cryptography import x509

    if _CERTIFICATE not in data:
        raise UnitError(f"{path} holds no certificate in PEM ({_CERTIFICATE.decode()})")
    try:
        certificates = x509.load_pem_x509_certificates(data)
        begins_at = max(certificate.not_valid_before_utc.timestamp() for certificate in certificates)
        ends_at = min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
    except ValueError as error:
        raise UnitError(f"{path} holds a certificate that can't be read: {error}") from None
    return Chain(data, begins_at, ends_at)


def read_trust(path: str, files: Files, line: int) -> Issuers:
    """The certificates of trusted issuers in a file that stands in that line. Raises `UnitError`."""
    chain = read_chain(path, files, line)
    return Issuers(chain.pem, files.make("trust", chain.pem, lambda: _try_trust(chain.pem, path)))


def _try_trust(pem: bytes, path: str) -> float:
    """Return the end of the certificate that ends last, if OpenSSL takes all of them."""
    from cryptography import x509
    from OpenSSL import crypto

    store = crypto.X509Store()
    certificates = x509.load_pem_x509_certificates(pem)
    try:
        for certificate in certificates:
            store.add_cert(crypto.X509.from_cryptography(certificate))
    except (ValueError, crypto.Error):
        raise UnitError(f"{path} holds a certificate that OpenSSL does not take") from None
    return max(certificate.not_valid_after_utc.timestamp() for certificate in certificates)


def read_key(path: str, files: Files, line: int) -> Key:
    """The private key in a file that stands in that line, which may hold certificates too. Raises `UnitError`."""
    content = _read(path, files, line)
    pem = files.make("key", content.data, lambda: _find_key(content.data, path))
    return Key(pem, bool(content.mode & stat.S_IROTH))


def _find_key(data: bytes, path: str) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _KEY.search(data)
    if found is None:
        raise UnitError(f"{path} holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    try:
        load_pem_private_key(found[0], None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise UnitError(f"the private key in {path} is encrypted: store it without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):  # their texts may quote the file
        raise UnitError(f"the private key in {path} can't be read: store it as PKCS #8 in PEM") from None
    return found[0]


def check_pair(chain: Chain, key: Key, files: Files) -> None:
    """Whether the key is that of the chain's first certificate, and both are good enough for OpenSSL. Raises `UnitError`."""
    files.make("pair", chain.pem + b"\0" + key.pem, lambda: _check_pair(chain, key.pem))


def _check_pair(chain: Chain, key_pem: bytes) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from OpenSSL import SSL

    own, *others = x509.load_pem_x509_certificates(chain.pem)
    key = load_pem_private_key(key_pem, None, unsafe_skip_rsa_key_validation=True)
    if key.public_key() != own.public_key():
        raise UnitError("it is not the key of the first certificate in <certificate>")
    if isinstance(key, RSAPrivateKey):  # the others are checked where they are read, which takes no time
        _try_rsa(key)
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


def _try_rsa(key: RSAPrivateKey) -> None:
    """Sign something and verify it. Raises `UnitError`."""
    from cryptography.exceptions import InternalError, InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        key.public_key().verify(key.sign(_TRIAL, PKCS1v15(), SHA256()), _TRIAL, PKCS1v15(), SHA256())
    except (ValueError, InternalError, InvalidSignature):  # their texts may tell of the key
        raise UnitError(
            "it is damaged: what it signs, its certificate does not verify; restore it, or make a new pair"
        ) from None


def _read(path: str, files: Files, line: int) -> Content:
    try:
        content = files.read(path, MAX_BYTES + 1, line)
    except OSError as error:
        raise UnitError(f"{path} can't be read: {error.strerror}") from None
    if len(content.data) > MAX_BYTES:
        raise UnitError(f"{path} is larger than {MAX_BYTES} bytes")
    return content
