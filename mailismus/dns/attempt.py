"""The attempt: one question to one name server, by UDP, and by TCP if the answer is too large or forgeries arrive.

*Rules*: each attempt has a new socket and a new random id. A message that does not match is ignored; after `MAX_FORGED` of
them the question is sent by TCP. A server that fails on EDNS is asked once more without it. The owner is told one result, or
none after `close`.

*Not here*: time-outs and other servers (`question`), sockets (`sockets`). RFC 5452, RFC 6891, RFC 7766.
"""

from __future__ import annotations

from typing import Protocol

from dns.rdatatype import RdataType

from mailismus.dns.answer import Answer
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import Foreign, Response, ServerFailure, Truncated, encode_query, make_query, read_response
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import Datagrams, DnsReactor, OpenUdp, TcpConnection

MAX_FORGED = 20
"""Datagrams without a match before the attempt changes to TCP."""


class AttemptOwner(Protocol):
    """Receives the result. Each method may be called before `begin` or `repeat` returns."""

    def answered(self, attempt: Attempt, answer: Answer) -> None:
        """End the attempt with an answer, which may be a denial."""

    def server_failed(self, attempt: Attempt, text: str, is_dead: bool) -> None:
        """End the attempt without an answer. `is_dead`: the server could not even be reached."""

    def switched_to_tcp(self, attempt: Attempt) -> None:
        """Note that the server is alive and the answer takes one or two more round trips."""


class Attempt:
    """One question to one name server; a `DatagramReceiver`. `query_id`: random, 0 to 65535. `close` it if it has no
    result."""

    def __init__(
        self,
        reactor: DnsReactor,
        open_udp: OpenUdp,
        counters: DnsCounters,
        server: NameServer,
        name: str,
        rdtype: RdataType,
        query_id: int,
        timeout_s: float,
        owner: AttemptOwner,
        began: float,
    ) -> None:
        self.server, self.began = server, began
        self._reactor, self._open_udp, self._counters, self._owner = reactor, open_udp, counters, owner
        self._query, self._timeout_s = make_query(query_id, name, rdtype), timeout_s
        self._forged = 0
        self._is_over = False
        self._udp: Datagrams | None = None
        self._tcp: TcpConnection | None = None

    def begin(self) -> None:
        """Send the question."""
        try:
            self._udp = self._open_udp(self.server, self)
        except OSError as error:
            self._fail(f"{self.server} can't be asked: {error.strerror or error}", is_dead=False)
            return
        self.repeat()

    def repeat(self) -> None:
        """Send the question again, since a datagram may have been lost; not by TCP, which loses nothing."""
        if self._udp is None or self._tcp is not None or self._is_over:
            return
        self._counters.count_query()
        try:
            self._udp.send(encode_query(self._query))
        except OSError as error:
            self.refused(error.strerror or str(error))

    def close(self) -> None:
        """End the attempt without telling the owner."""
        self._is_over = True
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()

    @property
    def silence(self) -> str:
        """The text for an attempt without a result."""
        return f"no answer from {self.server}" if self._tcp is None else f"no answer by TCP from {self.server}"

    def refused(self, why: str) -> None:
        """See `DatagramReceiver`."""
        if self._tcp is None and not self._is_over:
            self._counters.count_refused()
            self._fail(f"{self.server} can't be reached: {why}", is_dead=True)

    def datagram_received(self, data: bytes, host: str, port: int) -> None:
        """See `DatagramReceiver`."""
        if self._is_over or self._tcp is not None:
            return
        is_from_server = port == self.server.port and host.partition("%")[0] == self.server.host.partition("%")[0]
        response = self._read(data) if is_from_server else Foreign()
        match response:
            case Foreign():
                self._counters.count_forged()
                self._forged += 1
                if self._forged >= MAX_FORGED:
                    self._switch_to_tcp()
            case Truncated():
                self._counters.count_truncated()
                self._switch_to_tcp()
            case ServerFailure(retry_plain=True) if self._query.edns >= 0:
                self._query.use_edns(None)
                self.repeat()
            case ServerFailure(text):
                self._counters.count_server_failure()
                self._fail(text, is_dead=False)
            case Answer():
                self._answered(response)

    def connected(self) -> bytes:
        """See `DatagramReceiver`."""
        self._counters.count_query()
        return encode_query(self._query)

    def message_received(self, data: bytes) -> None:
        """See `DatagramReceiver`."""
        if self._is_over:
            return
        response = self._read(data)
        match response:
            case Answer():
                self._answered(response)
            case ServerFailure(text):
                self._counters.count_server_failure()
                self._fail(text, is_dead=False)
            case Truncated():
                self._counters.count_server_failure()
                self._fail(f"an answer truncated even by TCP from {self.server}", is_dead=False)
            case Foreign():
                self._counters.count_forged()
                self._fail(f"an answer to another question by TCP from {self.server}", is_dead=False)

    def tcp_failed(self, why: str) -> None:
        """See `DatagramReceiver`."""
        if not self._is_over:
            self._fail(f"{self.server} has the answer for TCP alone, and its connection failed: {why}", is_dead=False)

    def _read(self, data: bytes) -> Response:
        return read_response(data, self._query, self.server)

    def _switch_to_tcp(self) -> None:
        if self._udp is not None:
            self._udp.close()
        self._tcp = TcpConnection(self._reactor, self.server, self, self._timeout_s)
        self._owner.switched_to_tcp(self)

    def _answered(self, answer: Answer) -> None:
        self._counters.count_answer()
        self.close()
        self._owner.answered(self, answer)

    def _fail(self, text: str, is_dead: bool) -> None:
        self.close()
        self._owner.server_failed(self, text, is_dead)
