"""What each mechanism does: its responses to the challenges of a server.

*Rules*: a mechanism owns its secret from the constructor on and overwrites it with `wipe`. A fault is a value. A mechanism
that makes the server prove something says so by `is_proved`: success without proof is no success.
"""

from __future__ import annotations

import enum
from typing import Protocol

import attrs

from mailismus.smtp.auth.response import wipe


class ChallengeFaultKind(enum.Enum):
    """What is wrong with a challenge."""

    SENSELESS = "it breaks the rules of the mechanism"
    UNPROVED = "the server did not prove that it knows the password"


@attrs.frozen
class ChallengeFault:
    """A challenge that gets no response: the exchange is given up. `why`: for the log, without words of the server."""

    kind: ChallengeFaultKind
    why: bytes


@attrs.frozen
class Derivation:
    """Keys are to be derived from the password, which takes long: elsewhere than in the reactor's thread."""

    hash_name: str
    salt: bytes
    iterations: int


@attrs.frozen
class Keys:
    """What SCRAM derives from a password. They stand for the password at a server with the same salt."""

    client_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)


class Mechanism(Protocol):
    """One mechanism in one exchange. The arrays it returns may hold the secret: whoever gets them wipes them."""

    name: str
    ignores_challenges: bool
    """Whether challenges are signs to go on, whatever they say: some servers put words there that are no base64."""

    @property
    def is_proved(self) -> bool:
        """Whether success may be believed now."""

    @property
    def secret(self) -> bytearray:
        """The secret, to be looked for in the words of a server. Empty after `wipe`."""

    def begin(self) -> bytearray | None:
        """Return the initial response; None: the server speaks first."""

    def respond(self, challenge: bytes) -> bytearray | Derivation | ChallengeFault:
        """Return the response to a challenge, which is decoded, or empty where the mechanism ignores challenges."""

    def use_keys(self, keys: Keys) -> bytearray:
        """Return the response that a `Derivation` held up."""

    def wipe(self) -> None:
        """Overwrite the secret. May be repeated."""


NO_MORE = ChallengeFault(ChallengeFaultKind.SENSELESS, b"a challenge more than the mechanism has")


class SecretMechanism:
    """The parts that all mechanisms share. `username`: UTF-8; `secret`: becomes the mechanism's own."""

    name = ""
    is_proved = True
    ignores_challenges = False

    def __init__(self, username: bytes, secret: bytearray) -> None:
        self.username = username
        self.secret = secret

    def use_keys(self, keys: Keys) -> bytearray:
        """Not reached: this mechanism derives no keys."""
        raise AssertionError(f"{self.name} derives no keys")

    def wipe(self) -> None:
        """Overwrite the secret."""
        wipe(self.secret)
