"""The running server as a source for commands, over the admin socket.

*Rules*: counting the whole queue would slow down the server, so this process counts it from the files, by the server's plan
and at a low priority. Where it can't see or read the files, the server counts. What only some requests need is imported
with them: a count starts sooner.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from mailismus.admin.client.background import run_in_background
from mailismus.admin.model.noted import Known
from mailismus.admin.model.shape import LABELS, By, Row, Shape
from mailismus.admin.protocol.socket_file import connect_socket
from mailismus.admin.protocol.wire import (
    END,
    PROTOCOL,
    Request,
    WireError,
    decode,
    decode_explained,
    decode_gaps,
    decode_message,
    decode_number,
    decode_part,
    decode_piece,
    decode_plan,
    decode_row,
    decode_summary,
    encode,
    encode_piece,
    encode_request,
)
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Gap, Message, Summary
from mailismus.queue.provider import IPlanCounter
from mailismus.queue.servers import KnownServer

if TYPE_CHECKING:
    from mailismus.config.values.effective import Effective
    from mailismus.observe.habits import Habits
    from mailismus.observe.overview import Overview

TIMEOUT_S = 60.0
"""How long the server may take for each line of an answer."""

COMMIT_TIMEOUT_S = 300.0
"""How long the server may take until a message is durable."""

NewCounter = Callable[[str], IPlanCounter]
"""A counter for the plans of the provider of this name. Raises `LookupError` for one that this program does not have."""


class InDoubt(StartError):
    """The server went away behind the end of a message, which may be in its queue."""


class ServerSource:
    """The running server. Each request has a connection of its own; the first one is open already."""

    def __init__(self, connected: socket.socket, connect: Callable[[], socket.socket], new_counter: NewCounter) -> None:
        self._connect = connect
        self._new_counter = new_counter
        self._spare: socket.socket | None = connected
        self._gaps = Gaps()

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self._gaps.all()

    def messages(self, words: Sequence[str], limit: int | None) -> Generator[Message, None, None]:
        with _clear_errors():
            for value in self._ask(Request("list", tuple(words), limit)):
                yield decode_message(value)

    def entries(self) -> Generator[Message, None, None]:
        """All messages with all entries, without the reasons why they wait: it costs the server less."""
        with _clear_errors():
            for value in self._ask(Request("entries")):
                yield decode_message(value)

    def explained(self, word: str, limit: int | None) -> Generator[Message | Known, None, None]:
        with _clear_errors():
            for value in self._ask(Request("why", (word,), limit)):
                yield decode_explained(value)

    def counts(self, words: Sequence[str]) -> Summary:
        with _clear_errors():
            summary = None if words else run_in_background(self._count_by_plan)
            if summary is None:
                return decode_summary(self._only_answer(Request("count", tuple(words))))
            self._gaps.add(summary.gaps)
            return summary

    def _count_by_plan(self, goes_on: Callable[[], bool]) -> Summary | None:
        """Counts of all, None where only the server can count."""
        try:
            counter = self._follow_plan(None, goes_on)
            if counter is not None and counter.is_unsure:
                counter = self._follow_plan(counter, goes_on)
        except StartError as error:
            if error.status != os.EX_UNAVAILABLE:
                raise
            return None  # its version or its queue has no plan
        try:
            return counter.summary() if counter is not None else None
        except OSError:
            return None

    def _follow_plan(self, counter: IPlanCounter | None, goes_on: Callable[[], bool]) -> IPlanCounter | None:
        """Count by a plan, or check what `counter` counted by an earlier one. None where that is not possible: this program
        does not have the plan's provider, or a file can't be read. The server may be able to."""
        with closing(self._ask(Request("plan"))) as values:
            take: Callable[[Mapping[str, object]], None] | None = None
            for value in values:
                try:
                    if take is not None:
                        take(decode_part(value))
                    elif counter is not None:
                        take = counter.check
                    else:
                        counter = self._new_counter(decode_plan(value))
                        take = counter.add
                except (LookupError, OSError, ValueError):
                    return None
                if not goes_on():
                    return None
        return counter

    def shape(self, words: Sequence[str], by: By) -> Shape:
        with _clear_errors():
            rows = [Row(*decode_row(value)) for value in self._ask(Request("shape", tuple(words), by=by.value))]
            if not rows or any(len(row.counts) != len(LABELS) for row in rows):
                raise WireError("a shape is not as it should be")
            return Shape(by, tuple(rows[1:]), rows[0].counts)

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        with _clear_errors():
            for value in self._ask(Request("content", (format_spool_id(spool_id),))):
                yield decode_piece(value)

    def flush(self, words: Sequence[str]) -> int:
        with _clear_errors():
            return decode_number(self._only_answer(Request("flush", tuple(words))))

    def servers(self) -> Sequence[KnownServer] | None:
        from mailismus.admin.protocol.servers import SERVERS, decode_servers

        with _clear_errors():
            return decode_servers(self._ask(Request(SERVERS)))

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        with _clear_errors():
            yield from self._ask(request)

    def settings(self) -> tuple[Effective, ...]:
        """Every effective value of the running server."""
        from mailismus.admin.protocol.settings import decode_setting

        with _clear_errors():
            return tuple(decode_setting(value) for value in self._ask(Request("settings")))

    def overview(self, domain: str = "") -> Overview:
        """The figures of the running server at this moment. `domain`: one of which all that is known is told."""
        from mailismus.admin.protocol.overview import OVERVIEW, decode_overview

        with _clear_errors():
            return decode_overview(self._only_answer(Request(OVERVIEW, (domain,) if domain else ())))

    def habits(self) -> Habits:
        """What receivers did lately; nothing, if the server is of a version that does not tell."""
        from mailismus.admin.protocol.habits import HABITS, decode_habits
        from mailismus.observe.habits import Habits

        try:
            with _clear_errors():
                return decode_habits(self._ask(Request(HABITS)))
        except StartError as error:
            if error.status != os.EX_UNAVAILABLE:
                raise
            return Habits()

    def inject(self, sender: bytes, recipients: Sequence[bytes], pieces: Iterator[bytes]) -> str:
        """Put a message into the queue; return its id when it is durable. `pieces`: the message, of at most `PIECE_BYTES`
        each. Raises `StartError`; 75 may mean that the message is in the queue."""
        from mailismus.admin.protocol.injecting import INJECT, decode_injected, encode_recipient

        connected, self._spare = self._spare or self._connect(), None
        is_whole = False
        with _clear_errors(), connected, connected.makefile("rb") as lines:
            _check_hello(lines)
            try:
                connected.sendall(encode_request(Request(INJECT, (sender.decode("latin-1"),))))
                for recipient in recipients:
                    connected.sendall(encode_recipient(recipient))
                for piece in pieces:
                    connected.sendall(encode_piece(piece))
                connected.settimeout(COMMIT_TIMEOUT_S)
                is_whole = True
                connected.sendall(encode(END))
            except ConnectionError:
                pass  # it was refused meanwhile: the reason is there
            try:
                value = _line(lines)
            except (ConnectionError, TimeoutError):
                where = "which may be in its queue" if is_whole else "which is not in its queue"
                error = InDoubt if is_whole else StartError
                raise error(os.EX_TEMPFAIL, f"the server did not answer for the message, {where}") from None
            _raise_error(value)
            return decode_injected(value)

    def close(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def _only_answer(self, request: Request) -> dict[str, object]:
        answers = list(itertools.islice(self._ask(request), 2))
        if len(answers) != 1:
            raise WireError("the server gave no answer, or more than one")
        return answers[0]

    def _ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        """The answer's lines, to its end. Closing the generator closes the connection, and the server stops answering."""
        connected, self._spare = self._spare or self._connect(), None
        with connected, connected.makefile("rb") as lines:
            _check_hello(lines)
            connected.sendall(encode_request(request))
            while "end" not in (value := _line(lines)):
                if "gaps" in value:
                    self._gaps.add(decode_gaps(value))
                    return
                _raise_error(value)
                if "working" not in value:
                    yield value


