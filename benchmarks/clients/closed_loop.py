"""Clients in a closed loop: `python -m benchmarks.clients.closed_loop RECORD PORT --sessions N --size BYTES --seconds S`.

Each session keeps its connection, pipelines its commands, and begins its next message when it has the 250 of the one
before. All bytes are made before; one process serves all sessions by epoll, so that it costs the machine little. The
record gets two doubles a message: seconds of the monotonic clock when the last byte behind the final dot was handed to the
system, and when its 250 was read. Rules: ends by itself after `--seconds` or `--messages`; any other reply than the
expected one ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import array
import select
import socket
import sys
import time
from pathlib import Path

import attrs

from tests.support.processes import TrialError

COMMANDS = b"MAIL FROM:<sender@from.bench.example>\r\nRCPT TO:<recipient@to.bench.example>\r\nDATA\r\n"
CONNECTED_WITHIN_S = 30.0


def wire(size_bytes: int) -> bytes:
    """A message of this size and the final dot."""
    head = b"Subject: closed loop\r\n\r\n"
    lines = b"".join(b"%062d\r\n" % number for number in range(-(-size_bytes // 64)))
    return (head + lines)[: size_bytes - 2] + b"\r\n.\r\n"


class Refused(TrialError):
    """Another reply than expected, or the connection's end."""


@attrs.define(slots=True)
class Session:
    """One connection."""

    socket: socket.socket
    content: bytes
    record: array.array[float]
    want: bytes = b"2"
    """What the replies awaited begin with."""
    awaited: int = 1
    step: int = 0
    """0: greeting; 1: EHLO; 2: commands; 3: content."""
    rest: memoryview | None = None
    """Of the content, still to be handed to the system."""
    sent_at_s: float = 0.0
    read: bytes = b""

    def write(self) -> bool:
        """Hand over what is left of the content; whether that was all."""
        assert self.rest is not None
        try:
            while self.rest:
                self.rest = self.rest[self.socket.send(self.rest) :]
        except BlockingIOError:
            return False
        self.rest, self.sent_at_s = None, time.monotonic()
        return True

    def come(self, goes_on: bool) -> bool:
        """Replies have come; whether there is still something to do. Raises: Refused, OSError."""
        data = self.socket.recv(65536)
        now_s = time.monotonic()
        if not data:
            raise Refused("the connection was closed")
        data = self.read + data
        if not data.endswith(b"\n"):
            self.read = data
            return True
        self.read = b""
        for line in data.splitlines():
            if line[3:4] == b"-":
                continue
            self.awaited -= 1
            if line[:1] not in self.want or self.awaited < 0:
                raise Refused(line.decode("ascii", "replace"))
        if self.awaited:
            return True
        if self.step == 3:
            self.record.append(self.sent_at_s)
            self.record.append(now_s)
            if not goes_on:
                return False
        self._next()
        return True

    def _next(self) -> None:
        if self.step == 0:
            self.step, self.awaited = 1, 1
            self.socket.send(b"EHLO closed-loop.bench.example\r\n")
        elif self.step in (1, 3):
            self.step, self.awaited, self.want = 2, 3, b"23"
            self.socket.send(COMMANDS)
        else:
            self.step, self.awaited, self.want = 3, 1, b"2"
            self.rest = memoryview(self.content)


class Loop:
    """All sessions."""

    def __init__(self, port: int, sessions: int, size_bytes: int) -> None:
        self.record = array.array("d")
        self._epoll, self._sessions = select.epoll(), dict[int, Session]()
        content = wire(size_bytes)
        for _ in range(sessions):
            made = socket.create_connection(("127.0.0.1", port), CONNECTED_WITHIN_S)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setblocking(False)
            self._sessions[made.fileno()] = Session(made, content, self.record)
            self._epoll.register(made.fileno(), select.EPOLLIN)

    def run(self, seconds: float, messages: int) -> None:
        """Until so many seconds have gone by, or so many messages are answered. Raises: Refused, OSError."""
        deadline_s = time.monotonic() + seconds
        open_sessions = set(self._sessions)
        begun = 0
        while open_sessions:
            for fd, event in self._epoll.poll(1.0):
                session = self._sessions[fd]
                if event & select.EPOLLOUT and session.rest is not None:
                    if session.write():
                        self._epoll.modify(fd, select.EPOLLIN)
                    continue
                goes_on = time.monotonic() < deadline_s and (not messages or begun < messages)
                before = session.step
                if not session.come(goes_on):
                    open_sessions.discard(fd)
                    self._epoll.unregister(fd)
                    session.socket.close()
                    continue
                begun += session.step == 2 and before != 2
                if session.rest is not None and not session.write():
                    self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
            if time.monotonic() > deadline_s + CONNECTED_WITHIN_S * 3:
                raise Refused("no answer for a long time")


class Lone:
    """One session, by calls that wait. Used in a `with`. Raises: Refused, OSError."""

    def __init__(self, port: int, size_bytes: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), CONNECTED_WITHIN_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._content = wire(size_bytes)

    def __enter__(self) -> Lone:
        self._await(1)
        self._socket.sendall(b"EHLO lone.bench.example\r\n")
        self._await(1)
        return self

    def send(self) -> float:
        """One message; how long its 250 took after the final dot (seconds)."""
        self._socket.sendall(COMMANDS)
        self._await(3)
        self._socket.sendall(self._content)
        sent_at_s = time.perf_counter()
        self._await(1)
        return time.perf_counter() - sent_at_s

    def _await(self, replies: int) -> None:
        data = b""
        while replies:
            data += self._socket.recv(65536) or b"000 the connection was closed\r\n"
            *lines, data = data.split(b"\n")
            for line in lines:
                if line[:1] not in (b"2", b"3"):
                    raise Refused(line.decode("ascii", "replace").strip())
                replies -= line[3:4] != b"-"

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@attrs.frozen
class Answers:
    """The record of a run: when each message was sent, and answered, in the order of the answers (monotonic seconds)."""

    sent_at_s: tuple[float, ...]
    at_s: tuple[float, ...]

    @classmethod
    def read(cls, path: Path) -> Answers:
        """As written by a run that has ended."""
        numbers = array.array("d")
        numbers.frombytes(path.read_bytes())
        return cls(tuple(numbers[::2]), tuple(numbers[1::2]))

    def between(self, begin_s: float, end_s: float) -> list[float]:
        """How long each 250 took that came in this window."""
        pairs = zip(self.sent_at_s, self.at_s, strict=True)
        return [at_s - sent_at_s for sent_at_s, at_s in pairs if begin_s <= at_s < end_s]

    def longest_gap_s(self) -> float:
        """The longest time between two 250s, whoever they are for; 0: there were none."""
        return max((later - one for one, later in zip(self.at_s, self.at_s[1:], strict=False)), default=0.0)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients.closed_loop", description="Clients in a closed loop."
    )
    parser.add_argument("record", type=Path, help="the file for the record")
    parser.add_argument("port", type=int, help="where the server listens on 127.0.0.1")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--size", type=int, default=4096, help="bytes of content")
    parser.add_argument("--seconds", type=float, default=5.0, help="no message begins later")
    parser.add_argument("--messages", type=int, default=0, help="no more begin (0: no bound but the time)")
    return parser


def main() -> int:
    """Gives the exit code."""
    options = arguments().parse_args()
    try:
        loop = Loop(options.port, options.sessions, options.size)
        loop.run(options.seconds, options.messages)
    except (Refused, OSError) as e:
        print(f"stopped: {e}", file=sys.stderr)
        return 1
    options.record.write_bytes(loop.record.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
