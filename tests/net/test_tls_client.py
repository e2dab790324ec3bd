"""TLS towards other servers over a connection in memory, with Python's own as the host."""

from __future__ import annotations

import pathlib
import ssl

import pytest
from twisted.internet.task import Clock

from mailismus.net.tls import MAX_SILENT
from mailismus.net.tls_client import Demands, TlsClient
from tests.fakes.certificates import make_certificate
from tests.net.tls_ends import Session, Tcp

MADE = make_certificate()
GREETING = b"220 mx.example\r\n"


class Host:
    """A host that gives so many tickets, and our side of the connection."""

    def __init__(self, directory: pathlib.Path, tickets: int) -> None:
        file = directory / "host.pem"
        file.write_bytes(MADE.pem + MADE.key_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.num_tickets = tickets
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.session, self.tcp = Session(), Tcp()  # type: ignore[no-untyped-call]  # Twisted's
        self.transport = TlsClient(Demands(), Clock()).begin(self.tcp, self.session, b"mx.example", None)

    def carry(self) -> int:
        """What either side has to say reaches the other, in reads as long as a socket's. Returns the bytes of the host."""
        self.incoming.write(self.tcp.value())  # type: ignore[no-untyped-call]  # Twisted's
        self.tcp.clear()  # type: ignore[no-untyped-call]  # Twisted's
        data = self.outgoing.read()
        for start in range(0, len(data), 1 << 16):
            if not self.tcp.disconnecting:
                self.transport.dataReceived(data[start : start + (1 << 16)])
        return len(data)

    def shake_hands(self) -> int:
        """The handshake, with the tickets behind it. Returns the bytes of the host."""
        count = 0
        while True:
            count += self.carry()
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                continue
            return count + self.carry()


@pytest.mark.parametrize(("tickets", "is_too_much"), [(2, False), (500, False), (3000, True)])
def test_a_host_may_say_so_much_and_nothing_by_it(tmp_path: pathlib.Path, tickets: int, is_too_much: bool) -> None:
    """Each key update, and each ticket, costs as much time as a reply, and the session's limits see none of them."""
    host = Host(tmp_path, tickets)
    assert (host.shake_hands() > MAX_SILENT) is is_too_much
    host.tls.write(GREETING)
    host.carry()
    assert host.session.told
    assert host.tcp.disconnecting is host.transport.is_flooded is is_too_much
    assert host.session.pieces == ([] if is_too_much else [GREETING])


def test_replies_make_up_for_what_stands_beside_them(tmp_path: pathlib.Path) -> None:
    host = Host(tmp_path, 2)
    count = host.shake_hands()
    while count < 2 * MAX_SILENT:
        for _ in range(1000):
            host.tls.write(b"2")
        count += host.carry()
    assert not host.tcp.disconnecting
