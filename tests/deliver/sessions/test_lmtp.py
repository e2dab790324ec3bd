"""Local mail by LMTP: each recipient by itself, a server that is away or misbehaves, reloads, reasons."""

from __future__ import annotations

import pathlib
from typing import Any

import attrs
import pytest
from twisted.logger import capturedLogs, formatEvent

from mailismus.config.values.settings import LmtpSettings, MessageStoreSettings
from tests.deliver.harness import CONTENT, DIRECTORY, Bench, deliver_settings, files_of, relay, stopped
from tests.deliver.jobs.test_smtputf8 import JOERG, put
from tests.fakes.lmtp_sink import LmtpSinkFactory
from tests.fakes.sink import Act, Script

SOCKET = LmtpSettings("/run/lmtp", 0)
STORE = LmtpSettings("192.0.2.9", 24)
USERS = tuple(b"u%d" % number for number in range(6))
WELL, FULL, GONE = b"u0@home.example", b"u1@home.example", b"u2@home.example"
OUTCOMES = {FULL: b"452 4.2.2 mailbox is full\r\n", GONE: b"550 5.1.1 no such mailbox\r\n"}
IN_DOUBT = b"status=deferred (451 4.4.2 connection lost after the final dot: the message may have been sent)"


def bench_of(server: LmtpSettings = STORE, script: Script | None = None, **changes: Any) -> tuple[Bench, LmtpSinkFactory]:
    """A bench whose local mail goes to a server, and that server, which listens."""
    bench = Bench(lmtp=server, users=(b"joe", *USERS), **changes)
    store = LmtpSinkFactory(script)
    bench.network.servers[server.host, server.port] = store
    return bench, store


def begin(bench: Bench, *recipients: bytes, content: bytes = CONTENT, seconds: float = 1.0) -> None:
    bench.put(*recipients, content=content)
    bench.task.start()
    bench.run(seconds)


@pytest.mark.parametrize(
    ("server", "label"), [(STORE, b"192.0.2.9[192.0.2.9]:24"), (SOCKET, b"localhost[/run/lmtp]")], ids=["tcp", "unix"]
)
def test_one_mailbox_full_one_unknown_and_one_well_in_one_transaction(server: LmtpSettings, label: bytes) -> None:
    bench, store = bench_of(server)
    store.outcomes = OUTCOMES
    begin(bench, FULL, WELL, GONE)
    assert len(store.received) == 1
    (message,) = store.received
    assert (message.recipients, message.content) == ([FULL, WELL, GONE], CONTENT)
    relay_field = b", relay=" + label + b", "
    assert bench.lines(b"to=<" + WELL, relay_field, b"dsn=2.0.0, status=sent (250 2.0.0 stored)")
    assert bench.lines(b"to=<" + FULL, relay_field, b"dsn=4.2.2, status=deferred (452 4.2.2 mailbox is full)")
    assert bench.lines(b"to=<" + GONE, relay_field, b"dsn=5.1.1, status=bounced (550 5.1.1 no such mailbox)")
    assert len(bench.lines()) == 3
    assert bench.task.counters.stored == 1
    store.outcomes = {}
    bench.run(14_400 * 1.2, 60.0)  # a full mailbox takes the last of the delays
    assert bench.lines(b"to=<" + FULL, b"status=sent")
    assert store.stored == [WELL, FULL]


@pytest.mark.parametrize("order", [(WELL, FULL, GONE), (FULL, GONE, WELL), (GONE, WELL, FULL)])
def test_the_order_of_the_outcomes_does_not_matter(order: tuple[bytes, ...]) -> None:
    bench, store = bench_of()
    store.outcomes = OUTCOMES
    begin(bench, *order)
    assert bench.statuses() == {"sent": 1, "deferred": 1, "bounced": 1}
    assert bench.task.held == 0


def test_one_that_is_refused_at_rcpt_has_no_reply_behind_the_dot() -> None:
    bench, store = bench_of()
    refused = {b"RCPT TO:<" + GONE + b">": b"550 5.1.1 unknown\r\n"}
    store.script["RCPT"] = lambda sink: refused.get(sink.commands[-1], b"250 2.1.5 Ok\r\n")
    store.outcomes = OUTCOMES
    begin(bench, GONE, FULL, WELL)
    assert store.received[0].recipients == [FULL, WELL]
    assert bench.statuses() == {"sent": 1, "deferred": 1, "bounced": 1}
    assert bench.lines(b"to=<" + WELL, b"status=sent")


