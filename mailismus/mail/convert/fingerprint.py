"""The fingerprint of a message: a digest of all that a conversion must not change.

That is: each header without its Content-Transfer-Encoding and without the fields that the conversion adds, each body
decoded, each line between them, their order; and the encoding that each header names behind the conversion.

*Not here*: what is converted how (`plan`).
"""

from __future__ import annotations

import hashlib


class Fingerprint:
    """Takes what stands in one message."""

    __slots__ = ("_body", "_whole")

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._body = hashlib.sha256()

    def add_header(self, essence: bytes) -> None:
        """Add a header without its Content-Transfer-Encoding."""
        self._add(b"H", essence)

    def add_encoding(self, encoding: bytes) -> None:
        """Add the encoding that the last header names: of a part without parts behind its body."""
        self._add(b"E", encoding)

    def add_body(self, data: bytes) -> None:
        """Add the next decoded bytes of a body."""
        self._body.update(data)

    def end_body(self) -> None:
        """A body is complete."""
        self._add(b"B", self._body.digest())
        self._body = hashlib.sha256()

    def add_between(self, data: bytes) -> None:
        """Add what stands between headers and bodies."""
        self._whole.update(data)

    def _add(self, kind: bytes, data: bytes) -> None:
        self._whole.update(b"\0%b%d:%b" % (kind, len(data), data))

    def digest(self) -> bytes:
        """The digest of all that was added."""
        return self._whole.digest()
