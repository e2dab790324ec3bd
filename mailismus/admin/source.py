"""Where a command gets the queue from: the running server, or the files of one that does not run.

*Rules*: both give the same messages and counts for the same filters; a command does not know which it has.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Protocol

import attrs

from mailismus.admin.socketfile import connect_socket
from mailismus.admin.tally import Tally
from mailismus.admin.wire import (
    PROTOCOL,
    Request,
    WireError,
    decode,
    decode_message,
    decode_summary,
    encode_request,
)
from mailismus.errors import StartError
from mailismus.queue.filter import parse_filter
from mailismus.queue.interface import Filter, Message, Summary

TIMEOUT_S = 60.0
"""For each thing the server says."""


class OfflineQueue(Protocol):
    """A queue that is only read, without a server: what `open_offline` gives."""

    def summary(self) -> Summary:
        """Counts of all. Raises `StorageError` or `OSError`."""

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        """All matching entries, page by page. Raises `StorageError` or `OSError`."""

    def close(self) -> None:
        """Done with it."""


class Source(Protocol):
    """A queue to look at. Filters have been checked."""

    def messages(self, words: Sequence[str], limit: int | None) -> Iterator[Message]:
        """Messages with their matching entries, at most `limit` entries."""

    def counts(self, words: Sequence[str]) -> Summary:
        """Counts of what matches."""

    def close(self) -> None:
        """Done with it."""


@attrs.define(eq=False)
class OfflineSource:
    """The files. `now`: UTC seconds, what ages count from."""

    queue: OfflineQueue
    now: float

    def messages(self, words: Sequence[str], limit: int | None) -> Iterator[Message]:
        for page in self.queue.pages(parse_filter(words, self.now)):
            for message in page:
                if limit is not None:
                    if limit <= 0:
                        return
                    if len(message.entries) > limit:
                        message = attrs.evolve(message, entries=message.entries[:limit])
                    limit -= len(message.entries)
                yield message

    def counts(self, words: Sequence[str]) -> Summary:
        if not words:
            return self.queue.summary()
        tally = Tally()
        for message in self.messages(words, None):
            tally.add(message)
        return tally.summary()

    def close(self) -> None:
        self.queue.close()


class ServerSource:
    """The running server, over a connection that serves one question."""

    def __init__(self, connected: socket.socket) -> None:
        self._connected = connected
        self._lines = connected.makefile("rb")

    def messages(self, words: Sequence[str], limit: int | None) -> Iterator[Message]:
        with _clear_errors():
            for value in self._ask(Request("list", tuple(words), limit)):
                yield decode_message(value)

    def counts(self, words: Sequence[str]) -> Summary:
        with _clear_errors():
            answers = list(itertools.islice(self._ask(Request("count", tuple(words))), 2))
            if len(answers) != 1:
                raise WireError("the server gave no counts")
            return decode_summary(answers[0])

    def close(self) -> None:
        self._lines.close()
        self._connected.close()

    def _ask(self, request: Request) -> Iterator[dict[str, object]]:
        """The answer's lines, to its end."""
        hello = self._line()
        if hello.get("hello") != "mailismus":
            raise WireError("no mailismus server listens at the admin socket")
        if hello.get("protocol") != PROTOCOL:
            raise WireError("the running server is of another version: use its own command")
        self._connected.sendall(encode_request(request))
        while "end" not in (value := self._line()):
            if "error" in value:
                status = value.get("status")
                raise StartError(status if isinstance(status, int) else os.EX_SOFTWARE, str(value["error"]))
            yield value

    def _line(self) -> dict[str, object]:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionAbortedError
        return decode(line)


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """What goes wrong between us and the server, as `StartError`. What fails where the messages go is not caught: a
    generator's reader raises outside of it."""
    try:
        yield
    except WireError as error:
        raise StartError(os.EX_UNAVAILABLE, str(error)) from None
    except TimeoutError:
        raise StartError(os.EX_TEMPFAIL, f"the server did not answer within {TIMEOUT_S:.0f} s") from None
    except ConnectionError:
        text = "the server ended the connection before the answer was complete"
        raise StartError(os.EX_UNAVAILABLE, text) from None


def open_server(socket_path: str) -> ServerSource | None:
    """The running server, None when it does not run. Raises `StartError`."""
    try:
        connected = connect_socket(socket_path, TIMEOUT_S)
    except PermissionError:
        raise StartError(os.EX_NOPERM, f"no permission to use the admin socket {socket_path}") from None
    except OSError as error:
        raise StartError(os.EX_TEMPFAIL, f"admin socket {socket_path}: {error.strerror or error}") from None
    return ServerSource(connected) if connected is not None else None
