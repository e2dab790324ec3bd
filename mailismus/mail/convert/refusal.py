"""Why a message can't be converted to 7-bit content."""

from __future__ import annotations

CONVERSION = b"5.6.3"
"""Conversion required but not supported (RFC 3463 3.7)."""
UTF8_HEADER = b"5.6.9"
"""A header in UTF-8 can't be transferred (RFC 6531 4.6.9)."""


class NotConvertible(Exception):
    """Ends a conversion. `status`: the enhanced status code; `why`: ASCII, goes on behind "the message can't be converted
    to 7-bit content: "."""

    def __init__(self, status: bytes, why: bytes) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def refuse(why: bytes) -> NotConvertible:
    """Return the error for a message whose structure or encoding forbids a conversion."""
    return NotConvertible(CONVERSION, why)
