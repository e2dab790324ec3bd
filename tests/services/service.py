"""What every service can do: start, stop, kill, freeze, thaw, slow, fill, wipe, restart.

Everything is called in the keeper's one thread. What takes time is a coroutine, and one of them runs at a time.
"""

from __future__ import annotations

import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from tests.services.asking import Question, ask
from tests.services.front import LOOPBACK, Front, FrontReactor
from tests.services.node import Node
from tests.services.seat import Seat

START_S = 120.0
STOP_S = 30.0
LOOK_S = 0.2
PROBE_S = 2.0


class ServiceError(Exception):
    """A service did not do what was asked of it, and why."""


class Service(ABC):
    """One service, or one of its nodes: its processes, its directory, and the port that clients are told."""

    name: str
    """As in the commands, but for the number of its node."""
    replicas = 1
    """How many nodes it has where services are replicated."""
    probes: bytes
    """What is said to a port of it."""
    well: bytes
    """How the answer begins once it is well."""

    def __init__(
        self,
        reactor: FrontReactor,
        directory: Path,
        seat: Seat,
        inside: tuple[str, int] | None = None,
        front: tuple[str, int] = (LOOPBACK, 0),
    ) -> None:
        """`inside`: where its process listens; None: at the port of its seat. `front`: where clients find it; 0: at a port
        that is free."""
        self.directory, self.seat = directory, seat
        self._reactor = reactor
        self.host, self.port = inside or (LOOPBACK, seat.port)
        self._front = Front(reactor, self.port, self.host)
        self._front_host = front[0]
        self._front_port = self._front.open(*front)
        self._is_full = False
        directory.mkdir()
        (directory / "data").mkdir()

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{self._front_host}:{self._front_port}"

    @property
    def data(self) -> Path:
        """What survives a restart, and what `wipe` removes."""
        return self.directory / "data"

    @property
    @abstractmethod
    def nodes(self) -> list[Node]:
        """The processes that are killed and frozen, in the order of their start."""

    @property
    def helpers(self) -> list[Node]:
        """Further processes, which live as long as the keeper."""
        return []

    @property
    def probed_ports(self) -> list[int]:
        """The ports that must answer before it is well."""
        return [self.port]

    @abstractmethod
    def prepare(self) -> None:
        """Write the configuration, and make what is missing of the data. Called before every start."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What clients need to know."""

    @abstractmethod
    async def fill(self) -> None:
        """From now on it has no room for what is written. Raises `ServiceError`."""

    @abstractmethod
    async def make_room(self) -> None:
        """It has room again."""

    @property
    def state(self) -> str:
        """In a word or two."""
        if not any(node.is_running for node in self.nodes):
            return "stopped"
        words = ["frozen"] if any(node.is_frozen for node in self.nodes) else ["running"]
        dead = [node.name for node in self.nodes if not node.is_running]
        words += [f"without {' '.join(dead)}"] if dead else []
        words += [f"slow by {self._front.delay_s:g} s"] if self._front.delay_s else []
        words += ["full"] if self._is_full else []
        return ", ".join(words)

    async def start(self) -> None:
        """Start what does not run, and wait until it is well. Raises `ServiceError`."""
        self.prepare()
        for node in (*self.helpers, *self.nodes):
            if not node.is_running:
                node.start()
        await self.until(self.is_well, START_S, "it was not well")

    async def is_well(self) -> bool:
        """Whether it answers as it does when it is well. Raises `ServiceError` if one of its processes has ended."""
        for node in self.nodes:
            if not node.is_running:
                raise ServiceError(node.complaint())
        for port in self.probed_ports:
            if not await probe(self._reactor, (self.host, port), self.probes, self.well):
                return False
        return True

    async def stop(self) -> None:
        """Stop it cleanly; kill what does not end."""
        for node in reversed(self.nodes):
            node.thaw()
            node.send(signal.SIGTERM)
        try:
            await self.until(self._has_ended, STOP_S, "it did not end")
        except ServiceError:
            self.kill()

    async def _has_ended(self) -> bool:
        return not any(node.is_running for node in self.nodes)

    def kill(self) -> None:
        """Kill it (SIGKILL). It stays down until `restart`."""
        for node in self.nodes:
            node.kill()

    def freeze(self) -> None:
        """Stop it where it is: connections stay, nothing answers."""
        for node in self.nodes:
            node.freeze()

    async def thaw(self) -> None:
        """It goes on, neither slow nor full."""
        for node in self.nodes:
            node.thaw()
        self._front.slow(0.0)
        if self._is_full:
            self._is_full = False
            await self.make_room()

    def slow(self, delay_s: float) -> None:
        """From now on its answers come so much later."""
        self._front.slow(delay_s)

    async def use_up(self) -> None:
        """`fill`, and say so in `state`."""
        await self.fill()
        self._is_full = True

    async def restart(self) -> None:
        """Stop it cleanly and start it over its data; it is well then, neither slow nor full."""
        await self.thaw()
        await self.stop()
        await self.start()

    async def wipe(self) -> None:
        """Kill it and start it anew, without its data. Raises `ServiceError` for a node of several: they know it."""
        if self.seat.count > 1:
            raise ServiceError(f"{self.seat.called(self.name)}: a node of several can't be wiped")
        await self.thaw()
        self.kill()
        for path in self.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        await self.start()

    def end(self) -> None:
        """Kill everything; the keeper ends."""
        self._front.close()
        for node in (*self.nodes, *self.helpers):
            node.kill()

    async def pause(self, seconds: float) -> None:
        """So much time passes."""
        await deferLater(self._reactor, seconds)

    async def until(self, condition: Callable[[], Awaitable[bool]], patience_s: float, trouble: str) -> None:
        """Wait until it holds. Raises `ServiceError`."""
        end = self._reactor.seconds() + patience_s
        while not await condition():
            if self._reactor.seconds() > end:
                text = "; ".join(node.complaint() for node in self.nodes)
                raise ServiceError(f"{self.seat.called(self.name)}: {trouble} within {patience_s:.0f} s: {text}")
            await self.pause(LOOK_S)

    async def run(self, node: Node, patience_s: float) -> None:
        """Run a process to its end. Raises `ServiceError`."""

        async def has_ended() -> bool:
            return not node.is_running

        node.start()
        await self.until(has_ended, patience_s, f"{node.name} did not end")


class _Probe(Question):
    def __init__(self, words: bytes, well: bytes, answer: Deferred[bool]) -> None:
        super().__init__(answer)
        self._words, self._well = words, well

    def connectionMade(self) -> None:
        self.say(self._words)

    def dataReceived(self, data: bytes) -> None:
        self._heard += data
        if len(self._heard) >= len(self._well):
            self.leave()

    def connectionLost(self, reason: object = None) -> None:
        if not self._answer.called:
            self._answer.callback(self._heard.startswith(self._well))


async def probe(reactor: FrontReactor, address: tuple[str, int], words: bytes, well: bytes) -> bool:
    """Whether what listens there answers so within `PROBE_S`."""
    return await ask(reactor, address, PROBE_S, lambda answer: _Probe(words, well, answer))
