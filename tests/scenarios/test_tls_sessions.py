"""TLS towards other servers over real sockets: names, profiles that share a host, resumption, reloads, and bad hosts."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from mailismus.config.values.settings import DestinationSettings, MessageStoreSettings
from mailismus.config.values.tls import ClientCertificate, TlsLevel, TlsSettings, TlsVersion, TrustStore
from mailismus.deliver.schedule.host import Connection
from tests.deliver.harness import DIRECTORY, deliver_settings, relay
from tests.fakes.certificates import Made, make_certificate
from tests.fakes.tls_sink import Flaw, TlsSinkFactory
from tests.scenarios.deliver_server import DeliverServer
from tests.scenarios.tls_hosts import fields_of, listen, route

ISSUER = make_certificate("Test issuer")
ISSUERS = TrustStore("issuers.pem", 0.0, ISSUER.pem)
OF_ONE = make_certificate("mail.one.example", by=ISSUER)
OF_RELAY = make_certificate("relay.example", by=ISSUER)
NONE = TlsSettings(TlsLevel.NONE)
OPPORTUNISTIC = TlsSettings(TlsLevel.OPPORTUNISTIC, trust=ISSUERS)
ENCRYPT = TlsSettings(TlsLevel.ENCRYPT, "<tls> in line 2", trust=ISSUERS)
VERIFY = TlsSettings(TlsLevel.VERIFY, "<tls> in line 3", trust=ISSUERS)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[DeliverServer]:
    server = DeliverServer(tmp_path)
    yield server
    server.close()


def sink(server: DeliverServer, made: Made = OF_ONE, **options: Any) -> TlsSinkFactory:
    return TlsSinkFactory((made,), server.reactor, **options)


def destination(domain: bytes, tls: TlsSettings) -> DestinationSettings:
    return DestinationSettings((domain,), None, None, None, 1, tls)


def outcomes(server: DeliverServer) -> dict[str, dict[str, str]]:
    """The last log line of each recipient, in its fields."""
    return {(fields := fields_of(line))["to"].strip("<>"): fields for line in server.statuses()}


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("of_certificate", "is_secure", "wanted", "is_met"),
    [
        ("one.example", False, (), True),  # the recipient's domain
        ("mail.one.example", False, (), True),  # a host below it
        ("*.one.example", False, (), True),
        ("mx.provider.example", True, (), True),  # the MX name, by a secure answer
        ("mx.provider.example", False, (), False),
        ("*.provider.example", True, (), True),
        ("notone.example", True, (), False),
        ("mx.provider.example", False, ("mx.provider.example",), True),  # what is written counts
        ("other.example", False, ("mx.provider.example", "other.example"), True),
        ("one.example", True, ("mx.provider.example",), False),  # and nothing else
    ],
)
def test_which_names_count_of_an_mx_host(
    server: DeliverServer, of_certificate: str, is_secure: bool, wanted: tuple[str, ...], is_met: bool
) -> None:
    host = sink(server, make_certificate(of_certificate, by=ISSUER))
    port = listen(server, host)
    route(server, 1, "one.example", name="mx.provider.example", is_secure=is_secure)
    server.deliver_to(client_mxport=port, client_tls=attrs.evolve(VERIFY, names=wanted))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    assert fields["status"] == ("sent" if is_met else "deferred")
    assert host.contexts.server_names == [wanted[0].encode() if wanted else b"mx.provider.example"]
    if not is_met:
        names = ", ".join(wanted) or ("one.example, mx.provider.example" if is_secure else "one.example")
        assert f"not verified: is for {of_certificate}, not {names}, demanded by" in fields["reply"]


@pytest.mark.parametrize("made", [OF_RELAY, OF_ONE], ids=["right", "wrong"])
@pytest.mark.parametrize("is_immediate", [False, True], ids=["STARTTLS", "TLS from the start"])
def test_a_relay_is_known_by_its_host_name(server: DeliverServer, made: Made, is_immediate: bool) -> None:
    host = sink(server, made, is_immediate=is_immediate)
    port = listen(server, host)
    route(server, 0)
    rule = attrs.evolve(relay("relay.example", port), tls=attrs.evolve(VERIFY, is_immediate=is_immediate))
    server.deliver_by(deliver_settings(rule))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    if made is OF_RELAY:
        assert (fields["status"], fields["tls"]) == ("sent", "verify")
    else:
        assert fields["reply"].endswith("is for mail.one.example, not relay.example, demanded by <tls> in line 3")
    assert host.contexts.server_names == [b"relay.example"]
    assert (b"STARTTLS" in host.connections[0].commands) is not is_immediate


@pytest.mark.parametrize("is_prompt", [False, True])
def test_a_relay_that_speaks_first_where_tls_should_is_no_forger(
    server: DeliverServer, monkeypatch: pytest.MonkeyPatch, is_prompt: bool
) -> None:
    if is_prompt:  # its greeting is there before TLS begins
        monkeypatch.setattr("mailismus.deliver.sessions.host_session.has_plain_bytes", lambda _: True)
    port = listen(server, sink(server))
    server.deliver_by(deliver_settings(attrs.evolve(relay("127.0.0.1", port), tls=attrs.evolve(ENCRYPT, is_immediate=True))))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    reply = outcomes(server)["r@one.example"]["reply"]
    words = 'it greets in plain text, as hosts with STARTTLS do (latent="Y")'
    assert reply.startswith(f"451 4.7.5 Cannot start TLS with host 127.0.0.1[127.0.0.1]:{port}: {words}, demanded by ")


def test_an_address_is_sent_as_no_name(server: DeliverServer) -> None:
    host = sink(server)
    port = listen(server, host)
    server.deliver_by(deliver_settings(attrs.evolve(relay("127.0.0.1", port), tls=ENCRYPT)))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    assert outcomes(server)["r@one.example"]["tls"] == "encrypt"
    assert host.contexts.server_names == [None]


@pytest.mark.parametrize("is_known", [True, False])
def test_without_issuers_of_its_own_it_trusts_the_systems(
    server: DeliverServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    if is_known:
        (tmp_path / "system.pem").write_bytes(ISSUER.pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))  # where OpenSSL looks for the system's
    port = listen(server, sink(server))
    route(server, 1, "one.example")
    server.deliver_to(client_mxport=port, client_tls=attrs.evolve(VERIFY, trust=None))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    assert fields["status"] == ("sent" if is_known else "deferred")
    if not is_known:
        assert fields["reply"].startswith("451 4.7.5 Server certificate not trusted: unknown issuer")


# ---------------------------------------------------------------------- profiles


def test_a_wrong_name_for_one_domain_holds_up_no_other_at_the_same_host(server: DeliverServer) -> None:
    host = sink(server, OF_ONE)
    port = listen(server, host)
    route(server, 1, "one.example", "strict.example", name="mx.provider.example")
    server.deliver_to(client_mxport=port, client_tls=OPPORTUNISTIC, destinations=(destination(b"strict.example", VERIFY),))
    for number in range(20):
        server.put(b"r%d@strict.example" % number, b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 40)
    found = outcomes(server)
    for number in range(20):
        assert found[f"r{number}@one.example"]["status"] == "sent"
        strict = found[f"r{number}@strict.example"]
        assert (strict["status"], strict["tls"]) == ("deferred", "!verify")
        assert strict["reply"].endswith("is for mail.one.example, not strict.example, demanded by <tls> in line 3")
    assert not server.task.hosts.remembered
    assert all(host.mail_over_tls)


def test_each_level_has_connections_of_its_own(server: DeliverServer) -> None:
    host = sink(server)
    port = listen(server, host)
    domains = [b"one.example", b"two.example", b"three.example", b"four.example"]
    route(server, 1, *(domain.decode() for domain in domains), name="mx.provider.example")
    levels = [VERIFY, ENCRYPT, OPPORTUNISTIC, NONE]
    rules = tuple(destination(domain, tls) for domain, tls in zip(domains, levels, strict=True))
    server.deliver_to(client_mxport=port, destinations=rules)
    server.put(*(b"r@" + domain for domain in domains))
    server.run_until(lambda: len(server.statuses()) == 4)
    assert [outcomes(server)["r@" + domain.decode()].get("tls") for domain in domains] == [
        *("verify", "encrypt", "opportunistic", None)
    ]
    assert len(host.connections) == 4


# ---------------------------------------------------------------------- resumption


@pytest.mark.parametrize("tls", [OPPORTUNISTIC, VERIFY], ids=["opportunistic", "verify"])
@pytest.mark.parametrize("is_1_2", [False, True], ids=["TLS 1.3", "TLS 1.2"])
def test_one_full_handshake_in_fifty_connections(server: DeliverServer, tls: TlsSettings, is_1_2: bool) -> None:
    host = sink(server)
    if is_1_2:
        host.contexts.context.set_max_proto_version(0x0303)
    port = listen(server, host)
    route(server, 1, "one.example")
    server.deliver_to(client_mxport=port, client_tls=tls, maxmessages=1, maxserverconnections=1)
    for number in range(50):
        server.put(b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 50)
    level = tls.level.value
    assert server.task.counters.tls_sessions == {(level, "full"): 1, (level, "resumed"): 49}
    assert len(host.connections) == 50


@pytest.mark.parametrize("level", [TlsLevel.OPPORTUNISTIC, TlsLevel.ENCRYPT, TlsLevel.VERIFY])
@pytest.mark.parametrize("is_1_2", [False, True], ids=["TLS 1.3", "TLS 1.2"])
def test_a_host_with_an_older_version_than_minversion_has_no_tls(
    server: DeliverServer, level: TlsLevel, is_1_2: bool
) -> None:
    host = sink(server)
    if is_1_2:
        host.contexts.context.set_max_proto_version(0x0303)
    port = listen(server, host)
    route(server, 1, "one.example")
    tls = TlsSettings(level, "<tls> in line 3", trust=ISSUERS, minversion=TlsVersion.TLS_1_3)
    server.deliver_to(client_mxport=port, client_tls=tls)
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    if not is_1_2:
        assert (fields["status"], fields["tls"]) == ("sent", level.value)
    elif level is TlsLevel.OPPORTUNISTIC:
        assert (fields["status"], fields.get("tls"), host.mail_over_tls) == ("sent", None, [False])
    else:
        assert (fields["status"], fields["tls"], host.mail_over_tls) == ("deferred", f"!{level.value}", [])
        assert fields["reply"].startswith("451 4.7.5 Cannot start TLS with host mx1.one.example[127.0.0.1]")


def test_a_session_with_a_long_chain_is_not_kept(server: DeliverServer) -> None:
    """A thousand of the longest chains would take a gigabyte."""
    others = [make_certificate(f"{number}.one.example") for number in range(50)]
    host = TlsSinkFactory((OF_ONE, *others), server.reactor)
    port = listen(server, host)
    route(server, 1, "one.example")
    server.deliver_to(client_mxport=port, client_tls=OPPORTUNISTIC, maxmessages=1, maxserverconnections=1)
    for number in range(3):
        server.put(b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 3)
    assert server.task.counters.tls_sessions == {("opportunistic", "full"): 3}


def test_a_session_is_not_resumed_for_another_profile(server: DeliverServer) -> None:
    host = sink(server)
    port = listen(server, host)
    route(server, 1, "one.example", "two.example", name="mx.provider.example")
    rules = (destination(b"one.example", VERIFY), destination(b"two.example", VERIFY))
    server.deliver_to(client_mxport=port, client_tls=VERIFY, destinations=rules, maxmessages=1, maxserverconnections=1)
    for number in range(3):
        server.put(b"r%d@one.example" % number, b"r%d@two.example" % number)
    server.run_until(lambda: len(server.statuses()) == 6)
    assert server.task.counters.tls_sessions == {("verify", "full"): 1, ("verify", "resumed"): 2}
    assert server.task.counters.tls_failures == {("verify", "wrong name"): 1}


# ---------------------------------------------------------------------- certificates of ours


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_host_that_asks_for_a_certificate_gets_ours(server: DeliverServer, is_shown: bool) -> None:
    host = sink(server, client_issuer=ISSUER)
    port = listen(server, host)
    route(server, 1, "one.example")
    own = make_certificate("mx.example", by=ISSUER)
    shown = ClientCertificate("c.pem", "k.pem", 0.0, 0.0, own.pem, own.key_pem)
    server.deliver_to(client_mxport=port, client_tls=attrs.evolve(ENCRYPT, certificate=shown if is_shown else None))
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    if is_shown:
        assert fields["status"] == "sent"
    else:
        assert fields["reply"].startswith("451 4.7.5 Cannot start TLS with host mx1.one.example[127.0.0.1]")
        assert fields["tls"] == "!encrypt"
        assert not server.task.hosts.remembered


# ---------------------------------------------------------------------- falling back


def test_a_host_whose_tls_failed_is_not_asked_for_it_again(server: DeliverServer) -> None:
    host = sink(server, flaw=Flaw.GARBAGE)
    port = listen(server, host)
    route(server, 1, "one.example")
    server.deliver_to(client_mxport=port, client_tls=OPPORTUNISTIC, maxmessages=1)
    for number in range(5):
        server.put(b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 5)
    assert {fields["status"] for fields in outcomes(server).values()} == {"sent"}
    starts = [connection.commands.count(b"STARTTLS") for connection in host.connections]
    assert starts[0] == 1
    assert sum(starts) == len(starts) - 5  # only those that were being made when it failed
    assert host.mail_over_tls == [False] * 5


# ---------------------------------------------------------------------- reload


def test_a_reload_under_load_loses_nothing_and_old_sessions_begin_nothing(server: DeliverServer) -> None:
    host = sink(server)
    port = listen(server, host)
    route(server, 1, "one.example")
    shown = [make_certificate("mx.example", by=ISSUER) for _ in range(2)]  # of one path, read again
    ours = [ClientCertificate("c.pem", "k.pem", 0.0, 0.0, one.pem, one.key_pem) for one in shown]
    steps = [
        *(OPPORTUNISTIC, *(attrs.evolve(ENCRYPT, certificate=one) for one in ours)),
        *(VERIFY, attrs.evolve(VERIFY, names=("mail.one.example",)), NONE),
    ]
    settings = [deliver_settings(client_mxport=port, client_tls=tls, maxserverconnections=4) for tls in steps]
    server.deliver_by(settings[0])
    for number in range(600):
        server.put(b"r%d@one.example" % number)
    begun: list[dict[Connection, int]] = []
    """At each reload, the connections that there are, and the transactions that they have begun."""

    def turn() -> bool:
        done = len(server.statuses())
        if len(begun) < len(steps) - 1 and done >= 100 * (len(begun) + 1):
            begun.append({session.connection: session.connection.begun for session in server.task.sessions.all})
            server.task.reload(settings[len(begun)], MessageStoreSettings(server.store, "Maildir"), DIRECTORY)
        return done == 600

    server.run_until(turn)
    found = outcomes(server)
    assert len(found) == 600
    assert {fields["status"] for fields in found.values()} == {"sent"}
    assert sorted(host.acknowledged()) == sorted(b"r%d@one.example" % number for number in range(600))  # none twice
    assert all(connection.begun == before for at in begun for connection, before in at.items())
    assert all(begun)
    levels = list(dict.fromkeys(fields_of(line).get("tls") for line in server.statuses()))
    assert levels == ["opportunistic", "encrypt", "verify", None]


# ---------------------------------------------------------------------- bad hosts


def test_a_host_that_asks_for_tls_for_ever_costs_a_bounded_time(server: DeliverServer) -> None:
    hosts = [sink(server, flaw=Flaw.MUTE), sink(server)]
    port = listen(server, *hosts)
    route(server, 2, "one.example")
    server.deliver_to(client_mxport=port, client_tls=VERIFY, client_timeout_connect_s=0.2)
    for number in range(10):
        server.put(b"r%d@one.example" % number)
    server.run_until(lambda: len(server.statuses()) == 10)
    assert {fields["status"] for fields in outcomes(server).values()} == {"sent"}
    assert hosts[0].mail_over_tls == []


def test_a_chain_without_an_end_is_refused(server: DeliverServer) -> None:
    long = [make_certificate(f"{'x' * 40}{number}.one.example", by=ISSUER) for number in range(300)]
    host = TlsSinkFactory((OF_ONE, *long), server.reactor)
    port = listen(server, host)
    route(server, 1, "one.example")
    server.deliver_to(client_mxport=port, client_tls=ENCRYPT)
    server.put(b"r@one.example")
    server.run_until(server.statuses)
    fields = outcomes(server)["r@one.example"]
    assert fields["status"] == "deferred"
    assert "451 4.7.5 Cannot start TLS with host mx1.one.example[127.0.0.1]" in fields["reply"]
