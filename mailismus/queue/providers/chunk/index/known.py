"""One message of the queue in memory: its entries, the number of its files, and where the line of each recipient is."""

from __future__ import annotations

from collections import Counter

from mailismus.queue.due.entries import DueMessage
from mailismus.queue.interface import Message

Place = tuple[str, int]
"""A directory (local, remote or bounce) and the offset of a line in the message's file there."""


class KnownChunk(DueMessage):
    """One message. Every attribute but those of `DueMessage` says what is durable, or will be with the batch under way."""

    __slots__ = ("is_preprocessed", "is_spoiled", "is_todo_unsure", "live_bytes", "number", "places", "settling", "sizes")

    def __init__(self, message: Message, number: int) -> None:
        super().__init__(message)
        self.number = number
        """The number of its files."""
        self.is_preprocessed = False
        """S5; else S4."""
        self.places: dict[int, tuple[Place, ...]] = {}
        """By the number of a recipient: its lines that are not done, S4: in the envelope. More than one where a crash kept
        an old one. S4 of a single recipient: none need be known."""
        self.sizes: dict[str, int] = {}
        """Bytes of its file in local, remote and bounce, where there is one."""
        self.live_bytes: dict[str, int] = {}
        """Of these the bytes of lines that count, about."""
        self.is_spoiled = False
        """A write or a barrier of these files failed, or a line of them is torn: the next change writes them anew."""
        self.settling: Counter[int] = Counter()
        """Settlements under way, by the number of the recipient."""
        self.is_todo_unsure = False
        """S5, but a crash may bring its name in todo back, and S4 with it: the barrier behind the unlink failed."""

    def keep_files(
        self, places: dict[int, tuple[Place, ...]], sizes: dict[str, int], live_bytes: dict[str, int] | None = None
    ) -> None:
        """It is in S5, with these lines and files. `live_bytes`: of each file; None: as before, about."""
        self.is_preprocessed = True
        self.places, self.sizes = places, sizes
        if live_bytes is not None:
            self.live_bytes = live_bytes

    def keep_envelope(self, places: dict[int, tuple[Place, ...]]) -> None:
        """It is in S4, with these lines in its envelope."""
        self.places = places

    def spoil(self, *, is_todo_unsure: bool = False) -> None:
        """Its files are not to be trusted: the next change writes them anew."""
        self.is_spoiled = True
        self.is_todo_unsure = self.is_todo_unsure or is_todo_unsure

    def heal(self) -> None:
        """A change of its files is durable."""
        self.is_spoiled = self.is_todo_unsure = False
