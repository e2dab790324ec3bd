"""TLS to a Postfix: its own log says what came. Skipped where none can be started (not root, not installed)."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Iterator

import attrs
import pytest

from mailismus.config.values.tls import ClientCertificate, TlsLevel, TlsSettings, TrustStore
from tests.fakes.certificates import make_certificate
from tests.scenarios.deliver_server import DeliverServer
from tests.scenarios.postfix_peer import Postfix, can_run
from tests.scenarios.tls_hosts import fields_of, route

ISSUER = make_certificate("Test issuer")
CERTIFICATES = {
    "good": make_certificate("mail.one.example", by=ISSUER),
    "self": make_certificate("mail.one.example"),
    "expired": make_certificate("mail.one.example", days=-1, by=ISSUER),
    "wrong": make_certificate("mail.other.example", by=ISSUER),
}
OWN = make_certificate("mx.example", by=ISSUER)
OPPORTUNISTIC = TlsSettings(TlsLevel.OPPORTUNISTIC, trust=TrustStore("issuers.pem", 0.0, ISSUER.pem))
VERIFY = attrs.evolve(OPPORTUNISTIC, level=TlsLevel.VERIFY, demanded_by="<tls> in line 42")

pytestmark = pytest.mark.skipif(not can_run(), reason="needs root and Postfix")


@pytest.fixture(scope="module")
def postfix() -> Iterator[Postfix]:
    place = pathlib.Path(tempfile.mkdtemp(prefix="postfix-"))
    place.chmod(0o755)
    peer = Postfix(place, ISSUER, CERTIFICATES)
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()
        shutil.rmtree(place)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[DeliverServer]:
    server = DeliverServer(tmp_path)
    route(server, 1, "one.example")
    yield server
    server.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("good", ""),
        ("self", "Server certificate not trusted: self-signed certificate"),
        ("expired", "Server certificate not trusted: certificate has expired"),
        ("wrong", "Server certificate not verified: is for mail.other.example, not one.example"),
    ],
)
@pytest.mark.parametrize("tls", [OPPORTUNISTIC, VERIFY], ids=["opportunistic", "verify"])
def test_what_its_certificate_is_worth(
    postfix: Postfix, server: DeliverServer, name: str, words: str, tls: TlsSettings
) -> None:
    server.deliver_to(client_mxport=postfix.ports[name], client_tls=tls)
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    (fields,) = map(fields_of, server.statuses())
    if words and tls is VERIFY:
        assert (fields["status"], fields["tls"]) == ("deferred", "!verify")
        assert fields["reply"] == f"451 4.7.5 {words}, demanded by <tls> in line 42"
    else:
        assert (fields["status"], fields["tls"]) == ("sent", tls.level.value)


def test_one_full_handshake_in_fifty_connections(postfix: Postfix, server: DeliverServer) -> None:
    before = len(postfix.log("good"))
    server.deliver_to(client_mxport=postfix.ports["good"], client_tls=VERIFY, maxmessages=1, maxserverconnections=1)
    for number in range(50):
        server.put(b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 50)
    assert {fields_of(line)["status"] for line in server.statuses()} == {"sent"}
    lines = [line for line in postfix.log("good")[before:] if "TLS connection established" in line or "Reusing" in line]
    assert len([line for line in lines if "established" in line]) == 50
    assert server.task.counters.tls_sessions == {("verify", "full"): 1, ("verify", "resumed"): 49}


def test_it_gets_our_certificate(postfix: Postfix, server: DeliverServer) -> None:
    own = ClientCertificate("c.pem", "k.pem", 0.0, 0.0, OWN.pem, OWN.key_pem)
    before = len(postfix.log("good"))
    server.deliver_to(client_mxport=postfix.ports["good"], client_tls=attrs.evolve(VERIFY, certificate=own))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    assert any("Trusted TLS connection established" in line for line in postfix.log("good")[before:])
    assert any("subject_CN=mx.example" in line for line in postfix.log("good")[before:])
