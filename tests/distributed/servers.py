"""Several servers over the models of one set of stores, each with a process that may be frozen or killed."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, IQueue
from mailismus.queue.providers.distributed.assembly import ServerTerms, build
from mailismus.queue.providers.distributed.format.share import Share, SharePlace, read_shares
from mailismus.queue.providers.distributed.format.tables import ENQUEUED, queue_of
from mailismus.queue.providers.distributed.stores.rows import Row, Write
from tests.contracts.bench import Bench
from tests.contracts.harness import QueueHarness
from tests.distributed.harness import VIEW
from tests.distributed.models.fates import IWatch
from tests.distributed.models.host import HostClock
from tests.distributed.world import World

T = TypeVar("T")
NEW = queue_of(Area.INCOMING.value)
ALL = (Area.INCOMING, Area.DEFERRED, Area.BOUNCES)


class Node(Bench):
    """One server, and its queue's user. `ahead_s`: seconds that its clock is ahead."""

    def __init__(self, servers: Servers, name: str, watch: IWatch | None = None, ahead_s: float = 0.0) -> None:
        self.host, self.ahead_s = HostClock(servers.world.clock), ahead_s
        self.clients = servers.world.server(self.host, watch)
        bits, chance = servers.random.getrandbits, servers.random.random
        terms = ServerTerms(
            *(name, VIEW, servers.keep_s, 1000, lambda: servers.now() + self.ahead_s, servers.now),
            *(bits, chance, servers.wants_sizes),
        )
        self.shared = build(self.clients.stores, self.host, terms)
        super().__init__(cast(QueueHarness, servers), cast(IQueue, self.shared))

    def may_try(self, queue_id: QueueId) -> bool:
        return self.queue.may_try(queue_id.spool_id)

    def take_all(self) -> list[QueueId]:
        """What may be taken of all areas that are delivered or reported."""
        return [queue_id for area in ALL for queue_id in self.take_ids(area)]

    def kill(self) -> None:
        """SIGKILL: its connections end."""
        self.host.kill()
        self.clients.broker.lose()

    def freeze(self, servers: Servers, seconds: float) -> None:
        """SIGSTOP, for so long. The broker notices when it has heard nothing for 20 s."""
        self.host.freeze()
        servers.advance(min(seconds, 20))
        if seconds >= 20:
            self.clients.broker.lose()
            servers.advance(seconds - 20)


class Servers:
    """The servers, and their time. Nothing waits longer than some seconds but by `advance`."""

    takes_at_once = False

    def __init__(self) -> None:
        self.world = World()
        self.clock = self.world.clock
        self.random = random.Random(1)
        self.wants_sizes = False
        self.keep_s = 86_400.0

    def start(self, name: str, watch: IWatch | None = None) -> Node:
        node = Node(self, name, watch)
        self.wait(node.queue.open())
        return node

    def wait(self, deferred: Deferred[T]) -> T:
        results: list[Any] = []
        deferred.addBoth(results.append)
        for _ in range(300):
            if results:
                break
            self.clock.advance(0.1 if self.clock.calls else 0)
        assert results, "it never fires"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return cast(T, results[0])

    def wait_for(self, call: Coroutine[Deferred[Any], Any, T]) -> T:
        """The result of a coroutine."""
        return self.wait(Deferred.fromCoroutine(call))

    def now(self) -> float:
        return float(self.clock.seconds())

    def advance(self, seconds: float) -> None:
        end = self.now() + seconds
        while end - self.now() > 0.001:
            self.clock.advance(min(1.0, end - self.now()))
        self.clock.advance(0)


def freeze_as_it_writes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server stand still as it begins its next write."""
    write = node.clients.rows.write

    def write_and_freeze(writes: Sequence[Write]) -> Deferred[None]:
        monkeypatch.undo()
        done = write(writes)
        node.host.freeze()
        return done

    monkeypatch.setattr(node.clients.rows, "write", write_and_freeze)


def taken_by_one(first: Node, second: Node) -> tuple[list[QueueId], Node, Node]:
    """New mail, all of one message, the server that has taken it, and the other one."""
    taken = first.take_ids()
    return (taken, first, second) if taken else (second.take_ids(), second, first)


def new_shares(servers: Servers) -> list[Share]:
    """New mail, as its rows tell it."""
    found = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    groups: dict[SharePlace, list[Row]] = {}
    for row in found:
        start, bucket = row["slice_start"], row["bucket"]
        assert isinstance(start, float)
        assert isinstance(bucket, int)
        if row["queue_name"] == Area.INCOMING.value:
            groups.setdefault(SharePlace(Area.INCOMING.value, start, bucket), []).append(row)
    return [share for place, rows in groups.items() for share in read_shares(place, rows).shares]


@contextmanager
def held_back(servers: Servers) -> Iterator[None]:
    """The broker delivers nothing meanwhile."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(servers.world.broker, "hand_out", lambda name: None)
        yield
    servers.world.broker.hand_out(NEW)
