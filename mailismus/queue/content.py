"""The bytes of a message: while it arrives, and when it is read. Providers make both (`queue.interface`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mailismus.mail.ids import SpoolId

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.defer import Deferred


class IDraft(Protocol):
    """A message while it arrives. Promises nothing: a crash or `abandon` leaves no trace of it.

    Its bytes are the content as on the wire: trace field first, lines end in CRLF, dot-stuffed, without the final dot.
    Its memory is bounded by the provider: what does not fit goes to disk as it comes.
    """

    @property
    def spool_id(self) -> SpoolId:
        """Never used before, never used again."""

    @property
    def stored_bytes(self) -> int:
        """Bytes written so far."""

    def write(self, data: bytes) -> Deferred[None] | None:
        """Append. None: go on; a Deferred: write nothing more until it fires (it never fails: trouble shows at commit)."""

    def abandon(self) -> None:
        """Forget it; what is on disk goes away. Harmless after a commit and when repeated."""


class IContent(Protocol):
    """The bytes of a message that are not at hand at once, in pieces, in order."""

    @property
    def stored_bytes(self) -> int:
        """All of it."""

    @property
    def at_hand(self) -> bytes | None:
        """All of it, where it is at most 64 KiB and was read, and checked, already: then `next` need not be called. None: it
        comes in pieces. Asked before the first `next`."""

    def next(self) -> Deferred[bytes]:
        """The next piece, at most 64 KiB; empty at the end. One at a time. Fails with `Corrupt` or `Unavailable`."""

    def close(self) -> None:
        """Done with it, read to the end or not. Harmless when repeated."""
