"""The assessment of connections: which second one there is, and what follows from both."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mailismus.config.values.tls import TlsLevel
from mailismus.probe.assess import ProbedConnection, assess, next_level
from mailismus.probe.report import HostReport, TlsFacts
from mailismus.probe.transcript import Transcript
from mailismus.smtp.client.starttls import TlsFault

NONE, OPPORTUNISTIC, ENCRYPT, VERIFY = TlsLevel
TLS = TlsFacts("TLSv1.3", "X", ())
HOST = HostReport("mx.example", "192.0.2.1", 25, None)


def connection(
    level: TlsLevel, tls: TlsFacts | None = None, fault: TlsFault | None = None, words: bytes = b""
) -> ProbedConnection:
    return ProbedConnection(level, Transcript(), tls, fault, b"451 " + words if words else b"", words)


@pytest.mark.parametrize(
    ("first", "level"),
    [
        (connection(VERIFY, TLS), None),
        (connection(VERIFY, None, TlsFault.UNTRUSTED, b"x"), ENCRYPT),
        (connection(VERIFY, TLS, TlsFault.WRONG_NAME, b"x"), None),
        (connection(VERIFY, None, TlsFault.NOT_OFFERED, b"x"), None),
        (connection(ENCRYPT, TLS), VERIFY),
        (connection(ENCRYPT, TLS, None, b"refused under TLS"), None),
        (connection(ENCRYPT, None, TlsFault.HANDSHAKE, b"x"), None),
        (connection(OPPORTUNISTIC, TLS), VERIFY),
        (connection(OPPORTUNISTIC), None),
        (connection(OPPORTUNISTIC, None, TlsFault.HANDSHAKE, b"x"), NONE),
        (connection(OPPORTUNISTIC, None, TlsFault.INJECTED, b"x"), None),
        (connection(OPPORTUNISTIC, None, None, b"no connection"), None),
        (connection(NONE), None),
    ],
)
def test_a_second_connection_is_made_where_something_is_open(first: ProbedConnection, level: TlsLevel | None) -> None:
    assert next_level(first) is level


@pytest.mark.parametrize(
    ("connections", "reached", "trouble", "not_higher"),
    [
        ([connection(VERIFY, TLS)], VERIFY, b"", b""),
        ([connection(OPPORTUNISTIC, TLS), connection(VERIFY, TLS)], VERIFY, b"", b""),
        ([connection(ENCRYPT, TLS), connection(VERIFY, None, TlsFault.UNTRUSTED, b"why")], ENCRYPT, b"", b"why"),
        ([connection(ENCRYPT, TLS), connection(VERIFY, None, None, b"too many")], ENCRYPT, b"", b"too many"),
        ([connection(VERIFY, None, TlsFault.UNTRUSTED, b"why"), connection(ENCRYPT, TLS)], ENCRYPT, b"451 why", b"why"),
        (
            [connection(VERIFY, None, TlsFault.UNTRUSTED, b"why"), connection(ENCRYPT, None, None, b"gone")],
            *(NONE, b"451 why", b"why"),
        ),
        ([connection(VERIFY, TLS, TlsFault.WRONG_NAME, b"why")], ENCRYPT, b"451 why", b"why"),
        (
            [connection(ENCRYPT, TLS, TlsFault.HANDSHAKE, b"our certificate")],
            NONE,
            b"451 our certificate",
            b"our certificate",
        ),
        ([connection(ENCRYPT, None, TlsFault.NOT_OFFERED, b"why")], NONE, b"451 why", b"why"),
        ([connection(OPPORTUNISTIC, None, TlsFault.HANDSHAKE, b"why"), connection(NONE)], NONE, b"", b"why"),
        (
            [connection(OPPORTUNISTIC, None, TlsFault.HANDSHAKE, b"why"), connection(NONE, None, None, b"gone")],
            *(NONE, b"451 gone", b"why"),
        ),
        ([connection(OPPORTUNISTIC)], NONE, b"", b"TLS was not offered"),
        ([connection(OPPORTUNISTIC, None, None, b"no connection")], None, b"451 no connection", b"no connection"),
        ([connection(NONE)], NONE, b"", b"TLS is not used"),
        ([connection(VERIFY, TLS, None, b"busy")], VERIFY, b"451 busy", b""),
    ],
)
def test_what_follows_from_the_connections(
    connections: Sequence[ProbedConnection], reached: TlsLevel | None, trouble: bytes, not_higher: bytes
) -> None:
    report = assess(HOST, connections)
    assert (report.reached, report.trouble, report.not_higher) == (reached, trouble, not_higher)