@pytest.mark.parametrize("act", [Act.CLOSE, Act.ABORT])
@pytest.mark.parametrize("step", ["greeting", "LHLO", "MAIL", "RCPT", "DATA", "dot"])
def test_a_server_that_ends_at_any_step_loses_nothing(step: str, act: Act) -> None:
    bench, store = bench_of(script={step: act})
    begin(bench, WELL, FULL)
    assert bench.statuses() == {"deferred": 2}
    assert len(bench.lines(IN_DOUBT)) == (2 if step == "dot" else 0)
    assert bench.task.counters.in_doubt == (2 if step == "dot" else 0)
    store.script.clear()
    bench.run(3600, 30.0)
    assert bench.statuses() == {"deferred": 2, "sent": 2}
    assert bench.task.held == 0


@pytest.mark.parametrize("answered", [1, 2])
def test_only_those_without_a_reply_are_tried_again(answered: int) -> None:
    bench, store = bench_of()
    people = [WELL, FULL, b"u3@home.example"]

    def leave(sink: Any) -> bytes:
        sink.transport.write(b"250 2.0.0 stored\r\n" * answered)
        sink.transport.loseConnection()
        return b""

    store.script["dot"] = leave
    begin(bench, *people)
    assert bench.statuses() == {"sent": answered, "deferred": 3 - answered}
    assert len(bench.lines(IN_DOUBT)) == 3 - answered
    store.script.clear()
    bench.run(3600, 30.0)
    assert store.received[-1].recipients == people[answered:]
    assert bench.statuses() == {"sent": 3, "deferred": 3 - answered}


def test_421_for_one_recipient_is_not_that_of_the_others() -> None:
    bench, store = bench_of()
    store.outcomes = {FULL: b"421 4.3.2 shutting down\r\n"}
    begin(bench, WELL, FULL, b"u3@home.example")
    assert bench.statuses() == {"sent": 2, "deferred": 1}
    assert bench.lines(b"to=<" + FULL, b"status=deferred (421 4.3.2 shutting down)")
    assert store.connections[0].is_closed


@pytest.mark.parametrize(
    ("said", "statuses"),
    [
        (b"250 one\r\n250 two\r\n250 three\r\n", {"sent": 2}),
        (b"250 one\r\n", {"sent": 1, "deferred": 1}),
        (b"250 one\r\n250 " + b"x" * 5000, {"sent": 1, "deferred": 1}),
        (b"250 one\r\n" + b"250-x\r\n" * 500, {"sent": 1, "deferred": 1}),
        (b"\x00\xff\r\n", {"deferred": 2}),
        (b"354 more\r\n", {"deferred": 2}),
    ],
    ids=["too many", "too few", "endless line", "endless lines", "nonsense", "3xx"],
)
def test_a_server_that_answers_wrongly_behind_the_dot(said: bytes, statuses: dict[str, int]) -> None:
    bench, store = bench_of(script={"dot": said})
    begin(bench, WELL, FULL, seconds=700.0)
    assert bench.statuses() == statuses
    assert bench.task.held == 0
    store.script.clear()
    bench.run(1200, 30.0)
    assert bench.statuses().get("sent") == 2


def test_all_replies_behind_a_dot_have_one_time_limit_together() -> None:
    bench, store = bench_of(client_timeout_final_s=60.0)
    people = [b"%b@home.example" % user for user in USERS]

    def answer_slowly(sink: Any) -> bytes:
        for number in range(len(people)):
            bench.clock.callLater(25.0 * (number + 1), sink.transport.write, b"250 2.0.0 stored\r\n")
        return b""

    store.script["dot"] = answer_slowly
    begin(bench, *people, seconds=75.0)
    assert bench.statuses() == {"sent": 2, "deferred": 4}
    assert len(bench.lines(b"timed out after the final dot: the message may have been sent")) == 4


