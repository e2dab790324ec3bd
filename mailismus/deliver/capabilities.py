"""Capabilities: why a host can't take a message, by its EHLO reply (pure; RFC 1870, RFC 6152).

*Rules*: such a message fails without a transaction. The size limit counts the message as we send it, with our trace field
and without dot-stuffing (RFC 1870 3), as SIZE= announces it. The content decides whether a message is 8-bit, not its sender.

*Not here*: addresses that need SMTPUTF8 (RFC 6531): none are accepted, see `mail.address`.
"""

from __future__ import annotations

from mailismus.config.values.settings import EightBit
from mailismus.mail.reply import Reply
from mailismus.smtp.client.opening import NOTHING, Offers

NOT_EIGHTBIT = Reply(554, b"5.6.3", b"the message has 8-bit content, and this host does not offer 8BITMIME")


class HostCapabilities:
    """What one host accepts."""

    __slots__ = ("_is_sevenbit", "_limit_bytes", "takes_all")

    def __init__(self, offers: Offers, eightbit: EightBit) -> None:
        self._limit_bytes = offers.max_size_bytes
        self._is_sevenbit = eightbit is EightBit.BOUNCE and not offers.eightbit
        self.takes_all = not self._is_sevenbit and self._limit_bytes <= 0
        """Whether it takes any message: there is never a `refusal`."""

    def refusal(self, size_bytes: int, is_eightbit: bool) -> Reply | None:
        """Why it can't take a message of this size (`Message.size_bytes`); None: it can."""
        if 0 < self._limit_bytes < size_bytes:
            text = b"the message of %d bytes is larger than this host takes, which is %d" % (size_bytes, self._limit_bytes)
            return Reply(552, b"5.3.4", text)
        if is_eightbit and self._is_sevenbit:
            return NOT_EIGHTBIT
        return None


ALL_CAPABILITIES = HostCapabilities(NOTHING, EightBit.SEND)
