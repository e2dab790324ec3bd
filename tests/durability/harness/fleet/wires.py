"""The wires between the servers of a fleet and the services: each server in a network of its own, each wire cut by itself.

    python -m tests.durability.harness.fleet.wires '{"services": {NAME: PORT}, "servers": {NAME: SINK PORT}}'

Each server has a network namespace, and in it for each service a pair of virtual devices to a namespace between, where this
process listens and passes all on to the service's port of loopback. The next hop's port is passed on in the same way from
the server's own loopback, and never cut. A wire is cut by a wrong hardware address of the other end: what is sent is lost
without a word, one way or both, and connections stay as they are. Nothing listens in the machine's own network.

*Rules*: the namespaces are those of this process, and end with it; the kernel kills it when the harness ends. Needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs
from twisted.internet import reactor as _reactor
from twisted.internet.interfaces import IReactorCore

from benchmarks.stage.servers import TREE
from tests.services.front import LOOPBACK, Front, FrontReactor
from tests.support.processes import Process, TrialError, start, tail, wait_until


class WiresReactor(IReactorCore, FrontReactor):
    """The part of the reactor that is used."""


reactor = cast(WiresReactor, _reactor)
CLONE_NEWNET = 0x4000_0000
SERVICES = ("rabbitmq", "cassandra", "swift")
READY_S = 20.0
BACKLOG = 100


class Way(enum.Enum):
    """Which way of a wire is cut."""

    BOTH = "both ways"
    TO = "to the service"
    FROM = "from the service"


@attrs.frozen
class Wire:
    """One pair of devices: its number among those of all servers, the server's and its own."""

    server: int
    service: int

    def name(self, end: str) -> str:
        """Of a device."""
        return f"w{self.server}{self.service}{end}"

    def address(self, end: str) -> str:
        """Of an end: `a`, the service's, or `b`, the server's."""
        return f"10.77.{self.server}.{4 * self.service + (1 if end == 'a' else 2)}"

    def hardware(self, end: str) -> str:
        """The hardware address of an end."""
        return f"02:00:00:{self.server:02x}:{self.service:02x}:{1 if end == 'a' else 2:02x}"