def test_a_server_that_is_away_is_a_dead_host_and_holds_up_nobody_else() -> None:
    bench = Bench(lmtp=SOCKET, users=(*USERS, b"joe"))
    sink = bench.sink()
    begin(bench, WELL, b"a@far.example")
    assert bench.lines(b"to=<" + WELL, b"451 4.4.1 connect to localhost[/run/lmtp] failed")
    assert sink.acknowledged() == [b"a@far.example"]
    attempts = len(bench.network.attempts)
    for number in range(20):
        bench.put(b"u3@home.example", b"b%d@far.example" % number)
    bench.run(60)
    assert len(sink.acknowledged()) == 21
    assert [attempt for attempt in bench.network.attempts[attempts:] if attempt == ("/run/lmtp", 0)] == []
    store = LmtpSinkFactory()
    bench.network.servers["/run/lmtp", 0] = store
    bench.run(1200, 10.0)
    assert len(store.stored) == 21
    assert bench.statuses()["sent"] == 42


def test_connections_are_kept_and_bounded() -> None:
    bench, store = bench_of(maxserverconnections=2, maxmessages=0)
    bench.task.start()
    for number in range(200):
        bench.put(WELL if number % 2 else FULL)
    bench.run(5)
    assert len(store.stored) == 200
    assert store.most_open <= 2
    assert len(store.connections) <= 2


def test_postmaster_goes_to_the_user_who_has_the_mail() -> None:
    bench, store = bench_of()
    begin(bench, b"PostMaster@home.example", b"postmaster", b"Joe@HOME.example", b'"u1"@home.example')
    assert sorted(store.stored) == [b"Joe@HOME.example", b"joe", b"joe@home.example", FULL]
    assert bench.lines(b"to=<PostMaster@home.example>", b"status=sent")


def test_the_server_decides_about_users_that_the_directory_does_not_know() -> None:
    bench, store = bench_of()
    begin(bench, b"former@home.example", WELL)
    assert store.received[0].recipients == [b"former@home.example", WELL]


def test_mail_for_others_goes_by_smtp_as_before() -> None:
    bench, store = bench_of()
    sink = bench.sink()
    begin(bench, WELL, b"a@far.example", FULL)
    assert sink.acknowledged() == [b"a@far.example"]
    assert store.received[0].recipients == [WELL, FULL]


@pytest.mark.parametrize("offers", [b"250-store\r\n250 8BITMIME\r\n", b"250 store\r\n"])
def test_what_the_server_does_not_offer_is_not_used(offers: bytes) -> None:
    bench, store = bench_of(script={"LHLO": offers})
    begin(bench, WELL, FULL, content=b"Subject: caf\xe9\r\n\r\n")
    assert bench.statuses() == {"sent": 2}
    (mail,) = [command for command in store.connections[0].commands if command.startswith(b"MAIL")]
    assert (b"BODY=8BITMIME" in mail) is (b"8BITMIME" in offers)
    assert store.connections[0].commands[0] == b"LHLO mx.example"


def test_large_content_comes_in_pieces() -> None:
    content = b"".join(b"%06d %b\r\n" % (number, b"x" * 60) for number in range(5_000))
    bench, store = bench_of()
    store.outcomes = OUTCOMES
    begin(bench, WELL, GONE, content=content, seconds=10.0)
    assert store.received[0].content == content
    assert bench.statuses() == {"sent": 1, "bounced": 1}


def test_a_stop_waits_for_the_replies_of_all_recipients() -> None:
    bench, store = bench_of()

    def answer_later(sink: Any) -> bytes:
        for number in range(2):
            bench.clock.callLater(2.0 + number, sink.transport.write, b"250 2.0.0 stored\r\n")
        return b""

    store.script["dot"] = answer_later
    begin(bench, WELL, FULL)
    over = stopped(bench, 20.0)
    bench.run(5)
    assert len(over) == 1
    assert bench.statuses() == {"sent": 2}


def test_a_stop_that_lasts_too_long_leaves_in_doubt_those_without_a_reply() -> None:
    bench, _ = bench_of(script={"dot": b"250 2.0.0 stored\r\n"})
    begin(bench, WELL, FULL)
    over = stopped(bench, 3.0)
    bench.run(5)
    assert len(over) == 1
    assert bench.lines(b"to=<" + WELL, b"status=sent")
    assert bench.lines(b"to=<" + FULL, b"server stopped after the final dot: the message may have been sent")


