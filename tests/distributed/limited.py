"""Servers that share limits, over the model of the database: what uses a limit, and who has how much of it."""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.identity.lease import RENEW_S, ServerLease
from mailismus.queue.providers.distributed.limits.keeping import LimitKeeping
from mailismus.queue.providers.distributed.limits.part import LimitPart
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.sharing import ServerSharing
from tests.deliver.harness import Bench
from tests.deliver.harness import World as DeliverWorld
from tests.distributed.models.host import HostClock
from tests.distributed.world import World
from tests.fakes.hand import NoHand
from tests.fakes.network import Network, Wire


@attrs.define(eq=False)
class Use:
    """Connections, or what is sent in a minute if `lasts_s` is not 0."""

    name: str
    clock: HostClock
    lasts_s: float = 0.0
    is_even: bool = False
    open: int = 0
    sent: deque[float] = attrs.field(factory=deque)

    def used(self) -> int:
        if not self.lasts_s:
            return self.open
        while self.sent and self.sent[0] <= self.clock.seconds() - self.lasts_s:
            self.sent.popleft()
        return len(self.sent)


class LimitedServer:
    """One server: its lease is renewed as that of a queue."""

    def __init__(self, world: World, name: str, epoch: int) -> None:
        self.world, self.name, self.epoch = world, name, epoch
        self.host = HostClock(world.clock)
        self.clients = world.server(self.host)
        stores = self.clients.stores
        self.lease = ServerLease(stores.rows, name, self.host.seconds)
        news = ServerNews(stores.broker, self.host)
        self.sharing = ServerSharing(stores.rows, news, LimitKeeping(stores.rows, self.lease, news, self.host), NoHand())
        self.uses: dict[str, tuple[Use, LimitPart]] = {}
        world.wait(self.lease.acquire(epoch))
        self._renewing = Regular(RENEW_S, self.host, "no lease")
        self._renewing.start(self._renew, RENEW_S)
        self.limits.listen(lambda: None)

    async def _renew(self) -> None:
        if not await self.lease.renew():
            self.epoch += 100
            for use, _ in self.uses.values():  # as the queue does: nothing more begins, and what is open ends
                use.open = 0
            await self.lease.acquire(self.epoch)

    @property
    def limits(self) -> LimitKeeping:
        return self.sharing.limits

    def use_of(self, name: str, lasts_s: float = 0.0, *, is_even: bool = False) -> tuple[Use, LimitPart]:
        if name not in self.uses:
            use = Use(name, self.host, lasts_s, is_even)
            self.uses[name] = use, self.limits.part(use)
        return self.uses[name]

    def begin(self, name: str, limit: int, lasts_s: float = 0.0) -> bool:
        """Use one more, if it may be."""
        use, part = self.use_of(name, lasts_s)
        if use.used() >= part.ask(limit):
            if use.used() < limit:
                part.want()
            return False
        if lasts_s:
            use.sent.append(self.host.seconds())
        else:
            use.open += 1
        return True

    def end(self, name: str, count: int = 1) -> None:
        """End some connections."""
        use = self.use_of(name)[0]
        use.open = max(0, use.open - count)

    def kill(self) -> None:
        """SIGKILL: its connections are closed."""
        self.host.kill()
        self.clients.broker.lose()
        for use, _ in self.uses.values():
            use.open = 0

    def close(self) -> Deferred[None]:
        """A clean stop."""

        async def stop() -> None:
            self._renewing.close()
            await self.sharing.close()
            await self.lease.release()

        return Deferred.fromCoroutine(stop())


class LimitedWorld(World):
    """Servers by name."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, LimitedServer] = {}
        self._epochs = 0

    def start(self, name: str) -> LimitedServer:
        self._epochs += 1
        self.servers[name] = server = LimitedServer(self, name, self._epochs)
        return server

    def pass_s(self, seconds: float, step_s: float = 0.1) -> None:
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.clock.advance(0)


class SharedNetwork(Network):
    """The network of one server, to hosts that are everybody's."""

    def __init__(self, clock: Clock, servers: dict[tuple[str, int], Factory]) -> None:
        super().__init__(clock)
        self.servers = servers
        self._wires: list[Wire] = []

    def _made(self, near: Wire) -> None:
        self._wires.append(near)

    def end(self) -> None:
        """The server's machine closes its connections: it was killed."""
        for near in self._wires:
            if near.is_open:
                near.is_open = False
                near.other.abortConnection()


class Deliverer(Bench):
    """A server that delivers, and shares its limits. Its queue is its own: what is shared here are limits alone."""

    def __init__(self, world: LimitedWorld, name: str, servers: dict[tuple[str, int], Factory], **changes: Any) -> None:
        self.server = world.start(name)
        self.shared_network = SharedNetwork(world.clock, servers)
        self.shared_network.latency_s = changes.pop("latency_s", 0.0)
        super().__init__(world=DeliverWorld(self.server.host, self.shared_network), limits=self.server.limits, **changes)
        self.task.start()

    def kill(self) -> None:
        self.server.kill()
        self.shared_network.end()
