"""PLAIN: name and password in one response (RFC 4616)."""

from __future__ import annotations

from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, SecretMechanism
from mailismus.smtp.auth.response import join


class Plain(SecretMechanism):
    """PLAIN, for the user's own identity."""

    name = "PLAIN"
    ignores_challenges = True

    def begin(self) -> bytearray:
        """Return the only response."""
        return join(b"\0", self.username, b"\0", self.secret)

    def respond(self, challenge: bytes) -> ChallengeFault:
        """PLAIN has no challenges."""
        return NO_MORE
