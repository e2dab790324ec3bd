"""CRAM-MD5: a keyed digest of the server's challenge (RFC 2195). Obsolete; used only where the configuration names it."""

from __future__ import annotations

import hmac

from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, ChallengeFaultKind, SecretMechanism
from mailismus.smtp.auth.response import join

_NO_CHALLENGE = ChallengeFault(ChallengeFaultKind.SENSELESS, b"an empty challenge of CRAM-MD5")


class CramMd5(SecretMechanism):
    """CRAM-MD5."""

    name = "CRAM-MD5"

    def __init__(self, username: bytes, secret: bytearray) -> None:
        super().__init__(username, secret)
        self._is_answered = False

    def begin(self) -> None:
        """The server speaks first."""

    def respond(self, challenge: bytes) -> bytearray | ChallengeFault:
        """Return the name and the digest in hex."""
        if self._is_answered:
            return NO_MORE
        if not challenge:  # the digest would be the same each time, for anybody to use again
            return _NO_CHALLENGE
        self._is_answered = True
        digest = hmac.digest(self.secret, challenge, "md5")
        return join(self.username, b" ", digest.hex().encode("ascii"))
