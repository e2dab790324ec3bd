"""From the words of the command line to the message's id. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from mailismus.admin.client.server import NewCounter, open_server
from mailismus.admin.protocol.injecting import PIECE_BYTES
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.inject.beside import inject_beside
from mailismus.inject.kept import kept
from mailismus.queue.provider import IProviders


class _Unlogged:
    """`MailLog` of a process that has none: the running server logs the deliveries."""

    def write(self, line: bytes) -> None:
        """Write nothing."""

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write nothing."""


def run_inject(
    settings: Settings, providers: IProviders, sender: bytes, recipients: Sequence[bytes], source: BinaryIO
) -> str:
    """Put the message of `source` into the queue; return its id when it is durable. Raises `StartError`, `OSError`."""
    pieces = _pieces_of(source, settings.listeners[0].server.maxmsgsize)
    writer = providers.configured(settings.queue).open_writer(settings.queue)
    if writer is None:
        return _through_server(settings, providers, sender, recipients, pieces)
    try:
        return inject_beside(writer, settings, _Unlogged(), sender, recipients, pieces)
    finally:
        writer.close()


def _through_server(
    settings: Settings, providers: IProviders, sender: bytes, recipients: Sequence[bytes], pieces: Iterator[bytes]
) -> str:
    new_counter: NewCounter = lambda name: providers.named(name).new_counter()  # noqa: E731
    with kept(pieces) as whole:
        server = open_server(settings.admin.socket_path, new_counter)
        if server is None:
            name = settings.queue.provider
            text = f"provider {name} lets the running server alone put messages into the queue, and none listens"
            raise StartError(os.EX_UNAVAILABLE, f"{text} at {settings.admin.socket_path}: start it, or send by SMTP later")
        try:
            return server.inject(sender, recipients, whole)
        finally:
            server.close()


def _pieces_of(source: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """The message. Of one that is larger than `most_bytes` (0: no limit) so much that it will be refused for its size."""
    total = 0
    while piece := source.read(PIECE_BYTES):
        yield piece
        total += len(piece)
        if 0 < most_bytes < total:
            return
