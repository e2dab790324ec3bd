"""TLS over a connection in memory, spoken to by Python's own: what comes through, what is refused, what is left behind."""

from __future__ import annotations

import gc
import ssl
import weakref
from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock

from mailismus.net.tls import MAX_HELLO, TlsServer
from tests.fakes.certificates import make_certificate
from tests.net.tls_ends import Session, Tcp

MADE = make_certificate()
SERVER = TlsServer(MADE.pem, MADE.key_pem, Clock())


class Pair:
    """A client and our side of the connection."""

    def __init__(self, server: TlsServer = SERVER, **options: object) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=MADE.pem.decode())
        for name, value in options.items():
            if name == "ciphers":
                context.set_ciphers(str(value))
            else:
                setattr(context, name, value)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.incoming, self.outgoing, server_hostname="mx.example")
        self.session, self.tcp = Session(), Tcp()  # type: ignore[no-untyped-call]  # Twisted's
        self.transport = server.begin(self.tcp, self.session)

    def carry(self, size: int = 1 << 20) -> None:
        """What either side has to say reaches the other, in pieces of that size."""
        data = self.outgoing.read()
        for start in range(0, len(data), size):
            self.transport.dataReceived(data[start : start + size])
        self.incoming.write(self.tcp.value())  # type: ignore[no-untyped-call]  # Twisted's
        self.tcp.clear()  # type: ignore[no-untyped-call]  # Twisted's

    def shake_hands(self, size: int = 1 << 20) -> Pair:
        for _ in range(10):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.carry(size)
            else:
                self.carry(size)
                break
        return self


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_pass_both_ways_and_it_is_told_how(size: int, version: ssl.TLSVersion) -> None:
    pair = Pair(maximum_version=version).shake_hands(size)
    (told,) = pair.session.told
    assert told.startswith(version.name.replace("_", ".").encode() + b" with cipher ")
    cipher = pair.client.cipher()
    assert cipher is not None
    assert b" %b (%d bits)" % (cipher[0].encode(), cipher[2]) in told
    pair.client.write(b"EHLO c\r\n")
    pair.carry(size)
    assert b"".join(pair.session.pieces) == b"EHLO c\r\n"
    pair.transport.write(b"250 x\r\n")  # type: ignore[no-untyped-call]  # Twisted's
    pair.carry()
    assert pair.client.read() == b"250 x\r\n"


def test_what_came_with_the_end_of_the_handshake_is_not_lost() -> None:
    pair = Pair()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.do_handshake()
    pair.carry()
    pair.client.do_handshake()
    pair.client.write(b"EHLO c\r\n")
    pair.carry()
    assert pair.session.pieces == [b"EHLO c\r\n"]


def test_one_read_is_one_piece() -> None:
    pair = Pair().shake_hands()
    for _ in range(10):
        pair.client.write(b"x" * 5000)
    pair.carry()
    assert pair.session.pieces == [b"x" * 50000]


def test_reading_stops_where_the_bytes_come_from() -> None:
    pair = Pair().shake_hands()
    pair.transport.pauseProducing()
    assert pair.tcp.producerState == "paused"
    pair.transport.resumeProducing()
    assert pair.tcp.producerState == "producing"


def test_no_version_before_1_2_is_spoken() -> None:
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        pair = Pair(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1, ciphers="ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"ALERT|alert"):
        pair.shake_hands()
    assert pair.tcp.disconnecting
    pair.tcp.lose()
    assert pair.session.failed == [b"unsupported protocol"]


@pytest.mark.parametrize("cipher", ["AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ALL:eNULL:@SECLEVEL=0"])
def test_no_cipher_without_secrecy_forward_and_authentication_is_used(cipher: str) -> None:
    pair = Pair(maximum_version=ssl.TLSVersion.TLSv1_2, check_hostname=False, verify_mode=ssl.CERT_NONE, ciphers=cipher)
    try:
        pair.shake_hands()
    except ssl.SSLError:
        pair.tcp.lose()
        assert pair.session.failed == [b"no shared cipher"]
    else:
        assert cipher.startswith("ALL")  # then the best of them
        assert b"ECDHE-ECDSA-AES" in pair.session.told[0]
        assert b"GCM" in pair.session.told[0]


def test_plain_text_in_place_of_a_handshake_ends_the_connection() -> None:
    pair = Pair()
    pair.transport.dataReceived(b"EHLO client.example\r\nMAIL FROM:<a@x>\r\n")
    assert pair.tcp.disconnecting or pair.tcp.disconnected
    pair.tcp.lose()
    assert len(pair.session.failed) == 1
    assert pair.session.pieces == []
    assert pair.session.is_lost


@pytest.mark.parametrize("size", [1, 100])
def test_no_room_is_made_for_an_endless_first_message(size: int) -> None:
    pair = Pair()
    hello = b"\x16\x03\x01\x40\x00\x01" + (MAX_HELLO + 1).to_bytes(3, "big") + b"\x03\x03" + b"x" * 500
    for start in range(0, 20, size):
        pair.transport.dataReceived(hello[start : start + size])
        if pair.tcp.disconnected:
            break
    else:
        raise AssertionError("it goes on")
    pair.tcp.lose()
    assert pair.session.failed == [b"the client went away"]


def test_a_client_that_goes_away_within_the_handshake_is_told_of() -> None:
    pair = Pair()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.do_handshake()
    pair.carry()
    pair.tcp.lose()
    assert pair.session.failed == [b"the client went away"]
    assert pair.session.is_lost


def test_a_changed_byte_ends_the_connection() -> None:
    pair = Pair().shake_hands()
    pair.client.write(b"EHLO c\r\n")
    data = bytearray(pair.outgoing.read())
    data[-1] ^= 1
    pair.transport.dataReceived(bytes(data))
    assert pair.session.pieces == []
    assert pair.tcp.disconnecting
    pair.tcp.lose()
    assert pair.session.failed == []
    assert pair.session.is_lost


def test_our_end_is_said_and_the_other_awaited() -> None:
    pair = Pair().shake_hands()
    pair.transport.write(b"221 bye\r\n")  # type: ignore[no-untyped-call]  # Twisted's
    pair.transport.loseConnection()  # type: ignore[no-untyped-call]  # Twisted's
    pair.carry()
    assert pair.client.read() == b"221 bye\r\n"
    assert pair.client.read() == b""
    assert not pair.tcp.disconnecting
    pair.client.unwrap()
    pair.carry()
    assert pair.tcp.disconnecting


def test_what_the_client_said_before_its_end_counts() -> None:
    pair = Pair().shake_hands()
    pair.client.write(b"QUIT\r\n")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.carry()
    assert pair.session.pieces == [b"QUIT\r\n"]
    assert pair.tcp.disconnecting


def test_there_is_nothing_to_resume() -> None:
    pair = Pair(maximum_version=ssl.TLSVersion.TLSv1_2).shake_hands()
    session = pair.client.session
    assert session is None or not (session.has_ticket or session.id)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("is_shaken", [False, True])
def test_a_connection_that_is_over_leaves_nothing_behind(no_collector: None, is_shaken: bool) -> None:
    pair = Pair()
    if is_shaken:
        pair.shake_hands()
    transport, session = weakref.ref(pair.transport), weakref.ref(pair.session)
    pair.tcp.lose()
    del pair
    assert transport() is None
    assert session() is None
