"""Which mechanism is used, and the mechanisms by name.

*Rules*: the first of the configured mechanisms, in their written order, that the server offers. -PLUS needs a channel that
can be bound. Nothing weaker is tried after a failure: one exchange is made in a connection, with one mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mailismus.smtp.auth.cram_md5 import CramMd5
from mailismus.smtp.auth.login import Login
from mailismus.smtp.auth.mechanism import Mechanism
from mailismus.smtp.auth.plain import Plain
from mailismus.smtp.auth.scram import ChannelBinding, Scram
from mailismus.smtp.auth.xoauth2 import Xoauth2

SCRAM, SCRAM_PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_SIMPLE: dict[str, Callable[[bytes, bytearray], Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Plain, Login, Xoauth2, CramMd5)
}
MECHANISMS = (SCRAM_PLUS, SCRAM, *_SIMPLE)


def parse_offer(parameters: bytes) -> frozenset[str]:
    """Return the mechanisms that a server offers behind AUTH in its reply to EHLO."""
    return frozenset(parameters.decode("ascii", "replace").upper().split())


def choose(types: Sequence[str], offered: Collection[str], can_bind: bool) -> str | None:
    """Return the mechanism to use; None: the server offers none of `types`."""
    for name in types:
        if name in offered and (can_bind or name != SCRAM_PLUS):
            return name
    return None


def make_mechanism(
    name: str,
    username: bytes,
    secret: bytearray,
    nonce: bytes,
    binding: ChannelBinding | None,
    types: Sequence[str],
    offered: Collection[str],
) -> Mechanism:
    """Return the mechanism that was chosen, which owns the secret from now on. `nonce`: see `Scram`; new for each exchange.
    Raises `saslprep.Unfit`."""
    if name == SCRAM_PLUS:
        assert binding is not None, "`choose` takes it with a binding alone"
        return Scram(username, secret, nonce, binding)
    if name == SCRAM:
        could_bind = binding is not None and SCRAM_PLUS in types and SCRAM_PLUS not in offered
        return Scram(username, secret, nonce, could_bind=could_bind)
    return _SIMPLE[name](username, secret)
