"""The envelope: who sent a message, who shall have it, and how it may be sent (RFC 5321 2.3.1).

Addresses are the bytes between the angle brackets, in the case they came in; the null reverse-path is `b""`.
Recipients are numbered from 1 in the order they were accepted; a number keeps its meaning for life.
"""

from __future__ import annotations

from typing import NamedTuple


class Envelope(NamedTuple):
    """One transaction's envelope. Every address has passed the grammar (`mail.address`)."""

    sender: bytes
    recipients: tuple[bytes, ...]
    client: bytes = b"-"
    """Address of the client (an IP address as text), `b"-"` for messages made here."""
    eightbit: bool = False
    """The content has bytes above 127, whatever its sender declared (RFC 6152)."""
    stuffed_dots: int = 0
    """Bytes of the content as it is kept that are dot-stuffing (RFC 5321 4.5.2), and not counted in the message's size."""
    words: bytes | None = None
    """Further facts of the message (`mail.words`)."""
