"""SCRAM: both sides prove that they know the password, and neither sends it (RFC 5802; SHA-256: RFC 7677).

    client  n,,n=user,r=NONCE
    server  r=NONCE+,s=SALT,i=4096
    client  c=GS2 HEADER AND BINDING,r=NONCE+,p=PROOF
    server  v=SIGNATURE, or e=ERROR
    client  (empty)

*Rules*
- The server's nonce begins with ours and is longer. Extensions that we don't know: a mandatory one ends the exchange (5.1).
- `MIN_ITERATIONS` to `MAX_ITERATIONS`: fewer would let a server that knows nothing guess the password from our proof (RFC
  7677 4), more would keep a thread busy for long.
- Success counts after a right signature alone. With -PLUS the proof holds for this TLS connection alone: nobody in between
  can use it.
- Without -PLUS the header says `y` if we could have bound the channel and saw no offer: a server that made one then knows
  that somebody removed it (RFC 5802 6).
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import re
from typing import NamedTuple

from mailismus.mail.saslprep import prepare
from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, ChallengeFaultKind, Derivation, Keys, SecretMechanism
from mailismus.smtp.auth.response import decode, encode, join, wipe

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 1_000_000
"""Half a second of a thread."""
MAX_SALT = 1024

_FIRST = re.compile(rb"r=([!-+\--~]+),s=([A-Za-z0-9+/=]+),i=([1-9][0-9]{0,9})(?:,.*)?", re.DOTALL).fullmatch
_SIGNATURE = re.compile(rb"v=([A-Za-z0-9+/=]+)(?:,.*)?", re.DOTALL).fullmatch
_ERROR = b"e="


class ChannelBinding(NamedTuple):
    """What identifies a TLS connection. `kind`: tls-exporter (RFC 9266) or tls-server-end-point (RFC 5929)."""

    kind: bytes
    data: bytes


class _Step(enum.Enum):
    """The message of the server that comes next."""

    FIRST = "its nonce, salt and count"
    FINAL = "its signature"
    NONE = "none"


class Scram(SecretMechanism):
    """SCRAM with any hash. `nonce`: printable, without commas; `binding` None: not used. `could_bind`: -PLUS would have been
    used if it had been offered."""

    def __init__(
        self,
        username: bytes,
        secret: bytearray,
        nonce: bytes,
        binding: ChannelBinding | None = None,
        could_bind: bool = False,
        hash_name: str = "sha256",
    ) -> None:
        """Raises `saslprep.Unfit`."""
        super().__init__(username, secret)
        self.name = f"SCRAM-{hash_name.upper().replace('SHA', 'SHA-')}{'-PLUS' if binding else ''}"
        self._hash = hash_name
        self._nonce = nonce
        header = b"p=" + binding.kind if binding else b"y" if could_bind else b"n"
        self._header = header + b",,"
        self._binding = encode(self._header + (binding.data if binding else b""))
        user = bytes(prepare(username)).replace(b"=", b"=3D").replace(b",", b"=2C")
        self._first = b"n=" + user + b",r=" + nonce
        self._step = _Step.FIRST
        self._server_first = b""
        self._server_nonce = b""
        self._signature = b""
        self._is_proved = False

    @property
    def is_proved(self) -> bool:  # type: ignore[override]  # of the others it is always so
        """Whether the server's signature was right."""
        return self._is_proved

    def begin(self) -> bytearray:
        """Return our nonce."""
        return bytearray(self._header + self._first)

    def respond(self, challenge: bytes) -> bytearray | Derivation | ChallengeFault:
        """Take the server's first message, then its signature."""
        match self._step:
            case _Step.FIRST:
                return self._on_first(challenge)
            case _Step.FINAL:
                return self._on_final(challenge)
            case _Step.NONE:
                return NO_MORE

    def _on_first(self, challenge: bytes) -> Derivation | ChallengeFault:
        found = _FIRST(challenge)
        if found is None:
            return _senseless(b"its first message is none of SCRAM")
        nonce, salt_text, count = found.groups()
        salt, iterations = decode(salt_text), int(count)
        if not (nonce.startswith(self._nonce) and len(nonce) > len(self._nonce)):
            return _senseless(b"its nonce does not continue ours")
        if not salt or len(salt) > MAX_SALT:
            return _senseless(b"its salt is none")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            return _senseless(b"its count of iterations is not between %d and %d" % (MIN_ITERATIONS, MAX_ITERATIONS))
        self._step = _Step.FINAL
        self._server_first, self._server_nonce = challenge, nonce
        return Derivation(self._hash, salt, iterations)

    def use_keys(self, keys: Keys) -> bytearray:
        """Return the proof."""
        final = b"c=" + bytes(self._binding) + b",r=" + self._server_nonce
        message = b",".join((self._first, self._server_first, final))
        stored_key = hashlib.new(self._hash, keys.client_key).digest()
        signature = hmac.digest(stored_key, message, self._hash)
        proof = bytes(one ^ other for one, other in zip(keys.client_key, signature, strict=True))
        self._signature = hmac.digest(keys.server_key, message, self._hash)
        return join(final, b",p=", encode(proof))

    def _on_final(self, challenge: bytes) -> bytearray | ChallengeFault:
        self._step = _Step.NONE
        if challenge.startswith(_ERROR):  # our proof is wrong, it says; its reply says so too
            return bytearray()
        found = _SIGNATURE(challenge)
        signature = found and decode(found[1])
        if not signature or not hmac.compare_digest(signature, self._signature):
            return ChallengeFault(ChallengeFaultKind.UNPROVED, b"its signature is wrong")
        self._is_proved = True
        return bytearray()


def derive_keys(password: bytearray, derivation: Derivation) -> Keys:
    """Return the keys of a password in its prepared form, which is wiped. Takes up to half a second, without the
    interpreter's lock: for another thread, which has the password for itself."""
    salted = hashlib.pbkdf2_hmac(derivation.hash_name, password, derivation.salt, derivation.iterations)
    wipe(password)
    return Keys(
        hmac.digest(salted, b"Client Key", derivation.hash_name), hmac.digest(salted, b"Server Key", derivation.hash_name)
    )


def _senseless(why: bytes) -> ChallengeFault:
    return ChallengeFault(ChallengeFaultKind.SENSELESS, why)
