"""A manager that a test holds in its hand, and sessions in memory."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailismus.config.values.settings import ServerSettings
from mailismus.errors import Unavailable
from mailismus.mail.directory import Directory
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.networks import Networks
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.commits import tell
from mailismus.queue.interface import CommitListener, M
from mailismus.submit.policy import Policy
from mailismus.submit.protocol import ServerSession
from mailismus.submit.reception import Desk
from mailismus.submit.sessions import SessionFactory

DIRECTORY = Directory(frozenset({b"our.example", b"other-of-ours.example"}), frozenset({b"joe", b"admin"}), b"admin")
SETTINGS = ServerSettings(
    relay_clients=Networks.of([ipaddress.ip_network("127.0.0.1/32"), ipaddress.ip_network("2001:db8::/32")]),
    maxmsgsize=100_000,
    maxrecips=5,
    maxmessages=0,
    maxpeerconnections=0,
    maxconnections=10,
    maxbadreqs=10,
    timeout_s=300.0,
)
AT = 1_700_000_000
DATE = b"Tue, 14 Nov 2023 22:13:20 +0000"


class FakeDraft:
    """A draft in memory; `waits` are given to the next writes."""

    def __init__(self, spool_id: SpoolId, waits: list[Deferred[None]]) -> None:
        self.spool_id = spool_id
        self.content = b""
        self.waits = waits
        self.is_abandoned = False

    @property
    def stored_bytes(self) -> int:
        return len(self.content)

    def write(self, data: bytes) -> Deferred[None] | None:
        self.content += data
        return self.waits.pop(0) if self.waits else None

    def abandon(self) -> None:
        self.is_abandoned = True


@attrs.define
class FakeManager:
    """Accepts when the test says so: `accepted` holds draft, envelope and the Deferred to fire."""

    trouble: Unavailable | None = None
    is_quick: bool = False
    drafts: list[FakeDraft] = attrs.Factory(list)
    accepted: list[tuple[FakeDraft, Envelope, Deferred[Sequence[SpoolId]]]] = attrs.Factory(list)
    waits: list[Deferred[None]] = attrs.Factory(list)

    def draft(self) -> FakeDraft:
        if self.trouble:
            raise self.trouble
        self.drafts.append(FakeDraft(SpoolId(len(self.drafts) + 1), self.waits))
        return self.drafts[-1]

    def accept(self, draft: Any, envelope: Envelope, listener: CommitListener[M], mark: M) -> None:
        waiting: Deferred[Sequence[SpoolId]] = Deferred()
        self.accepted.append((draft, envelope, waiting))
        tell(waiting, listener, mark)
        if self.is_quick:
            waiting.callback(())

    def fire(self, number: int = -1) -> None:
        """It is durable."""
        self.accepted[number][2].callback(())


class Wire(StringTransport):
    """The other end of a session."""

    def __init__(self, host: str) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", host, 1))  # type: ignore[no-untyped-call]  # Twisted's
        self.session: ServerSession | None = None

    def loseConnection(self) -> None:
        super().loseConnection()  # type: ignore[no-untyped-call]  # Twisted's
        self.drop()

    def abortConnection(self) -> None:
        super().abortConnection()  # type: ignore[no-untyped-call]  # Twisted's
        self.drop()

    def drop(self) -> None:
        """The connection is gone."""
        session, self.session = self.session, None
        if session:
            session.connectionLost(None)  # type: ignore[arg-type]  # no reason is looked at


class FakeSocket:
    """An accepted connection: its number, and what the client has sent already."""

    def __init__(self, early: bytes, descriptor: int) -> None:
        self.early, self.descriptor = early, descriptor

    def fileno(self) -> int:
        return self.descriptor

    def recv(self, size: int, flags: int) -> bytes:
        if not self.early:
            raise BlockingIOError
        return self.early[:size]


class House:
    """One listener in memory."""

    def __init__(self, settings: ServerSettings = SETTINGS, max_envelope_bytes: int = 100_000, tick_s: float = 1.0) -> None:
        self.clock = Clock()
        self.clock.advance(AT)
        self.manager, self.maillog = FakeManager(), MemoryMailLog()
        policy = Policy(DIRECTORY, settings, max_envelope_bytes)
        self.desk = Desk(b"mx.example", policy, self.manager, self.maillog, self.clock)
        self.factory = SessionFactory(self.desk, tick_s)

    def connect(self, host: str = "127.0.0.1", early: bytes = b"", descriptor: int = 10) -> Client:
        return Client(self, host, early, descriptor)

    def tick(self, count: int) -> None:
        for _ in range(count):
            self.factory.check_time()


class Client:
    """A client of it. Who is turned away hears the last words, and has no session."""

    session: ServerSession

    def __init__(self, house: House, host: str, early: bytes = b"", descriptor: int = 10) -> None:
        self.wire = Wire(host)
        admitted = house.factory.admit(host, FakeSocket(early, descriptor))  # type: ignore[arg-type]  # all that is asked of it
        if isinstance(admitted, bytes):
            self.wire.write(admitted)  # type: ignore[no-untyped-call]  # Twisted's
        else:
            self.session = self.wire.session = admitted
            admitted.makeConnection(self.wire)

    def say(self, data: bytes) -> bytes:
        """Send; gives what comes back."""
        self.session.dataReceived(data)
        return self.heard()

    def heard(self) -> bytes:
        """What came since the last time."""
        data: bytes = self.wire.value()  # type: ignore[no-untyped-call]  # Twisted's
        self.wire.clear()  # type: ignore[no-untyped-call]  # Twisted's
        return data

    @property
    def is_open(self) -> bool:
        return self.wire.session is not None
