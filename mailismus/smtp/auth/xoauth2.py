"""XOAUTH2: a bearer token in one response (Google's and Microsoft's protocol; the error challenge as in RFC 7628 3.2.3).

*Rules*: a server that refuses the token says why in a challenge, which gets an empty response; then comes its reply.
"""

from __future__ import annotations

from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, SecretMechanism
from mailismus.smtp.auth.response import join


class Xoauth2(SecretMechanism):
    """XOAUTH2. The secret is a token that was got elsewhere."""

    name = "XOAUTH2"
    ignores_challenges = True

    def __init__(self, username: bytes, secret: bytearray) -> None:
        super().__init__(username, secret)
        self._is_refused = False

    def begin(self) -> bytearray:
        """Return the name and the token."""
        return join(b"user=", self.username, b"\1auth=Bearer ", self.secret, b"\1\1")

    def respond(self, challenge: bytes) -> bytearray | ChallengeFault:
        """Return nothing, once: the token was refused."""
        if self._is_refused:
            return NO_MORE
        self._is_refused = True
        return bytearray()
