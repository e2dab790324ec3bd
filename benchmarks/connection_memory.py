"""What a connection takes of the server's memory: `python -m benchmarks.connection_memory [--tls]`.

Each state has a server of its own and a thousand connections in it; the figures are the growth of its resident and
proportional set size, for each connection. The kernel's own buffers are not in them. Bounded in time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import Sink
from benchmarks.stage.pressured import LOCAL, Pressured, client_tls
from benchmarks.stage.progress import say
from benchmarks.stage.providers import ServedProvider, add_option, chosen

TIMEOUT_S = 20.0
SETTLE_S = 1.0
FIRST = 500
"""Connections that come before those that are counted: they take what the start of the server has left over."""
LONG = b"x" * 50 + b"@" + b"y" * 60 + b".example"


class Client:
    """One connection that goes as far as it is told."""

    def __init__(self, port: int, tls: bool) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.expect(b"220")
        if tls:
            self.say(b"EHLO client.trial.example\r\n", b"250")
            self.say(b"STARTTLS\r\n", b"220")
            self.socket = client_tls().wrap_socket(self.socket)

    def expect(self, code: bytes) -> None:
        """Reads a reply."""
        data = b""
        while not data.endswith(b"\r\n") or data.rsplit(b"\r\n", 2)[-2][3:4] == b"-":
            piece = self.socket.recv(4096)
            if not piece:
                raise ConnectionError(f"closed after {data!r}")
            data += piece
        if not data.startswith(code):
            raise ConnectionError(f"unexpected: {data!r}")

    def say(self, line: bytes, code: bytes) -> None:
        """A command and its reply."""
        self.socket.sendall(line)
        self.expect(code)


def idle(client: Client) -> None:
    """Greeted, nothing more."""


def greeted(client: Client) -> None:
    """Behind EHLO."""
    client.say(b"EHLO client.trial.example\r\n", b"250")


def half_a_line(client: Client) -> None:
    """A command that does not end, of the longest kind."""
    greeted(client)
    client.socket.sendall(b"NOOP " + b"x" * 2000)


def envelope(client: Client) -> None:
    """MAIL and ten recipients."""
    greeted(client)
    client.say(b"MAIL FROM:<a@client.trial.example>\r\n", b"250")
    for number in range(10):
        client.say(b"RCPT TO:<%d%b>\r\n" % (number, LONG), b"250")


def data(client: Client) -> None:
    """DATA with 2 KiB of content so far."""
    greeted(client)
    client.say(b"MAIL FROM:<a@client.trial.example>\r\n", b"250")
    client.say(b"RCPT TO:<%b>\r\n" % LOCAL, b"250")
    client.say(b"DATA\r\n", b"354")
    client.socket.sendall(b"Subject: slow\r\n\r\n" + b"x" * 60 + b"\r\n" * 1000)


def long_header(client: Client) -> None:
    """DATA with 60 KB of a header that does not end."""
    greeted(client)
    client.say(b"MAIL FROM:<a@client.trial.example>\r\n", b"250")
    client.say(b"RCPT TO:<%b>\r\n" % LOCAL, b"250")
    client.say(b"DATA\r\n", b"354")
    for number in range(20):
        client.socket.sendall((b"X-%d: " % number + b"x" * 990 + b"\r\n") * 3)


def large(client: Client) -> None:
    """DATA with 300 KB of content so far: it streams to the disk."""
    greeted(client)
    client.say(b"MAIL FROM:<a@client.trial.example>\r\n", b"250")
    client.say(b"RCPT TO:<%b>\r\n" % LOCAL, b"250")
    client.say(b"DATA\r\n", b"354")
    client.socket.sendall(b"Subject: slow\r\n\r\n" + (b"x" * 98 + b"\r\n") * 3000)


STATES: tuple[Callable[[Client], None], ...] = (idle, greeted, half_a_line, envelope, data, long_header, large)


@attrs.frozen
class Growth:
    """KiB for each connection."""

    state: str
    rss: float
    pss: float


def measure(
    at: Stage, sink: Sink, state: Callable[[Client], None], connections: int, tls: bool, provider: ServedProvider
) -> Growth:
    """One state in a server of its own."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(at.place(sink.port))
        server = Pressured(tls=tls, provider=provider)
        stack.callback(server.close)
        server.start(place)

        def connect(count: int) -> tuple[int, int]:
            for _ in range(count):
                client = Client(server.port, tls)
                stack.enter_context(contextlib.closing(client.socket))
                state(client)
            time.sleep(SETTLE_S)
            return server.memory_kib()

        before, after = connect(FIRST), connect(connections)
        grown = [(b - a) / connections for a, b in zip(before, after, strict=True)]
        return Growth(state.__name__, round(grown[0], 1), round(grown[1], 1))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connection_memory")
    add_option(parser)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--tls", action="store_true", help="under TLS 1.3, by STARTTLS")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on a file system with real barriers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with stage(options.directory) as at, contextlib.closing(Sink(at.logs)) as sink:
        rows = []
        for state in STATES:
            rows.append(measure(at, sink, state, options.connections, options.tls, chosen(options)))
            say(f"{state.__name__}: {rows[-1].rss} KiB")
    if options.json:
        print(json.dumps([attrs.asdict(row) for row in rows], indent=1))
        return
    print(f"KiB of the server for each of {options.connections} connections{', under TLS' if options.tls else ''}\n")
    print("| state | RSS | PSS |\n|---|---|---|")
    for row, state in zip(rows, STATES, strict=True):
        print(f"| {(state.__doc__ or '').rstrip('.')} | {row.rss} | {row.pss} |")


if __name__ == "__main__":
    main()