def _check_hello(lines: BinaryIO) -> None:
    hello = _line(lines)
    if hello.get("hello") != "mailismus":
        raise WireError("no mailismus server listens at the admin socket")
    if hello.get("protocol") != PROTOCOL:
        raise WireError("the running server is of another version: use its own command")


def _raise_error(value: Mapping[str, object]) -> None:
    if "error" in value:
        status = value.get("status")
        raise StartError(status if isinstance(status, int) else os.EX_SOFTWARE, str(value["error"]))


def _line(lines: BinaryIO) -> dict[str, object]:
    line = lines.readline()
    if not line.endswith(b"\n"):
        raise ConnectionAbortedError
    return decode(line)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Raise errors of the connection and the protocol as `StartError`. Errors of the output are not caught: the reader of a
    generator raises outside of it."""
    try:
        yield
    except WireError as error:
        raise StartError(os.EX_UNAVAILABLE, str(error)) from None
    except TimeoutError:
        raise StartError(os.EX_TEMPFAIL, f"the server did not answer within {TIMEOUT_S:.0f} s") from None
    except ConnectionError:
        text = "the server ended the connection before the answer was complete"
        raise StartError(os.EX_UNAVAILABLE, text) from None


def open_server(socket_path: str, new_counter: NewCounter) -> ServerSource | None:
    """The running server, None when it does not run. Raises `StartError`."""

    def connect_again() -> socket.socket:
        connected = _connect(socket_path)
        if connected is None:
            raise StartError(os.EX_UNAVAILABLE, "the server does not run any more")
        return connected

    connected = _connect(socket_path)
    return ServerSource(connected, connect_again, new_counter) if connected is not None else None


def need_server(socket_path: str, new_counter: NewCounter) -> ServerSource:
    """The running server. Raises `StartError`: 69 when it does not run."""
    running = open_server(socket_path, new_counter)
    if running is None:
        raise StartError(os.EX_UNAVAILABLE, f"this needs the running server, and none listens at {socket_path}")
    return running


def _connect(socket_path: str) -> socket.socket | None:
    try:
        return connect_socket(socket_path, TIMEOUT_S)
    except PermissionError:
        raise StartError(os.EX_NOPERM, f"no permission to use the admin socket {socket_path}") from None
    except OSError as error:
        raise StartError(os.EX_TEMPFAIL, f"admin socket {socket_path}: {error.strerror or error}") from None