# ---------------------------------------------------------------------- reload


def reload(bench: Bench, store: MessageStoreSettings) -> None:
    directory = attrs.evolve(DIRECTORY, users=frozenset((b"joe", *USERS)))
    bench.task.reload(deliver_settings(relay("192.0.2.1")), store, directory)


def test_a_reload_moves_waiting_mail_to_the_server_and_back_into_maildirs(tmp_path: pathlib.Path) -> None:
    bench = Bench(users=(b"joe", *USERS), store=str(tmp_path))
    store = LmtpSinkFactory()
    bench.network.servers[STORE.host, STORE.port] = store
    begin(bench, WELL)
    assert len(files_of(str(tmp_path), "u0")) == 1
    reload(bench, attrs.evolve(bench.store, lmtp=STORE))
    bench.put(WELL)
    bench.run(1)
    assert store.stored == [WELL]
    store.script["greeting"] = Act.SILENCE
    bench.run(20)  # the connection that is idle ends
    bench.put(WELL)
    bench.run(5)
    assert len(store.connections) == 2
    reload(bench, bench.store)
    bench.run(400, 0.5)  # the session that was begun is given up
    assert len(files_of(str(tmp_path), "u0")) == 2
    assert store.stored == [WELL]
    assert bench.task.held == 0


def test_a_server_at_another_address_gets_what_waits_after_a_reload() -> None:
    bench = Bench(lmtp=SOCKET, users=(b"joe", *USERS))
    begin(bench, WELL)
    assert bench.statuses() == {"deferred": 1}
    store = LmtpSinkFactory()
    bench.network.servers[STORE.host, STORE.port] = store
    reload(bench, attrs.evolve(bench.store, lmtp=STORE))
    bench.run(1200, 10.0)
    assert store.stored == [WELL]


# ---------------------------------------------------------------------- reasons


def test_why_names_the_server_and_what_it_said() -> None:
    bench = Bench(lmtp=SOCKET, users=(b"joe", *USERS))
    with capturedLogs() as events:
        begin(bench, WELL)
    told = [str(formatEvent(event)) for event in events]
    assert any(text.startswith("Held back (dead), /run/lmtp: waits for /run/lmtp: no session since ") for text in told), told
    (waiting,) = bench.why().values()
    assert b"connect to localhost[/run/lmtp] failed" in waiting.sentence
    assert b"; /run/lmtp is left alone until " in waiting.sentence
    lines = bench.task.explanations().of_domain(b"home.example")
    assert lines[0] == b"home.example is local: its mail goes by LMTP to /run/lmtp"


def test_why_says_what_is_known_of_a_server_that_works() -> None:
    bench, _ = bench_of()
    begin(bench, WELL)
    lines = bench.task.explanations().of_domain(b"home.example")
    assert lines[0] == b"home.example is local: its mail goes by LMTP to 192.0.2.9:24"
    assert lines[1] == b"LMTP server 192.0.2.9:24: 1 connection, 2 allowed now, at most 20 with each host"


def test_why_says_which_step_a_silent_server_is_at() -> None:
    bench, _ = bench_of(SOCKET, {"LHLO": Act.SILENCE})
    begin(bench, WELL)
    (waiting,) = bench.why().values()
    assert waiting.sentence.startswith(b"waits for localhost[/run/lmtp]: its reply to LHLO is awaited since ")


def test_the_records_of_a_socket_are_not_kept_and_harm_none() -> None:
    bench = Bench(lmtp=SOCKET, users=(b"joe", *USERS))
    begin(bench, WELL)
    assert [record.address for record in bench.task.hosts.records(0.0)] == ["/run/lmtp"]


@pytest.mark.parametrize("is_offered", [True, False])
def test_mail_in_utf8_needs_a_server_that_offers_it(*, is_offered: bool) -> None:
    offer = b"250-SMTPUTF8\r\n" if is_offered else b""
    bench, store = bench_of(script={"LHLO": b"250-store\r\n250-8BITMIME\r\n" + offer + b"250 PIPELINING\r\n"})
    put(bench, WELL, sender=JOERG)
    bench.task.start()
    bench.run(1)
    assert bench.statuses() == ({"sent": 1} if is_offered else {"bounced": 1})
    assert store.stored == [WELL] * is_offered
