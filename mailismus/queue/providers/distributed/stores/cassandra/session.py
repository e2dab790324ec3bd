"""The driver's session: connected by a thread, asked and answered in the reactor's thread.

*Rules*: the driver has a thread of its own for its sockets, and its calls that block (to connect, to prepare a statement)
run in one of ours. Its own retries are off: who asks decides what is asked again, but for reads and writes that one node
does not answer: another one is asked (`asking`). A node that leaves a heartbeat unanswered is taken for dead, and tried
again each second. A statement is prepared at each node when it is first asked, so that no preparation waits for all nodes.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredLock

from mailismus.disk.worker import IWorker
from mailismus.queue.providers.distributed.stores.cassandra.asking import Asking, NoAnswer, Rows, RowsReactor
from mailismus.queue.providers.distributed.stores.cassandra.refusals import why_not_connected
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered, reason_of
from mailismus.queue.providers.distributed.stores.libraries import load

STORE = "cassandra"
CONNECT_S = 5.0
ANSWER_S = 5.0
SCHEMA_S = 30.0
PAUSE_S = 0.5
HEARTBEAT_S = 2
"""A connection that was silent for so long is sent a heartbeat."""
NO_ROOM = "replica_disk_usage"
"""The guardrail that the database names where it refuses a write because its disks are almost full."""


@attrs.frozen
class CassandraAccess:
    """Where the database is, and who we are. `ca`: the path of certificates that its own must lead to; empty: without
    TLS."""

    hosts: Sequence[tuple[str, int]]
    datacenter: str = "datacenter1"
    username: str = ""
    password: str = attrs.field(default="", repr=False)
    ca: str = ""


class CassandraSession:
    """Statements and their answers."""

    def __init__(self, reactor: RowsReactor, worker: IWorker, access: CassandraAccess) -> None:
        self._reactor, self._worker, self._access = reactor, worker, access
        self._lock = DeferredLock()
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, Any] = {}
        self._preparing: dict[str, list[Deferred[Any]]] = {}
        self._failed_at: float | None = None
        self._failure = ""

    async def read(self, statement: str, values: Sequence[object]) -> Rows:
        """The rows of the answer, all of them. Raises `NotDone`."""
        bound = (await self._prepare(statement)).bind(values)
        try:
            return await self._ask(bound)
        except NoAnswer as error:
            raise NotDone(STORE, reason_of(error)) from error

    async def compare(self, statement: str, values: Sequence[object]) -> dict[str, object]:
        """The one row that answers a compare and set. Raises `NotDone` or `Unanswered`."""
        bound = (await self._prepare(statement)).bind(values)
        try:
            rows = await self._ask(bound, may_repeat=False)
        except NoAnswer as error:
            raise _failure_of_all(error, may_be_done=True) from error
        return rows[0]

    async def write(self, writes: Sequence[tuple[str, Sequence[object]]], *, is_one: bool) -> None:
        """Carry out statements as a batch. `is_one`: they are all of one partition. Raises `NotDone` or `Unanswered`."""
        bound = [(await self._prepare(statement)).bind(values) for statement, values in writes]
        query = load("cassandra", "query")
        if len(bound) > 1:
            kind = query.BatchType.UNLOGGED if is_one else query.BatchType.LOGGED
            batch = query.BatchStatement(kind)
            for statement in bound:
                batch.add(statement)
            bound = [batch]
        try:
            await self._ask(bound[0])
        except NoAnswer as error:
            raise _failure_of_all(error, may_be_done=False) from error

    async def run(self, statement: str) -> Rows:
        """Carry out a statement that changes the schema or asks the server itself. Raises `NotDone`."""
        await self.connect()
        simple = load("cassandra", "query").SimpleStatement(statement)
        try:
            return await self._ask(simple, SCHEMA_S, may_repeat=False)
        except NoAnswer as error:
            raise NotDone(STORE, reason_of(error)) from error

    async def count_nodes(self) -> int:
        """How many nodes the datacenter has, up or not. Raises `NotDone`."""
        await self.connect()
        return sum(host.datacenter == self._access.datacenter for host in self._cluster.metadata.all_hosts())

    async def connect(self) -> None:
        """Connect, if that was not done. The driver connects again by itself. Raises `NotDone`."""
        if self._session is not None:
            return
        await self._lock.acquire()
        try:
            if self._session is None:
                await self._connect()
        finally:
            self._lock.release()

    async def close(self) -> None:
        """End the connections."""
        cluster, self._cluster, self._session = self._cluster, None, None
        self._prepared.clear()
        if cluster is not None:
            await self._worker.run(cluster.shutdown)

    async def _connect(self) -> None:
        if self._failed_at is not None and self._reactor.seconds() < self._failed_at + PAUSE_S:
            raise NotDone(STORE, self._failure)
        cluster = self._make_cluster()
        try:
            session = await self._worker.run(cluster.connect)
        except Exception as error:
            await self._worker.run(cluster.shutdown)
            self._failed_at = self._reactor.seconds()
            self._failure = why_not_connected(error, self._access.datacenter)
            raise NotDone(STORE, self._failure) from error
        self._failed_at = None
        self._cluster, self._session = cluster, session

    def _make_cluster(self) -> Any:
        cluster, policies = load("cassandra", "cluster"), load("cassandra", "policies")
        consistency, access = load("cassandra").ConsistencyLevel, self._access
        profile = cluster.ExecutionProfile(
            load_balancing_policy=policies.TokenAwarePolicy(policies.DCAwareRoundRobinPolicy(access.datacenter)),
            retry_policy=policies.FallthroughRetryPolicy(),
            consistency_level=consistency.LOCAL_QUORUM,
            serial_consistency_level=consistency.LOCAL_SERIAL,
            request_timeout=ANSWER_S,
            row_factory=load("cassandra", "query").dict_factory,
        )
        options: dict[str, Any] = {}
        if access.username:
            provider = load("cassandra", "auth").PlainTextAuthProvider
            options["auth_provider"] = provider(access.username, access.password)
        if access.ca:
            options["ssl_context"] = ssl.create_default_context(cafile=access.ca)
        return cluster.Cluster(
            contact_points=list(access.hosts),
            execution_profiles={cluster.EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=policies.ConstantReconnectionPolicy(1.0, None),
            protocol_version=4,
            connect_timeout=CONNECT_S,
            control_connection_timeout=ANSWER_S,
            idle_heartbeat_interval=HEARTBEAT_S,
            idle_heartbeat_timeout=ANSWER_S,
            prepare_on_all_hosts=False,
            **options,
        )

    async def _prepare(self, statement: str) -> Any:
        """A prepared statement. All that ask for one while it is prepared have what becomes of that. Raises `NotDone`."""
        known = self._prepared.get(statement)
        if known is not None:
            return known
        waiting = self._preparing.get(statement)
        if waiting is not None:
            waiting.append(Deferred())
            return await waiting[-1]
        waiting = self._preparing[statement] = []
        try:
            known = self._prepared[statement] = await self._prepare_now(statement)
        except NotDone as error:
            for one in self._preparing.pop(statement):
                one.errback(error)
            raise
        for one in self._preparing.pop(statement):
            one.callback(known)
        return known

    async def _prepare_now(self, statement: str) -> Any:
        try:
            await self.connect()
            session = self._session
            return await self._worker.run(lambda: session.prepare(statement))
        except NotDone:
            raise
        except Exception as error:
            raise NotDone(STORE, reason_of(error)) from error

    async def _ask(self, statement: Any, patience_s: float = ANSWER_S, *, may_repeat: bool = True) -> Rows:
        asking = Asking(self._reactor, self._session, self._hosts, _is_final)
        return await asking.ask(statement, patience_s, may_repeat=may_repeat)

    def _hosts(self) -> list[Any]:
        """The nodes that are up."""
        return [] if self._cluster is None else [host for host in self._cluster.metadata.all_hosts() if host.is_up]


def _is_final(error: object) -> bool:
    """Whether every node would say the same."""
    return isinstance(error, (load("cassandra").InvalidRequest, load("cassandra", "protocol").SyntaxException))


def _failure_of_all(failed: NoAnswer, *, may_be_done: bool) -> NotDone | Unanswered:
    """How a write failed that one node or two were asked for: it was not done if all of them refused it."""
    failures = [failure_of(error, may_be_done=may_be_done) for error in failed.errors]
    return next((failure for failure in failures if isinstance(failure, Unanswered)), failures[-1])


def failure_of(error: BaseException, *, may_be_done: bool) -> NotDone | Unanswered:
    """How a node failed a write. Without a connection it was not sent: the driver sends nothing twice. The coordinator
    refuses before it does anything where replicas are known to be down, where it is overloaded, and what it does not
    understand; of a compare and set only the last is sure."""
    cassandra, protocol = load("cassandra"), load("cassandra", "protocol")
    refusals: tuple[type[BaseException], ...] = (cassandra.InvalidRequest, protocol.SyntaxException)
    refusals += (load("cassandra", "cluster").NoHostAvailable,)
    if not may_be_done:
        refusals += (cassandra.Unavailable, protocol.OverloadedErrorMessage)
    if isinstance(error, refusals):
        is_full = isinstance(error, cassandra.InvalidRequest) and NO_ROOM in str(error)
        return NotDone(STORE, reason_of(error), is_full)
    return Unanswered(STORE, reason_of(error))
