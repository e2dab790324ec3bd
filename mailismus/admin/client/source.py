"""The source of a queue for commands: the running server (`server`), or the files of a stopped queue (`stopped`).

*Rules*: both give the same messages and counts for the same filters; a command does not know which it has.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from mailismus.admin.model.noted import Known
from mailismus.admin.model.shape import By, Shape
from mailismus.admin.protocol.wire import Request
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Gap, Message, Summary
from mailismus.queue.servers import KnownServer


class QueueSource(Protocol):
    """A queue to read. Filters have been checked. Entries that can't be read are passed over and told as gaps."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The entries that could not be read for the answers so far."""

    def messages(self, words: Sequence[str], limit: int | None) -> Generator[Message, None, None]:
        """Messages with their matching entries, at most `limit` entries."""

    def explained(self, word: str, limit: int | None) -> Generator[Message | Known, None, None]:
        """The entries of an ID, address or domain, at most `limit`, as noted entries with their reasons; without entries
        what is known of the domain."""

    def counts(self, words: Sequence[str]) -> Summary:
        """Counts of the matching entries."""

    def shape(self, words: Sequence[str], by: By) -> Shape:
        """Counts of the matching entries by name and age."""

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message as it is stored, in pieces, in order."""

    def flush(self, words: Sequence[str]) -> int:
        """Make deferred entries that match due now, and return their number. Raises `StartError` (69) without a running
        server."""

    def servers(self) -> Sequence[KnownServer] | None:
        """The servers that share the queue; None: one server alone has it."""

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        """The lines of the server's answer. Raises `StartError` (69) without a running server."""

    def close(self) -> None:
        """Close the connection or the files."""
