"""LOGIN: the server asks for the name, then for the password (never standardized; draft-murchison-sasl-login).

*Rules*: the first response is the name, the second the password, whatever the challenges say: servers word them differently.
"""

from __future__ import annotations

from mailismus.smtp.auth.mechanism import NO_MORE, ChallengeFault, SecretMechanism


class Login(SecretMechanism):
    """LOGIN."""

    name = "LOGIN"
    ignores_challenges = True

    def __init__(self, username: bytes, secret: bytearray) -> None:
        super().__init__(username, secret)
        self._responses = 0

    def begin(self) -> None:
        """The server speaks first."""

    def respond(self, challenge: bytes) -> bytearray | ChallengeFault:
        """Return the name, then the password."""
        self._responses += 1
        if self._responses == 1:
            return bytearray(self.username)
        return bytearray(self.secret) if self._responses == 2 else NO_MORE
