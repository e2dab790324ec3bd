"""The process that owns the services, from `up` until `down` or the end of the process that they are for.

    python -m tests.services.keeper DIRECTORY PID NAME.. [--any] [--replicated]

*Rules*: it has one thread, for the kernel kills the services when the thread that started them ends. One request is carried
out at a time. Whatever ends it, the services are killed and the directory is removed; if it is killed itself, the kernel
kills the services.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from twisted.internet import reactor as _reactor
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorCore, IReactorFDSet, IReactorUNIX
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure

from tests.services.front import FrontReactor
from tests.services.kinds import KINDS
from tests.services.places import ServicesDirectory, remove_tree, take_lock
from tests.services.seat import seats
from tests.services.service import Service, ServiceError

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18


class KeeperReactor(IReactorCore, IReactorFDSet, IReactorUNIX, FrontReactor):
    """The part of the reactor that is used."""


reactor = cast(KeeperReactor, _reactor)


class Keeper:
    """The services of one directory."""

    def __init__(
        self, directory: ServicesDirectory, kinds: list[str], *, is_any: bool = False, is_replicated: bool = False
    ) -> None:
        """`is_any`: one that does not start is left out. `is_replicated`: with all nodes that its kind can have."""
        self._directory, self._kinds, self._is_any, self._is_replicated = directory, kinds, is_any, is_replicated
        self._lock = DeferredLock()
        self.services: dict[str, Service] = {}
        """Those that were begun, or each of their nodes, by name."""

    async def start(self) -> dict[str, str]:
        """Start all at once. Return why services were left out, by their names. Raises `ServiceError`."""
        nodes = {kind: self._make_nodes(kind) for kind in self._kinds}
        starts = {kind: Deferred.fromCoroutine(_start(made)) for kind, made in nodes.items()}
        failed: dict[str, str] = {}
        for name, start in starts.items():
            try:
                await start
            except ServiceError as error:
                failed[name] = str(error)
        if failed and not (self._is_any and len(failed) < len(starts)):
            raise ServiceError("; ".join(failed.values()))
        for kind in failed:
            for node in nodes.pop(kind):
                self.services.pop(node.seat.called(kind)).end()
        facts = {kind: _facts_of(made) for kind, made in nodes.items()}
        for path, values in ((self._directory.left_out, failed), (self._directory.facts, facts)):
            unready = path.with_suffix(".new")
            unready.write_text(json.dumps(values))
            unready.rename(path)
        return failed

    def _make_nodes(self, kind: str) -> list[Service]:
        made: list[Service] = []
        for seat in seats(KINDS[kind].replicas if self._is_replicated else 1):
            name = seat.called(kind)
            made.append(KINDS[kind](reactor, self._directory.path / name, seat))
            self.services[name] = made[-1]
        return made

    async def carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, when it is done. Raises `ServiceError`."""
        await self._lock.acquire()
        try:
            return await self._carry_out(request)
        finally:
            self._lock.release()

    async def _carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        what, name = request["do"], request.get("name", "")
        if what == "status":
            return {"services": {name: service.state for name, service in self.services.items()}}
        if what == "down":
            return {}
        if name not in self.services:
            raise ServiceError(f"{name} is not up; here is {', '.join(self.services)}")
        service = self.services[name]
        match what:
            case "kill":
                service.kill()
            case "freeze":
                service.freeze()
            case "thaw":
                await service.thaw()
            case "slow":
                service.slow(float(request["seconds"]))
            case "fill":
                await service.use_up()
            case "wipe":
                await service.wipe()
            case "restart":
                await service.restart()
            case _:
                raise ServiceError(f"{what}: unknown")
        return {"state": service.state}

    def end(self) -> None:
        """Kill the services and remove their directory."""
        for service in self.services.values():
            service.end()
        remove_tree(self._directory.path)
        self._directory.lock.unlink(missing_ok=True)


async def _start(nodes: list[Service]) -> None:
    """Start the first node of a service, then the others at once. Raises `ServiceError`."""
    first, *others = nodes
    await first.start()
    starts = [Deferred.fromCoroutine(node.start()) for node in others]
    failed = []
    for start in starts:
        try:
            await start
        except ServiceError as error:
            failed.append(str(error))
    if failed:
        raise ServiceError("; ".join(failed))


def _facts_of(nodes: list[Service]) -> dict[str, Any]:
    """What clients need to know of a service; of one with several nodes also where each is."""
    facts = nodes[0].facts()
    if len(nodes) > 1:
        addresses = {node.seat.called(node.name): node.address for node in nodes}
        facts |= {"hosts": ",".join(addresses.values()), "nodes": addresses}
    return facts


class _Session(LineReceiver):
    """One request of a command."""

    delimiter = b"\n"

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._is_last = False

    def lineReceived(self, line: bytes) -> None:
        request = json.loads(line)
        self._is_last = request["do"] == "down"
        Deferred.fromCoroutine(self._keeper.carry_out(request)).addCallbacks(self._tell, self._refuse)

    def connectionLost(self, reason: object = None) -> None:
        if self._is_last:
            reactor.stop()

    def _tell(self, answer: dict[str, Any]) -> None:
        self._answer(answer)

    def _refuse(self, failure: Failure) -> None:
        error = failure.value
        self._answer({"error": str(error) if isinstance(error, ServiceError) else repr(error)})

    def _answer(self, answer: dict[str, Any]) -> None:
        assert self.transport is not None
        self.transport.write(json.dumps(answer).encode() + b"\n")
        self.transport.loseConnection()


class _Sessions(Factory):
    noisy = False

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def buildProtocol(self, addr: object) -> Protocol:
        return _Session(self._keeper)


class _Owner(FileDescriptor):
    """The process that the services are for: readable when it has ended."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(cast(Any, reactor))
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def doRead(self) -> None:
        reactor.removeReader(cast(Any, self))
        reactor.stop()


def take_own_mounts() -> None:
    """What is mounted from here on is seen by this process and its children alone, and goes with them. Without the right
    to do so nothing happens, and nothing can be mounted either."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def _say(answer: dict[str, Any]) -> None:
    """Tell the command, once; its pipe is closed then."""
    print(json.dumps(answer), flush=True)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


async def _begin(keeper: Keeper, directory: ServicesDirectory) -> None:
    try:
        left_out = await keeper.start()
    except Exception as error:
        _say({"error": str(error) if isinstance(error, ServiceError) else repr(error)})
        reactor.stop()
        return
    reactor.listenUNIX(str(directory.socket), _Sessions(keeper), mode=0o600)
    _say({"left_out": left_out})


def main(arguments: list[str]) -> int:
    """Keep the services until they are no longer wanted."""
    directory, pid = ServicesDirectory(Path(arguments[0])), int(arguments[1])
    kinds = [name for name in arguments[2:] if not name.startswith("--")]
    if take_lock(directory.lock) is None:
        _say({"error": f"services are up already in {directory.path}"})
        return 75
    try:
        owner = os.pidfd_open(pid)
    except OSError as error:
        _say({"error": f"process {pid}: {error.strerror}"})
        return 64
    if directory.path.exists():
        remove_tree(directory.path)
    directory.path.mkdir(mode=0o700)
    take_own_mounts()
    keeper = Keeper(directory, kinds, is_any="--any" in arguments, is_replicated="--replicated" in arguments)
    reactor.addReader(cast(Any, _Owner(owner)))
    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(_begin(keeper, directory)))
    try:
        reactor.run()
    finally:
        keeper.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
