"""A network in memory for the DNS client: sockets that the test reads and answers, and a clock that it sets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdatatype import RdataType
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock, StringTransport

from mailismus.dns.answer import Answer
from mailismus.dns.client import DnsClient
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import DatagramReceiver, DnsReactor

TIMEOUT_S = 5.0
SERVERS = (NameServer("192.0.2.1"), NameServer("192.0.2.2"), NameServer("192.0.2.3"))


class FakeUdp:
    """`Datagrams` in memory."""

    def __init__(self, server: NameServer, receiver: DatagramReceiver) -> None:
        self.server, self.receiver = server, receiver
        self.sent: list[bytes] = []
        self.is_open = True

    def send(self, data: bytes) -> None:
        assert self.is_open
        self.sent.append(data)

    def close(self) -> None:
        self.is_open = False

    @property
    def query(self) -> dns.message.Message:
        return dns.message.from_wire(self.sent[-1])

    def receive(self, data: bytes, host: str = "", port: int = 0) -> None:
        self.receiver.datagram_received(data, host or self.server.host, port or self.server.port)

    def answer(self, *records: str, rcode: int = 0, flags: int = 0, ttl_s: int = 300) -> None:
        """Send this answer; a record is `NAME TYPE DATA`, behind `authority:` in that section."""
        self.receive(response_to(self.sent[-1], *records, rcode=rcode, flags=flags, ttl_s=ttl_s))


def response_to(query_wire: bytes, *records: str, rcode: int = 0, flags: int = 0, ttl_s: int = 300) -> bytes:
    """The wire form of an answer to this question."""
    response = dns.message.make_response(dns.message.from_wire(query_wire), recursion_available=True)
    response.set_rcode(dns.rcode.Rcode(rcode))
    response.flags |= flags
    for record in records:
        section = response.authority if record.startswith("authority:") else response.answer
        name, rdtype, data = record.removeprefix("authority:").split(None, 2)
        rrset = response.find_rrset(
            section, dns.name.from_text(name), dns.rdataclass.IN, dns.rdatatype.from_text(rdtype), create=True
        )
        rrset.add(dns.rdata.from_text("IN", rdtype, data, dns.name.root, relativize=False), ttl_s)
    return bytes(response.to_wire(max_size=65535))


SOA = "authority:. SOA ns. host. 1 7200 900 1209600 60"


class Network:
    """A client in this network. `refuse`: what opening a socket raises."""

    def __init__(self, servers: Sequence[NameServer] = SERVERS[:1]) -> None:
        self.reactor = MemoryReactorClock()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self.servers = tuple(servers)
        self.udp: list[FakeUdp] = []
        self.refuse: OSError | None = None
        self.random = random.Random(7)
        self.client = DnsClient(
            cast(DnsReactor, self.reactor),
            lambda: self.servers,
            TIMEOUT_S,
            self.random,
            self.reactor.seconds,
            open_udp=self._open,
        )

    def _open(self, server: NameServer, receiver: DatagramReceiver) -> FakeUdp:
        if self.refuse is not None:
            raise self.refuse
        made = FakeUdp(server, receiver)
        self.udp.append(made)
        return made

    @property
    def open(self) -> list[FakeUdp]:
        """The sockets that are open."""
        return [socket for socket in self.udp if socket.is_open]

    def ask(self, name: str = "example.net", rdtype: RdataType = RdataType.MX) -> list[Answer]:
        """Ask; the list holds the answer once there is one."""
        return results_of(self.client.query(name, rdtype))

    def advance(self, seconds: float) -> None:
        """Let this time pass."""
        self.reactor.pump([0.0] + [seconds / 40] * 40)

    def connect(self) -> tuple[Any, StringTransport]:
        """The newest TCP connection stands."""
        factory = self.reactor.tcpClients[-1][2]
        protocol = factory.buildProtocol(None)
        transport = StringTransport()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        assert protocol is not None
        protocol.makeConnection(transport)
        return protocol, transport

    def is_at_rest(self) -> bool:
        """Whether no socket is open and no timer runs."""
        return not self.open and not self.reactor.getDelayedCalls()


def results_of(deferred: Deferred[Any]) -> list[Any]:
    """What a Deferred comes to, once it does."""
    results: list[Any] = []
    keep: Callable[[Any], None] = results.append
    deferred.addBoth(keep)
    return results
