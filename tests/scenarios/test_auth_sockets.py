"""Authentication towards relays over real sockets: every row of the table in the page about relays, with two hosts each.

The relay `relay.example` has two addresses, 127.0.0.1 and 127.0.0.2, with a server of its own each; the first one is tried
first.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.config.values.auth import PASSWORD_TYPES, AuthSettings, SecretSource
from mailismus.config.values.settings import MessageStoreSettings, RelaySettings
from mailismus.config.values.tls import TlsLevel, TlsSettings, TrustStore
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.schedule.destdb import Deaths
from mailismus.deliver.task import DeliverTask
from mailismus.queue.interface import Filter
from tests.deliver.harness import Names, deliver_settings
from tests.fakes.auth_server import AuthConnection, AuthServer
from tests.fakes.certificates import Made, make_certificate
from tests.scenarios.deliver_server import DeliverServer

PASSWORD, TOKEN = b"s3cret-pass-phrase", b"ya29.s3cret-t0ken"
HOSTS = ("127.0.0.1", "127.0.0.2")


@pytest.fixture(scope="module")
def made() -> Made:
    return make_certificate("relay.example")


class Relay:
    """The relay, its two servers, its credentials, and a delivering task on a reactor."""

    def __init__(self, directory: Path, made: Made, **kind: Any) -> None:
        self.made = made
        first = AuthServer(made, host=HOSTS[0], **kind)
        self.servers = [first, AuthServer(made, host=HOSTS[1], port=first.port, **kind)]
        self.port = first.port
        self.server = DeliverServer(directory)
        self.password, self.token = directory / "relay.secret", directory / "relay.token"
        for path, data in ((self.password, PASSWORD), (self.token, TOKEN)):
            self.write(path, data)
        names = Names()
        names.hosts["relay.example"] = HOSTS
        self.names = names

    def write(self, path: Path, data: bytes) -> None:
        """Write a secret as a program does that renews it."""
        new = path.with_suffix(".new")
        new.write_bytes(data + b"\n")
        new.chmod(0o600)
        new.rename(path)

    def settings(self, *types: str, level: TlsLevel = TlsLevel.VERIFY, user: str = "joe") -> RelaySettings:
        trust = TrustStore("issuers.pem", 0.0, self.made.pem) if level is TlsLevel.VERIFY else None
        is_immediate = self.servers[0].is_immediate
        tls = TlsSettings(level, demanded_by="<auth> in line 7", trust=trust, is_immediate=is_immediate)
        sources = [SecretSource(str(path), b"") for path in (self.password, self.token)]
        auth = AuthSettings(types, user, *sources)
        return RelaySettings("relay.example", "relay.example", self.port, (), (), None, 6, tls=tls, auth=auth)

    def start(
        self, *types: str, level: TlsLevel = TlsLevel.VERIFY, more: tuple[RelaySettings, ...] = (), **kind: Any
    ) -> None:
        """Begin to deliver."""
        server = self.server
        server.world.pick = lambda hosts: min(hosts, key=lambda host: getattr(host, "address", ""))
        server.task = DeliverTask(
            deliver_settings(self.settings(*types, level=level), *more, **kind),
            MessageStoreSettings(server.store, "Maildir"),
            server.directory,
            b"mx.example",
            server.queue,
            server.maillog,
            server.world,
            Locator(self.names, self.names),
            Deaths(),
        )
        server.reactor.callWhenRunning(server.task.start)

    def deliver(self, count: int = 1) -> list[str]:
        """Deliver so many messages; what the log says behind `dsn=` of each, in order."""
        for number in range(count):
            self.server.put(b"r%d@b.example" % number)
        self.server.run_until(lambda: len(self.server.statuses()) >= count)
        lines = [line.decode() for line in self.server.statuses()]
        assert not [line for line in self.server.maillog.lines if PASSWORD in line or TOKEN in line]
        return [line.partition("status=")[2] for line in lines]

    @property
    def exchanges(self) -> list[list[str]]:
        """The mechanisms of the AUTH commands at each server."""
        return [server.exchanges for server in self.servers]

    @property
    def taken(self) -> list[int]:
        """The messages that each server took."""
        return [len(server.messages) for server in self.servers]

    def close(self) -> None:
        for server in self.servers:
            server.close()
        self.server.close()


@pytest.fixture
def make_relay(tmp_path: Path, made: Made) -> Iterator[Any]:
    relays: list[Relay] = []

    def make(**kind: Any) -> Relay:
        relays.append(Relay(tmp_path, made, **kind))
        return relays[-1]

    yield make
    for relay in relays:
        relay.close()


# ---------------------------------------------------------------------- it works


@pytest.mark.parametrize("is_tls_1_2", [False, True])
@pytest.mark.parametrize("name", ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2"])
def test_each_mechanism_is_accepted(make_relay: Any, name: str, is_tls_1_2: bool) -> None:
    relay = make_relay(is_tls_1_2=is_tls_1_2)
    relay.start(name)
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    (line,) = relay.server.statuses()
    assert f", tls=verify, sasl={name}/joe, dsn=2.0.0, ".encode() in line
    assert relay.exchanges == [[name], []]
    (connection,) = relay.servers[0].connections
    assert [line.split(b" ")[0] for line in connection.commands[:2]] == [b"EHLO", b"STARTTLS"]
    assert connection.commands[-1] == b"QUIT"
    assert not [line for line in connection.commands if line.startswith(b"MAIL") and b"AUTH=" in line]


def test_a_connection_with_many_messages_is_authenticated_once(make_relay: Any) -> None:
    relay = make_relay()
    relay.start(*PASSWORD_TYPES, maxserverconnections=1)
    assert relay.deliver(20) == ["sent (250 2.0.0 taken)"] * 20
    connections = [connection for server in relay.servers for connection in server.connections]
    assert [connection.exchanges for connection in connections] == [["SCRAM-SHA-256-PLUS"]] * len(connections)
    assert len(connections) <= 2


@pytest.mark.parametrize("is_tls_1_2", [False, True])
def test_each_connection_is_bound_anew_though_its_tls_is_resumed(make_relay: Any, is_tls_1_2: bool) -> None:
    relay = make_relay(is_tls_1_2=is_tls_1_2)
    relay.start("SCRAM-SHA-256-PLUS", maxserverconnections=1, maxmessages=1)
    assert relay.deliver(6) == ["sent (250 2.0.0 taken)"] * 6
    connections = [connection for server in relay.servers for connection in server.connections]
    assert [connection.exchanges for connection in connections] == [["SCRAM-SHA-256-PLUS"]] * 6
    assert len({connection.binding for connection in connections}) == (1 if is_tls_1_2 else 6)
    resumed = relay.server.task.counters.tls_sessions
    assert sum(count for (_, handshake), count in resumed.items() if handshake == "resumed") > 0


def test_tls_may_come_first(make_relay: Any) -> None:
    relay = make_relay(is_immediate=True)
    relay.start("SCRAM-SHA-256-PLUS")
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    assert relay.exchanges == [["SCRAM-SHA-256-PLUS"], []]


@pytest.mark.parametrize(
    ("types", "offers", "used"),
    [
        (("PLAIN", "SCRAM-SHA-256"), b"SCRAM-SHA-256 PLAIN", "PLAIN"),
        (("SCRAM-SHA-256", "PLAIN"), b"PLAIN SCRAM-SHA-256", "SCRAM-SHA-256"),
        (PASSWORD_TYPES, b"LOGIN PLAIN", "PLAIN"),
        (PASSWORD_TYPES, b"login", "LOGIN"),
    ],
)
def test_the_first_written_mechanism_that_is_offered_under_tls_is_used(
    make_relay: Any, types: tuple[str, ...], offers: bytes, used: str
) -> None:
    relay = make_relay(offers=offers, offers_plain=b"CRAM-MD5 PLAIN LOGIN SCRAM-SHA-256")
    relay.start(*types)
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    assert relay.exchanges == [[used], []]


def test_encrypt_is_enough_where_it_is_demanded(make_relay: Any) -> None:
    relay = make_relay()
    relay.start("PLAIN", level=TlsLevel.ENCRYPT)
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]


# ---------------------------------------------------------------------- the table


@attrs.frozen
class Row:
    """What the servers do, and what becomes of two messages: the text, and how often each server was asked."""

    answers: dict[str, Any]
    text: str
    exchanges: list[list[str]]
    offers: bytes | None = b"SCRAM-SHA-256 PLAIN"
    forges: bool = False
    types: tuple[str, ...] = ("SCRAM-SHA-256",)


REFUSAL = "451 4.7.8 authentication as joe failed: 535 5.7.8 no"
ROWS = {
    "no AUTH": Row(
        {}, "451 4.7.4 host {host2} offers no authentication that is configured (offers none)", [[], []], offers=None
    ),
    "none of ours": Row(
        {},
        "451 4.7.4 host {host2} offers no authentication that is configured (offers GSSAPI NTLM)",
        [[], []],
        b"GSSAPI NTLM",
    ),
    "535": Row({"*": b"535 5.7.8 no"}, REFUSAL, [["SCRAM-SHA-256"], []]),
    "504": Row(
        {"*": b"504 5.5.4 what"},
        "451 4.7.8 authentication as joe failed: 504 5.5.4 what",
        [["SCRAM-SHA-256"], []],
        types=("SCRAM-SHA-256", "PLAIN"),
    ),
    "454": Row(
        {"*": b"454 4.7.0 later"},
        "451 4.7.0 authentication as joe failed: 454 4.7.0 later",
        [["SCRAM-SHA-256"], ["SCRAM-SHA-256"]],
    ),
    "a forged end": Row(
        {},
        "451 4.7.8 host {host2} did not prove that it knows the password",
        [["SCRAM-SHA-256"], ["SCRAM-SHA-256"]],
        forges=True,
    ),
    "no end": Row(
        {"*": b"235 welcome"},
        "451 4.7.8 host {host2} did not prove that it knows the password",
        [["SCRAM-SHA-256"], ["SCRAM-SHA-256"]],
    ),
    "no sense": Row(
        {"*": b"334 ???"},
        "451 4.7.0 authentication as joe failed: host {host2} broke the rules: its challenge is no base64",
        [["SCRAM-SHA-256"], ["SCRAM-SHA-256"]],
    ),
    "an echo": Row(
        {"*": b"535 5.7.8 no, " + PASSWORD + b" is wrong"},
        "451 4.7.8 authentication as joe failed: 535 5.7.8 no, [removed] is wrong",
        [["PLAIN"], []],
        types=("PLAIN",),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_both_hosts_do_wrong_defers_the_mail_with_its_text(make_relay: Any, name: str) -> None:
    row = ROWS[name]
    relay = make_relay(offers=row.offers)
    for server in relay.servers:
        server.answers, server.forges = row.answers, row.forges
    relay.start(*row.types, maxserverconnections=1)
    text = row.text.format(host2=f"relay.example[127.0.0.2]:{relay.port}")
    assert relay.deliver(2) == [f"deferred ({text})"] * 2
    assert relay.exchanges == row.exchanges
    assert relay.taken == [0, 0]


@pytest.mark.parametrize("name", ["no AUTH", "none of ours", "454", "a forged end", "no end", "no sense"])
def test_the_next_host_takes_what_the_first_one_fails_to(make_relay: Any, name: str) -> None:
    row = ROWS[name]
    relay = make_relay()
    relay.servers[0].offers, relay.servers[0].answers, relay.servers[0].forges = row.offers, row.answers, row.forges
    relay.start(*row.types)
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    assert relay.taken == [0, 1]


@pytest.mark.parametrize("name", ["535", "504", "an echo"])
def test_after_a_refusal_no_other_host_is_asked(make_relay: Any, name: str) -> None:
    row = ROWS[name]
    relay = make_relay()
    relay.servers[0].answers = row.answers
    relay.start(*row.types, maxserverconnections=1)
    assert relay.deliver(3) == [f"deferred ({row.text})"] * 3
    assert relay.exchanges == row.exchanges
    assert relay.taken == [0, 0]
    assert relay.servers[1].connections == []


def test_a_new_password_ends_the_wait_of_its_mail(make_relay: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.deliver.authentication.renewal.LOOK_S", 0.05)
    relay = make_relay()
    relay.write(relay.password, b"a-wrong-password")
    relay.start("PLAIN")
    server = relay.server
    steps: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (server.statuses, lambda: relay.write(relay.password, PASSWORD)),
        (lambda: not server.task.sessions.schedule.destdb.missed.has_refused, lambda: server.put(b"later@b.example")),
        (lambda: len(server.statuses()) > 1, lambda: None),
    ]

    def go_on() -> bool:
        if steps[0][0]():
            steps.pop(0)[1]()
        return not steps

    server.put(b"r@b.example")
    server.run_until(go_on)
    first, later = [line.decode().partition("status=")[2] for line in server.statuses()]
    assert first == "deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 wrong credentials)"
    assert later == "sent (250 2.0.0 taken)"


def test_a_token_that_was_renewed_is_used_at_once(make_relay: Any) -> None:
    relay = make_relay()

    def renew(connection: AuthConnection) -> bytes:
        connection.server.answers.clear()
        relay.write(relay.token, TOKEN)
        return b"535 5.7.8 expired"

    relay.write(relay.token, b"an-old-token")
    relay.servers[0].answers["XOAUTH2"] = renew
    relay.start("XOAUTH2")
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    assert relay.exchanges == [["XOAUTH2", "XOAUTH2"], []]


def test_a_token_that_is_renewed_again_and_again_is_tried_once_more(make_relay: Any) -> None:
    relay = make_relay()

    def renew(connection: AuthConnection) -> bytes:
        relay.write(relay.token, b"another-bad-token")
        return b"535 5.7.8 expired"

    relay.servers[0].answers["XOAUTH2"] = renew
    relay.start("XOAUTH2")
    assert relay.deliver() == ["deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 expired)"]
    assert relay.exchanges == [["XOAUTH2", "XOAUTH2"], []]


def test_a_refused_token_that_was_not_renewed_waits(make_relay: Any) -> None:
    relay = make_relay()
    relay.write(relay.token, b"an-old-token")
    relay.start("XOAUTH2")
    assert relay.deliver() == ["deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 wrong credentials)"]
    assert relay.exchanges == [["XOAUTH2"], []]


def test_why_tells_which_mail_waits_for_the_relay_though_its_hosts_are_forgotten(make_relay: Any) -> None:
    relay = make_relay()
    relay.write(relay.password, b"wrong")
    relay.start("PLAIN")
    relay.deliver()
    server = relay.server

    def sentence() -> str:
        page = server.queue.search(Filter(), None, 9)
        (waiting,) = server.task.explanations().of(page.result.messages, is_brief=False).values()
        return str(waiting.sentence, "utf-8")

    words = rf"; mail with these credentials waits for relay\.example:{relay.port} until \d\d:\d\d:\d\d$"
    assert re.search(words, sentence())
    server.task.sessions.schedule.destinations.clear()
    assert re.search(words, sentence())


@pytest.mark.parametrize("types", [("SCRAM-SHA-256",), ("XOAUTH2",)])
def test_without_its_secret_the_mail_waits(make_relay: Any, types: tuple[str, ...]) -> None:
    relay = make_relay()
    path = relay.token if types == ("XOAUTH2",) else relay.password
    path.unlink()
    relay.start(*types)
    assert relay.deliver() == [f"deferred (451 4.3.5 {path} can't be read: No such file or directory)"]
    assert relay.exchanges == [[], []]


def test_a_secret_that_others_may_read_by_now_is_not_used(make_relay: Any) -> None:
    relay = make_relay()
    relay.password.chmod(0o644)
    relay.start("PLAIN")
    text = f"451 4.3.5 {relay.password} can't be read: others than its owner may use it (mode 0644)"
    assert relay.deliver() == [f"deferred ({text})"]


# ---------------------------------------------------------------------- where credentials never go


@pytest.mark.parametrize("level", [TlsLevel.ENCRYPT, TlsLevel.VERIFY])
def test_without_tls_nothing_is_shown(make_relay: Any, level: TlsLevel) -> None:
    relay = make_relay(has_starttls=False, offers_plain=b"PLAIN LOGIN SCRAM-SHA-256")
    relay.start("PLAIN", level=level)
    (text,) = relay.deliver()
    assert "4.7.4 TLS is required, but was not offered by host" in text
    assert relay.exchanges == [[], []]
    said = [line for server in relay.servers for connection in server.connections for line in connection.commands]
    assert {line.split(b" ")[0] for line in said} <= {b"EHLO", b"QUIT"}


def test_a_host_with_a_certificate_for_another_name_gets_nothing(tmp_path: Path, make_relay: Any) -> None:
    relay = make_relay()
    relay.made = make_certificate("other.example")
    relay.start("PLAIN")
    (text,) = relay.deliver()
    assert "4.7.5 Server certificate not" in text
    assert relay.exchanges == [[], []]


def test_mail_of_others_for_the_same_hosts_is_not_held_up(make_relay: Any) -> None:
    """Two relay rules with the same address: the credentials of one are refused, the other has none."""
    relay = make_relay(offers_plain=None)
    for server in relay.servers:
        server.answers["*"] = b"535 5.7.8 no"
    plain = TlsSettings(TlsLevel.NONE)
    other = RelaySettings("relay.example", "relay.example", relay.port, (b"c.example",), (), None, 9, tls=plain)
    relay.start("PLAIN", more=(other,))
    for server in relay.servers:
        server.offers = b"PLAIN"
    relay.server.put(b"r@b.example")
    relay.server.put(b"r@c.example")
    relay.server.run_until(lambda: len(relay.server.statuses()) == 2)
    lines = sorted(line.decode() for line in relay.server.statuses())
    by_domain = {line.partition("@")[2][:1]: line for line in [text.partition("to=<")[2] for text in lines]}
    assert "status=deferred (451 4.7.8 authentication as joe failed" in by_domain["b"]
    assert "530 5.7.0 authentication required" in by_domain["c"]  # it was asked, without credentials


def test_the_password_never_goes_without_tls(make_relay: Any) -> None:
    relay = make_relay()
    relay.start("PLAIN")
    relay.deliver(3)
    coded = base64.b64encode(b"\0joe\0" + PASSWORD)
    for connection in relay.servers[0].connections:
        before = connection.commands[: connection.commands.index(b"STARTTLS") + 1]
        assert not [line for line in before if coded in line]


@pytest.mark.parametrize("last", [b"", b"421 4.7.0 goodbye", b"451 what"])
def test_a_host_that_leaves_with_its_refusal_does_not_hide_a_renewed_token(make_relay: Any, last: bytes) -> None:
    relay = make_relay()

    def renew(connection: AuthConnection) -> bytes:
        connection.server.answers.clear()
        relay.write(relay.token, TOKEN)
        connection.say(b"535 5.7.8 expired", *([last] if last else []))
        raise ConnectionError

    relay.write(relay.token, b"an-old-token")
    relay.servers[0].answers["XOAUTH2"] = renew
    relay.start("XOAUTH2")
    assert relay.deliver() == ["sent (250 2.0.0 taken)"]
    assert relay.exchanges == [["XOAUTH2", "XOAUTH2"], []]


@pytest.mark.parametrize("last", [b"", b"421 4.7.0 goodbye"])
def test_a_host_that_leaves_with_its_refusal_stops_the_profile_too(make_relay: Any, last: bytes) -> None:
    relay = make_relay()

    def refuse(connection: AuthConnection) -> bytes:
        connection.say(b"535 5.7.8 no", *([last] if last else []))
        raise ConnectionError

    relay.servers[0].answers["PLAIN"] = refuse
    relay.start("PLAIN")
    assert relay.deliver() == ["deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 no)"]
    assert relay.exchanges == [["PLAIN"], []]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (None, "connection lost while the session was set up"),
        (b"421 4.7.0 too many failures", "421 4.7.0 too many failures"),
    ],
)
def test_a_host_that_leaves_in_the_middle_is_left_alone_by_this_profile(
    make_relay: Any, said: bytes | None, text: str
) -> None:
    relay = make_relay()

    def leave(connection: AuthConnection) -> bytes:
        if said is not None:
            return said
        raise ConnectionError

    for server in relay.servers:
        server.answers["PLAIN"] = leave
    relay.start("PLAIN")
    assert relay.deliver() == [f"deferred (451 4.7.0 authentication as joe failed: {text})"]
    assert relay.exchanges == [["PLAIN"], ["PLAIN"]]
    assert relay.server.task.hosts.remembered == 0  # for others they are alive


def test_a_wrong_password_is_tried_once_though_much_mail_waits(make_relay: Any) -> None:
    relay = make_relay()
    relay.write(relay.password, b"not-it")
    relay.start("SCRAM-SHA-256")
    said = "deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 wrong credentials)"
    assert relay.deliver(100) == [said] * 100
    assert relay.exchanges == [["SCRAM-SHA-256"], []]


@pytest.mark.parametrize("last", [b"535 5.7.8 no", b"535 5.7.8 no\r\n421 4.7.0 bye"])
def test_a_refusal_counts_though_the_file_never_says_whether_it_was_renewed(
    make_relay: Any, monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    """The password would be refused again at the end of each time-out: its file system hangs."""
    relay = make_relay()
    for server in relay.servers:
        server.answers["*"] = last
    relay.start("PLAIN", client_timeout_s=0.5)
    monkeypatch.setattr(relay.server.task.sessions.secrets, "is_changed", lambda *_: Deferred())
    assert relay.deliver() == ["deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 no)"]
    assert relay.exchanges == [["PLAIN"], []]


def test_the_log_tells_of_tls_only_where_a_connection_was(make_relay: Any) -> None:
    relay = make_relay()
    for server in relay.servers:
        server.answers["*"] = b"535 5.7.8 no"
    relay.start("PLAIN")
    relay.server.put(b"first@b.example")
    put: list[bytes] = []

    def both() -> bool:
        if relay.server.statuses() and not put:
            put.append(b"late@b.example")
            relay.server.put(put[0])
        return len(relay.server.statuses()) == 2

    relay.server.run_until(both)
    tried, held = [line.decode() for line in relay.server.statuses()]
    assert "relay=relay.example[127.0.0.1]:" in tried
    assert ", tls=verify, dsn=4.7.8, " in tried
    assert "relay=none, " in held
    assert ", dsn=4.7.8, status=deferred (451 4.7.8 authentication as joe failed" in held
    assert "tls=" not in held
