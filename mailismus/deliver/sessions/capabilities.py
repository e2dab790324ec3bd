"""Capabilities: why a host can't take a message, by its EHLO reply (pure; RFC 1870, RFC 6152).

*Rules*: such a message fails without a transaction. The size limit counts the message as we send it, with our trace field
and without dot-stuffing (RFC 1870 3), as SIZE= announces it. The content decides whether a message is 8-bit, not its sender.

*Not here*: the conversion of a message (`conversion`), messages that need SMTPUTF8 (`smtputf8`).
"""

from __future__ import annotations

from mailismus.config.values.settings import EightBit
from mailismus.mail.reply import Reply
from mailismus.smtp.client.opening import NOTHING, Offers

NOT_EIGHTBIT = Reply(554, b"5.6.3", b"the message has 8-bit content, and this host does not offer 8BITMIME")


class HostCapabilities:
    """What one host accepts."""

    __slots__ = ("_converts", "_is_sevenbit", "_limit_bytes", "takes_all", "takes_utf8")

    def __init__(self, offers: Offers, eightbit: EightBit) -> None:
        self._limit_bytes = offers.max_size_bytes
        takes_eightbit = offers.eightbit or offers.utf8  # RFC 6531 3.1: who offers SMTPUTF8 takes 8-bit content
        self._is_sevenbit = eightbit is EightBit.BOUNCE and not takes_eightbit
        self._converts = eightbit is EightBit.CONVERT and not takes_eightbit
        self.takes_utf8 = offers.utf8
        """Whether it takes addresses and headers in UTF-8 (RFC 6531)."""
        self.takes_all = not (self._is_sevenbit or self._converts) and self._limit_bytes <= 0
        """Whether it takes any message without UTF-8 in its envelope or header: there is never a `refusal` nor a
        conversion."""

    def refusal(self, size_bytes: int, is_eightbit: bool) -> Reply | None:
        """Why it can't take a message of this size (`Message.size_bytes`); None: it can."""
        if 0 < self._limit_bytes < size_bytes:
            text = b"the message of %d bytes is larger than this host takes, which is %d" % (size_bytes, self._limit_bytes)
            return Reply(552, b"5.3.4", text)
        if is_eightbit and self._is_sevenbit:
            return NOT_EIGHTBIT
        return None

    def must_convert(self, is_eightbit: bool) -> bool:
        """Whether it gets a message as 7-bit content."""
        return is_eightbit and self._converts


ALL_CAPABILITIES = HostCapabilities(NOTHING, EightBit.SEND)
