"""The object store: contents by key, written once and whole.

Keys are made of `a-z`, `0-9`, `-` and `/`.

*Guaranteed*: a put fires when the store has said that the object is kept; until then it is there whole or not at all. The
store compares what arrived with the sum that was sent. A later `get` sees it. To put the same bytes under the same key
again, or to remove what is not there, is harmless.

*Not guaranteed*: that of two puts of different bytes under one key the later one counts. That a listing shows what was
put a moment ago, or hides what was removed a moment ago.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

PIECE_BYTES = 64 * 1024
_KEY = re.compile(r"[a-z0-9/-]{1,512}")


def checked_key(key: str) -> str:
    """The same key. Raises `ValueError` where it has other letters."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key")
    return key


class IBody(Protocol):
    """Bytes that can be read as often as a put is repeated."""

    @property
    def size_bytes(self) -> int:
        """All of them."""

    @property
    def sha256(self) -> bytes:
        """Their sum, 32 bytes."""

    def pieces(self) -> Iterator[bytes]:
        """Them, from the start, in pieces."""


class IObject(Protocol):
    """An object that is being read. It is read as fast as it is asked for."""

    @property
    def size_bytes(self) -> int:
        """All of it."""

    def next(self) -> Deferred[bytes]:
        """The next piece, at most `PIECE_BYTES`; empty at the end. One at a time. Fails with `NotDone`, also where the
        object ends too early."""

    def close(self) -> None:
        """Done with it, read to the end or not. Harmless when repeated."""


class IObjects(Protocol):
    """A client of the object store, for one bucket."""

    def make(self) -> Deferred[None]:
        """Make the bucket; harmless when it is there. Fails with `NotDone`."""

    def is_there(self) -> Deferred[bool]:
        """Whether the bucket is there, and may be read by us. Fails with `NotDone`."""

    def put(self, key: str, body: IBody) -> Deferred[None]:
        """Keep an object. Fails with `NotDone` or `Unanswered`."""

    def get(self, key: str) -> Deferred[IObject | None]:
        """Begin to read an object; None: there is none. Fails with `NotDone`."""

    def remove(self, key: str) -> Deferred[None]:
        """Remove an object. Fails with `NotDone` or `Unanswered`."""

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Deferred[Sequence[str]]:
        """Keys that begin so, ascending, at most `limit` behind `after`. Fails with `NotDone`."""

    def close(self) -> Deferred[None]:
        """End the connections."""
