"""The reply: three digits, an enhanced status and a text (RFC 5321 4.2, RFC 3463), ours or a peer's.

A peer's text is sanitized before it gets here: no control bytes, one line, at most `MAX_TEXT` bytes.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_TEXT = 1000
"""Bytes kept of a peer's reply text."""


class Reply(NamedTuple):
    """One reply. `enhanced` is like `b"2.1.5"`, or `b""` when there is none."""

    code: int
    enhanced: bytes
    text: bytes

    @property
    def wire(self) -> bytes:
        """The line as sent, with its CRLF."""
        if self.enhanced:
            return b"%d %b %b\r\n" % (self.code, self.enhanced, self.text)
        return b"%d %b\r\n" % (self.code, self.text)

    def __bytes__(self) -> bytes:
        return self.wire[:-2]

    @property
    def is_positive(self) -> bool:
        """Whether the code is 2xx."""
        return 200 <= self.code < 300

    @property
    def is_permanent(self) -> bool:
        """Whether the code is 5xx: the client must not repeat the same command (RFC 5321 4.2.1)."""
        return 500 <= self.code < 600