def lacks_wires() -> str | None:
    """Why there can be no namespaces here; None: there can."""
    if os.geteuid():
        return "network namespaces: needs root"
    try:
        done = subprocess.run(
            ["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"network namespaces: {error}; Debian: apt-get install --no-install-recommends iproute2"
    return f"network namespaces: {done.stderr.strip()}" if done.returncode else None


@attrs.frozen
class Wires:
    """The running wires, for the harness."""

    servers: Sequence[str]
    namespaces: Mapping[str, str]
    """Files of `/proc`, by server; that between has the name ''."""

    def command(self, server: str) -> list[str]:
        """The command line in front of a program that is to run in a server's network."""
        return ["nsenter", f"--net={self.namespaces[server]}"]

    def hosts(self, server: str, ports: Mapping[str, int]) -> dict[str, str]:
        """Host and port of each service, as a server sees them."""
        wires = {service: Wire(self.servers.index(server), number) for number, service in enumerate(SERVICES)}
        return {service: f"{wire.address('a')}:{ports[service]}" for service, wire in wires.items()}

    def cut(self, server: str, services: Sequence[str], way: Way) -> None:
        """Cut a server off from services."""
        self._set(server, services, is_cut_to=way is not Way.FROM, is_cut_from=way is not Way.TO)

    def mend(self, server: str) -> None:
        """Nothing is cut."""
        self._set(server, SERVICES, is_cut_to=False, is_cut_from=False)

    def _set(self, server: str, services: Sequence[str], *, is_cut_to: bool, is_cut_from: bool) -> None:
        for service in services:
            wire = Wire(self.servers.index(server), SERVICES.index(service))
            _know(self.namespaces[server], wire, "b", "a", is_cut=is_cut_to)
            _know(self.namespaces[""], wire, "a", "b", is_cut=is_cut_from)


def _know(namespace: str, wire: Wire, here: str, there: str, *, is_cut: bool) -> None:
    """One end knows the hardware address of the other, or a wrong one."""
    hardware = "02:00:00:ff:ff:ff" if is_cut else wire.hardware(there)
    more = ["lladdr", hardware, "dev", wire.name(here), "nud", "permanent"]
    _ip(namespace, "neigh", "replace", wire.address(there), *more)


def _ip(namespace: str, *words: str) -> None:
    done = subprocess.run(["nsenter", f"--net={namespace}", "ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TrialError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def wired(directory: Path, ports: Mapping[str, int], sinks: Mapping[str, int]) -> Iterator[Wires]:
    """Wires of servers, by name with their next hop's port, to services. Raises: TrialError."""
    given = json.dumps({"services": ports, "servers": sinks})
    process = start("wires", [sys.executable, "-m", "tests.durability.harness.fleet.wires", given], directory, cwd=TREE)
    try:
        yield Wires(list(sinks), _namespaces_of(process))
    finally:
        process.kill()


def _namespaces_of(process: Process) -> dict[str, str]:
    wait_until(lambda: b"\n" in process.output.read_bytes() or not process.running(), READY_S, "the wires")
    if not process.running():
        raise TrialError(process.complaint())
    found: dict[str, str] = json.loads(tail(process.output))
    return found


class _Namespaces:
    """Of this process."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def make(self, ports: Sequence[int]) -> tuple[str, list[socket.socket]]:
        """A new one, and sockets that listen in it at these ports of loopback; we are at home again then."""
        if self._libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        file = f"/proc/{os.getpid()}/fd/{os.open('/proc/self/ns/net', os.O_RDONLY | os.O_CLOEXEC)}"
        _ip(file, "link", "set", "lo", "up")
        found = [_listen(LOOPBACK, port) for port in ports]
        self._enter(self._home)
        return file, found

    def listen(self, file: str, address: str, port: int) -> socket.socket:
        """A socket that listens in one of them."""
        inside = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        self._enter(inside)
        os.close(inside)
        try:
            return _listen(address, port)
        finally:
            self._enter(self._home)

    def _enter(self, descriptor: int) -> None:
        if self._libc.setns(descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def _listen(address: str, port: int) -> socket.socket:
    made = socket.create_server((address, port), backlog=BACKLOG)
    made.setblocking(False)
    return made


def main(ports: Mapping[str, int], sinks: Mapping[str, int]) -> None:
    """Make the wires, tell the namespaces, and pass on until the end."""
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    made = _Namespaces()
    between, _ = made.make([])
    namespaces, passed = {"": between}, list[tuple[socket.socket, int]]()
    for number, (name, sink) in enumerate(sinks.items()):
        namespaces[name], (own,) = made.make([sink])
        passed.append((own, sink))
        for place, service in enumerate(SERVICES):
            wire = Wire(number, place)
            peer = ["peer", "name", wire.name("b"), "address", wire.hardware("b"), "netns", namespaces[name]]
            _ip(between, "link", "add", wire.name("a"), "address", wire.hardware("a"), "type", "veth", *peer)
            for end, namespace in (("a", between), ("b", namespaces[name])):
                _ip(namespace, "addr", "add", f"{wire.address(end)}/30", "dev", wire.name(end))
                _ip(namespace, "link", "set", wire.name(end), "up")
            _know(namespaces[name], wire, "b", "a", is_cut=False)
            _know(between, wire, "a", "b", is_cut=False)
            passed.append((made.listen(between, wire.address("a"), ports[service]), ports[service]))
    for listening, port in passed:
        Front(reactor, port).adopt(listening)
    print(json.dumps(namespaces), flush=True)
    reactor.run()


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    main(asked["services"], asked["servers"])
