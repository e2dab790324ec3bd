"""Dot-stuffing in pieces: content as on the wire to content as its sender wrote it, and back (RFC 5321 4.5.2).

*Rules*: every line ends in CRLF. Pieces may end anywhere.
"""

from __future__ import annotations


class _Change:
    """Changes CRLF and a dot into other bytes that begin with CRLF."""

    __slots__ = ("_before", "_instead")

    def __init__(self, instead: bytes) -> None:
        self._instead = instead
        self._before = b"\r\n"
        """The last bytes before the next piece, as far as a line may end in them."""

    def feed(self, piece: bytes) -> bytes:
        """Return the changed bytes of the next piece."""
        before = self._before
        whole = before + piece
        self._before = b"\r\n" if whole.endswith(b"\r\n") else b"\r" if whole.endswith(b"\r") else b""
        return whole.replace(b"\r\n.", self._instead)[len(before) :]


class Unstuffer(_Change):
    """Removes the first dot of each line that begins with one."""

    def __init__(self) -> None:
        super().__init__(b"\r\n")


class Stuffer(_Change):
    """Puts a dot before each line that begins with one."""

    def __init__(self) -> None:
        super().__init__(b"\r\n..")
