"""Services of several nodes: the first is started before the others, and each is by itself in trouble."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.distributed.waiting import reactor, wait_for
from tests.services import keeper as keepers
from tests.services.__main__ import addresses_of
from tests.services.front import FrontReactor
from tests.services.keeper import Keeper
from tests.services.kinds import NODES
from tests.services.node import Node
from tests.services.places import ServicesDirectory, take_lock
from tests.services.seat import Seat, kind_of, seats
from tests.services.service import Service, ServiceError, probe

SERVER = """\
import socket, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    with listening.accept()[0] as client:
        client.recv(1)
        client.sendall(b"well")
"""
BEGUN: list[int] = []


class Toy(Service):
    """A service that answers one word."""

    name = "toy"
    replicas = 3
    probes = b"?"
    well = b"well"

    def __init__(self, reactor: FrontReactor, directory: Path, seat: Seat) -> None:
        super().__init__(reactor, directory, seat)
        command = [sys.executable, "-c", SERVER, str(seat.port)]
        self._node = Node("toy", command, directory / "log")

    @property
    def nodes(self) -> list[Node]:
        return [self._node]

    def prepare(self) -> None:
        BEGUN.append(self.seat.number)

    def facts(self) -> dict[str, Any]:
        return {"hosts": self.address, "secret": self.seat.secret}

    async def fill(self) -> None:
        """Nothing."""

    async def make_room(self) -> None:
        """Nothing."""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    monkeypatch.setattr(keepers, "KINDS", {"toy": Toy})
    BEGUN.clear()
    directory = ServicesDirectory(tmp_path / "services")
    directory.path.mkdir()
    lock = take_lock(directory.lock)
    assert lock is not None
    keeper = Keeper(directory, ["toy"], is_replicated=True)
    try:
        yield keeper
    finally:
        keeper.end()
        os.close(lock)


def begin(keeper: Keeper) -> dict[str, str]:
    return wait_for(Deferred.fromCoroutine(keeper.start()))


def do(keeper: Keeper, deed: str, name: str = "") -> dict[str, Any]:
    return wait_for(Deferred.fromCoroutine(keeper.carry_out({"do": deed, "name": name})))


def states(keeper: Keeper) -> list[str]:
    return list(do(keeper, "status")["services"].values())


def is_heard(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return wait_for(Deferred.fromCoroutine(probe(reactor, (host, int(port)), b"?", b"well")))


def test_the_first_node_is_well_before_the_others_begin(toys: Keeper, tmp_path: Path) -> None:
    assert begin(toys) == {}
    assert BEGUN == [1, 2, 3]
    facts = ServicesDirectory(tmp_path / "services").read_facts() or {}
    addresses = addresses_of(facts)
    assert list(addresses) == ["toy-1", "toy-2", "toy-3"]
    assert facts["toy"]["hosts"] == ",".join(addresses.values())
    assert all(is_heard(address) for address in addresses.values())


def test_one_node_is_in_trouble_and_the_others_go_on(toys: Keeper, tmp_path: Path) -> None:
    begin(toys)
    addresses = addresses_of(ServicesDirectory(tmp_path / "services").read_facts() or {})
    assert do(toys, "kill", "toy-2") == {"state": "stopped"}
    assert states(toys) == ["running", "stopped", "running"]
    assert [is_heard(address) for address in addresses.values()] == [True, False, True]
    do(toys, "freeze", "toy-3")
    assert states(toys) == ["running", "stopped", "frozen"]
    do(toys, "restart", "toy-2")
    do(toys, "thaw", "toy-3")
    assert all(is_heard(address) for address in addresses.values())


def test_a_node_of_several_keeps_its_data(toys: Keeper) -> None:
    begin(toys)
    with pytest.raises(ServiceError, match="toy-2: a node of several can't be wiped"):
        do(toys, "wipe", "toy-2")
    with pytest.raises(ServiceError, match="toy is not up; here is toy-1, toy-2, toy-3"):
        do(toys, "kill", "toy")
    assert states(toys) == ["running"] * 3


def test_a_service_is_left_out_with_all_its_nodes(toys: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Toy, "well", b"ill")
    monkeypatch.setattr("tests.services.service.START_S", 0.3)
    with pytest.raises(ServiceError, match="toy-1: it was not well"):
        begin(toys)
    assert BEGUN == [1]


def test_seats_have_names_and_ports_of_their_own() -> None:
    (alone,), three = seats(), seats(3)
    assert alone.called("toy") == "toy"
    assert [seat.called("toy") for seat in three] == ["toy-1", "toy-2", "toy-3"]
    assert len({seat.port for seat in three}) == 3
    assert len({(seat.common, seat.secret) for seat in three}) == 1
    assert kind_of("toy-3") == kind_of("toy") == "toy"
    assert [f"{kind}-{number}" for kind in ("rabbitmq", "cassandra") for number in (1, 2, 3)] == NODES
