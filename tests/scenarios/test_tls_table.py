"""The table of TLS over real sockets: each row at each level, at two hosts each, outcome and text."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from mailismus.config.values.tls import TlsLevel, TlsSettings, TrustStore
from tests.fakes.certificates import Made, make_certificate
from tests.fakes.tls_sink import Flaw, TlsSinkFactory
from tests.scenarios.deliver_server import DeliverServer
from tests.scenarios.tls_hosts import fields_of, listen, route

ISSUER, OTHER_ISSUER = make_certificate("Test issuer"), make_certificate("Another issuer")
GOOD = make_certificate("mail.d.example", by=ISSUER)
SELF_SIGNED = make_certificate("mail.d.example")
UNKNOWN = make_certificate("mail.d.example", by=OTHER_ISSUER)
EXPIRED = make_certificate("mail.d.example", days=-1, by=ISSUER)
WRONG_NAME = make_certificate("mail.other.example", by=ISSUER)
ISSUERS = TrustStore("issuers.pem", 0.0, ISSUER.pem)
WHO = "<tls> in line 42"

OPPORTUNISTIC, ENCRYPT, VERIFY = TlsLevel.OPPORTUNISTIC, TlsLevel.ENCRYPT, TlsLevel.VERIFY
PLAIN, OVER_TLS = "plain", "TLS"


@attrs.frozen
class Row:
    """What a host does, and what becomes of the mail at opportunistic, encrypt and verify: `PLAIN`, `OVER_TLS`, or a reply
    in which HOST is the host as it is logged. `fallbacks`: connections at opportunistic that were given up for one without
    TLS."""

    name: str
    opportunistic: str
    encrypt: str
    verify: str
    flaw: Flaw = Flaw.NONE
    chain: tuple[Made, ...] = (GOOD,)
    fallbacks: int = 0

    def outcome(self, level: TlsLevel) -> str:
        return {OPPORTUNISTIC: self.opportunistic, ENCRYPT: self.encrypt, VERIFY: self.verify}[level]


_NOT_OFFERED = "451 4.7.4 TLS is required, but was not offered by host HOST"
_REFUSED = "451 4.7.4 TLS is required, but host HOST refused to start TLS: "
_FAILED = "451 4.7.5 Cannot start TLS with host HOST: "
_UNTRUSTED = "451 4.7.5 Server certificate not trusted: "
_UNVERIFIED = "451 4.7.5 Server certificate not verified: "
_INJECTED = "451 4.7.0 Host HOST sent bytes behind its reply to STARTTLS; nothing of them is used"

ROWS = (
    Row("all is well", OVER_TLS, OVER_TLS, OVER_TLS),
    Row("offers no STARTTLS", PLAIN, _NOT_OFFERED, _NOT_OFFERED, Flaw.NOT_OFFERED),
    Row(
        "refuses it",
        PLAIN,
        _REFUSED + "454 4.7.0 TLS not available",
        _REFUSED + "454 4.7.0 TLS not available",
        Flaw.REFUSES,
    ),
    Row(
        "ends the session",
        PLAIN,
        _REFUSED + "421 4.7.0 not today",
        _REFUSED + "421 4.7.0 not today",
        Flaw.GOODBYE,
        fallbacks=1,
    ),
    Row("hangs up", PLAIN, _FAILED + "connection lost", _FAILED + "connection lost", Flaw.HANGS_UP, fallbacks=1),
    Row("hangs", PLAIN, _FAILED + "timed out", _FAILED + "timed out", Flaw.MUTE, fallbacks=1),
    Row("speaks no TLS", PLAIN, _FAILED + "WHY", _FAILED + "WHY", Flaw.GARBAGE, fallbacks=1),
    Row("only TLS 1.1", PLAIN, _FAILED + "WHY", _FAILED + "WHY", Flaw.OLD, fallbacks=1),
    Row("self-signed", OVER_TLS, OVER_TLS, _UNTRUSTED + "self-signed certificate", chain=(SELF_SIGNED,)),
    Row(
        "unknown issuer",
        OVER_TLS,
        OVER_TLS,
        _UNTRUSTED + "unknown issuer (cafile names those that are trusted)",
        chain=(UNKNOWN,),
    ),
    Row(
        "unknown issuer, shown",
        OVER_TLS,
        OVER_TLS,
        _UNTRUSTED + "self-signed certificate in the chain",
        chain=(UNKNOWN, OTHER_ISSUER),
    ),
    Row("expired", OVER_TLS, OVER_TLS, _UNTRUSTED + "certificate has expired", chain=(EXPIRED,)),
    Row("wrong name", OVER_TLS, OVER_TLS, _UNVERIFIED + "is for mail.other.example, not d.example", chain=(WRONG_NAME,)),
    Row("a reply behind its 220", _INJECTED, _INJECTED, _INJECTED, Flaw.INJECTS),
    Row("a reply in a packet of its own", _INJECTED, _INJECTED, _INJECTED, Flaw.INJECTS_APART),
    Row("a part of one", _INJECTED, _INJECTED, _INJECTED, Flaw.HALF),
)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[DeliverServer]:
    server = DeliverServer(tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize("level", [OPPORTUNISTIC, ENCRYPT, VERIFY], ids=lambda level: str(level.value))
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_each_row_at_each_level(server: DeliverServer, row: Row, level: TlsLevel) -> None:
    sinks = [TlsSinkFactory(row.chain, server.reactor, row.flaw) for _ in range(2)]
    port = listen(server, *sinks)
    route(server, 2, "d.example")
    settings: dict[str, Any] = {"mxport": port, "timeout_connect_s": 0.4, "tls": TlsSettings(level, WHO, trust=ISSUERS)}
    server.deliver_to(**{f"client_{name}": value for name, value in settings.items()})
    server.put(b"r@d.example")
    server.run_until(server.statuses)
    (line,) = server.statuses()
    fields, expected = fields_of(line), row.outcome(level)
    counters = server.task.counters
    if expected in (PLAIN, OVER_TLS):
        is_tls = expected == OVER_TLS
        assert fields["status"] == "sent"
        assert fields.get("tls") == (level.value if is_tls else None)
        assert [sink.mail_over_tls for sink in sinks] == [[is_tls], []]
        assert [len(sink.connections) for sink in sinks] == [1 + (0 if is_tls else row.fallbacks), 0]
        assert counters.tls_sessions == ({(level.value, "full"): 1} if is_tls else {})
        assert sum(counters.tls_failures.values()) == (0 if is_tls else row.fallbacks)
        return
    host = f"mx2.d.example[127.0.0.2]:{port}"
    wanted = f"{expected.replace('HOST', host)}, demanded by {WHO}"
    if "WHY" in wanted:
        head, _, tail = wanted.partition("WHY")
        assert fields["reply"].startswith(head)
        assert fields["reply"].endswith(tail)
        assert len(fields["reply"]) > len(head + tail)
    else:
        assert fields["reply"] == wanted
    assert (fields["status"], fields["relay"], fields["tls"]) == ("deferred", host, "!" + level.value)
    assert [sink.mail_over_tls for sink in sinks] == [[], []]
    assert [len(sink.connections) for sink in sinks] == [1, 1]  # the next host was tried
    assert sum(counters.tls_failures.values()) == 2
    assert not server.task.hosts.remembered  # none of them is dead for others
