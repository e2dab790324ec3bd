"""The admin socket with more clients than it serves, over real sockets; only the clock is not real."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator

import pytest

from mailismus.admin.protocol.wire import Request, encode_request
from mailismus.admin.server.admission import PLACES, RESERVE, STALLED_S
from mailismus.admin.server.task import MAX_CONNECTIONS, SILENT_S
from mailismus.errors import StartError
from tests.admin.longqueue import LongQueue
from tests.admin.worlds import Serving, World

PATIENCE_S = 60.0
LISTINGS = PLACES - RESERVE
MOST_LINES = 1000
"""Several times what is on its way to a client that does not read."""


class Client:
    """A connection to the admin socket. `request` None: it sends none."""

    def __init__(self, path: str, request: Request | None) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")
        assert self.line()["hello"]
        if request is not None:
            self._socket.sendall(encode_request(request))

    def line(self) -> dict[str, object]:
        line = json.loads(self._lines.readline())
        assert isinstance(line, dict)
        return line

    def refusal(self) -> dict[str, object] | None:
        """What ends the answer behind all that was on its way; None: it goes on."""
        for _ in range(MOST_LINES):
            line = self.line()
            if "error" in line:
                return line
        return None

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


class Crowd:
    """A server whose queue has no end, and its clients."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 1000.0
        self.serving = Serving(world.socket_path, lambda _: LongQueue(10**12), lambda: self.now)
        self.serving.start()
        self.clients: list[Client] = []

    def connect(self, request: Request | None = None) -> Client:
        client = Client(self.world.socket_path, request)
        self.clients.append(client)
        return client

    def listing(self) -> Client:
        """One that has begun."""
        client = self.connect(Request("list"))
        client.line()
        return client

    def is_listed(self) -> bool:
        """Whether one more listing is served."""
        try:
            return self.world.run("queue", "list", "--limit", "1") == 0
        except StartError:
            return False

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.serving.stop()


@pytest.fixture
def crowd(world: World) -> Iterator[Crowd]:
    crowd = Crowd(world)
    yield crowd
    crowd.close()


def test_listings_that_nobody_reads_lock_out_no_other_command(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(LISTINGS):
        crowd.listing()
    for _ in range(RESERVE):
        crowd.connect(Request("list")).line()
    assert crowd.world.run("queue", "count") == 0
    assert crowd.world.run("queue", "flush") == 0
    status, text = crowd.world.refusal("queue", "list", "--limit", "1")
    assert status == 75
    assert text.count(f"pid {os.getpid()} (uid {os.geteuid()}): queue list for 0 s") == LISTINGS
    capsys.readouterr()


def test_another_listing_takes_the_place_of_one_that_nobody_reads_and_that_one_is_told(
    crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    listings = [crowd.listing() for _ in range(LISTINGS)]
    for _ in range(1000):
        crowd.now += STALLED_S
        if crowd.is_listed():  # not while all still write what a client takes that does not read
            break
    refusal = next(filter(None, (listing.refusal() for listing in listings)))
    assert refusal["status"] == 75
    assert f"gave way to queue list of pid {os.getpid()} (uid {os.geteuid()})" in str(refusal["error"])
    capsys.readouterr()


def test_connections_without_a_request_lock_out_nobody(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(MAX_CONNECTIONS):
        crowd.connect()
    crowd.now += SILENT_S
    for _ in range(3):
        assert crowd.world.run("queue", "count") == 0
    capsys.readouterr()
