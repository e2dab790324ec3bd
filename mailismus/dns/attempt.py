"""The attempt: one name server asked one question, by UDP, and by TCP when the answer does not fit or somebody forges.

*Rules*: a fresh socket and a fresh random id for each attempt. What does not fit is ignored, but after `MAX_FORGED` of it
the question goes by TCP. A server that stumbles over EDNS is asked once more without it. The owner hears of one end, or of
none after `close`.

*Not here*: how long to wait, and whom else to ask (`question`); sockets (`sockets`). RFC 5452, RFC 6891, RFC 7766.
"""

from __future__ import annotations

from typing import Protocol

from mailismus.dns.answer import Answer, RecordType
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import PAYLOAD, Foreign, MessageTrouble, Response, Truncated, encode_query, read_response
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import Datagrams, DnsReactor, OpenUdp, TcpConnection

MAX_FORGED = 20
"""Datagrams that fit no question before the socket is given up."""


class AttemptOwner(Protocol):
    """Who is told. Each method may be called before `begin` or `repeat` returns."""

    def answered(self, attempt: Attempt, answer: Answer) -> None:
        """The end: an answer, denials too."""

    def server_failed(self, attempt: Attempt, text: str, is_dead: bool) -> None:
        """The end: this server has no answer. `is_dead`: it could not even be reached."""

    def goes_by_tcp(self, attempt: Attempt) -> None:
        """The server is there; the answer takes another round trip or two."""


class Attempt:
    """One name server asked, a `DatagramReceiver`. `query_id`: random, 0 to 65535. `close` it when there was no end."""

    def __init__(
        self,
        reactor: DnsReactor,
        open_udp: OpenUdp,
        counters: DnsCounters,
        server: NameServer,
        name: str,
        rdtype: RecordType,
        query_id: int,
        timeout_s: float,
        owner: AttemptOwner,
        began: float,
    ) -> None:
        self.server, self.began = server, began
        self._reactor, self._open_udp, self._counters, self._owner = reactor, open_udp, counters, owner
        self._name, self._rdtype, self._id, self._timeout_s = name, rdtype, query_id, timeout_s
        self._payload = PAYLOAD
        self._forged = 0
        self._is_over = False
        self._udp: Datagrams | None = None
        self._tcp: TcpConnection | None = None

    def begin(self) -> None:
        """Ask."""
        try:
            self._udp = self._open_udp(self.server, self)
        except OSError as trouble:
            self._fail(f"{self.server} can't be asked: {trouble.strerror or trouble}", is_dead=False)
            return
        self.repeat()

    def repeat(self) -> None:
        """Ask the same again: a datagram may have been lost. By TCP nothing is."""
        if self._udp is None or self._tcp is not None or self._is_over:
            return
        self._counters.queries += 1
        try:
            self._udp.send(self._query())
        except OSError as trouble:
            self.refused(trouble.strerror or str(trouble))

    def close(self) -> None:
        """The owner wants to hear nothing more."""
        self._is_over = True
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()

    @property
    def silence(self) -> str:
        """What to say when there was no end."""
        return f"no answer from {self.server}" if self._tcp is None else f"no answer by TCP from {self.server}"

    def refused(self, why: str) -> None:
        """`DatagramReceiver`."""
        if self._tcp is None and not self._is_over:
            self._counters.refused += 1
            self._fail(f"{self.server} can't be reached: {why}", is_dead=True)

    def datagram_received(self, data: bytes, host: str, port: int) -> None:
        """`DatagramReceiver`."""
        if self._is_over or self._tcp is not None:
            return
        is_from_server = port == self.server.port and host.partition("%")[0] == self.server.host.partition("%")[0]
        response = self._read(data) if is_from_server else Foreign()
        match response:
            case Foreign():
                self._counters.forged += 1
                self._forged += 1
                if self._forged >= MAX_FORGED:
                    self._go_by_tcp()
            case Truncated():
                self._counters.truncated += 1
                self._go_by_tcp()
            case MessageTrouble(retry_plain=True) if self._payload:
                self._payload = 0
                self.repeat()
            case MessageTrouble(text):
                self._counters.server_failures += 1
                self._fail(text, is_dead=False)
            case Answer():
                self._answered(response)

    def connected(self) -> bytes:
        """`DatagramReceiver`."""
        self._counters.queries += 1
        return self._query()

    def message_received(self, data: bytes) -> None:
        """`DatagramReceiver`."""
        if self._is_over:
            return
        response = self._read(data)
        match response:
            case Answer():
                self._answered(response)
            case MessageTrouble(text):
                self._counters.server_failures += 1
                self._fail(text, is_dead=False)
            case Truncated():
                self._counters.server_failures += 1
                self._fail(f"an answer truncated even by TCP from {self.server}", is_dead=False)
            case Foreign():
                self._counters.forged += 1
                self._fail(f"an answer to another question by TCP from {self.server}", is_dead=False)

    def tcp_failed(self, why: str) -> None:
        """`DatagramReceiver`."""
        if not self._is_over:
            self._fail(f"{self.server} has the answer for TCP alone, and its connection failed: {why}", is_dead=False)

    def _query(self) -> bytes:
        return encode_query(self._id, self._name, self._rdtype, self._payload)

    def _read(self, data: bytes) -> Response:
        return read_response(data, self._id, self._name, self._rdtype, str(self.server))

    def _go_by_tcp(self) -> None:
        if self._udp is not None:
            self._udp.close()
        self._tcp = TcpConnection(self._reactor, self.server, self, self._timeout_s)
        self._owner.goes_by_tcp(self)

    def _answered(self, answer: Answer) -> None:
        self._counters.answers += 1
        self.close()
        self._owner.answered(self, answer)

    def _fail(self, text: str, is_dead: bool) -> None:
        self.close()
        self._owner.server_failed(self, text, is_dead)
