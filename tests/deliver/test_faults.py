"""Whose fault costs an attempt: hosts that end sessions, full transactions, greylisting, full mailboxes."""

from __future__ import annotations

import itertools
import pathlib

import pytest

from mailismus.deliver.sessions.verdicts import MAX_PUT_BACKS
from mailismus.queue.interface import Area, Entry, Filter
from tests.deliver.harness import Bench, stopped
from tests.fakes.sink import Act, Action, Script, Sink

PAUSE_S = 30.0
"""Longer than the first pauses of a window."""
FIRST, SECOND, THIRD = "192.0.2.1", "192.0.2.2", "192.0.2.3"
BYE = b"421 4.3.2 bye\r\n"
FULL = b"452 4.5.3 too many recipients\r\n"
HOST_FAULTS: dict[str, Script] = {
    f"{step} {name}": {step: action}
    for step in ("MAIL", "RCPT", "DATA")
    for name, action in (("421", BYE), ("closes", Act.CLOSE), ("resets", Act.ABORT), ("silence", Act.SILENCE))
}


def hosts_of(*addresses: str, **changes: object) -> Bench:
    """b.example has these MX hosts, each better than the next; mx1, mx2, ... are their names."""
    bench = Bench(has_relay=False, **changes)  # type: ignore[arg-type]  # by name
    bench.names.mx("b.example", *((10 * place, f"mx{place}.b.example", one) for place, one in enumerate(addresses, 1)))
    bench.task.start()
    return bench


def deferred(bench: Bench) -> list[Entry]:
    """The deferred entries."""
    found: list[Entry] = []
    bench.queue.search(Filter(area=Area.DEFERRED), None, 1000).addCallback(
        lambda page: found.extend(entry for message in page.messages for entry in message.entries)
    )
    bench.run(0.1)
    return found


# the host's fault


@pytest.mark.parametrize("name", HOST_FAULTS)
def test_the_fault_of_a_host_costs_no_attempt_while_another_is_alive(name: str) -> None:
    bench = hosts_of(FIRST, SECOND, client_timeout_s=20.0)
    bench.sink(HOST_FAULTS[name])
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(60 if "silence" in name else 2, 0.5)
    assert second.acknowledged() == [b"r@b.example"]
    (line,) = bench.lines()
    assert b"relay=mx2.b.example[192.0.2.2]:25, " in line
    assert b"status=sent" in line
    assert bench.task.held == 0


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
def test_when_every_host_is_at_fault_that_is_one_attempt_with_the_last_reply(step: str) -> None:
    bench = hosts_of(FIRST, SECOND, THIRD)
    for number, host in enumerate((FIRST, SECOND, THIRD)):
        bench.sink({step: b"421 4.3.2 bye from %d\r\n" % number}, host)
    bench.put(b"r@b.example")
    bench.run(2)
    assert bench.network.attempts == [(FIRST, 25), (SECOND, 25), (THIRD, 25)]
    (line,) = bench.lines()
    assert b"relay=mx3.b.example[192.0.2.3]:25, " in line
    assert b"status=deferred (421 4.3.2 bye from 2)" in line
    assert [entry.attempts for entry in deferred(bench)] == [1]


def test_more_hosts_at_fault_than_put_backs_are_all_tried() -> None:
    hosts = [f"192.0.2.{number}" for number in range(1, 8)]
    bench = hosts_of(*hosts)
    for host in hosts[:-1]:
        bench.sink({"MAIL": BYE}, host)
    last = bench.sink(host=hosts[-1])
    bench.put(b"r@b.example")
    bench.run(2)
    assert last.acknowledged() == [b"r@b.example"]
    assert bench.statuses() == {"sent": 1}


def test_a_host_at_fault_is_left_alone_as_one_that_gave_no_session() -> None:
    bench = hosts_of(FIRST)
    sink = bench.sink({"MAIL": BYE})
    for number in range(50):
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert len(bench.network.attempts) <= 13  # those that were opened before the first 421 came
    assert bench.statuses() == {"deferred": 50}
    assert {entry.attempts for entry in deferred(bench)} == {1}
    sink.script = {}
    made = len(bench.network.attempts)
    bench.put(b"new@b.example")
    bench.run(2)
    assert len(bench.network.attempts) == made
    assert len(bench.lines(b"to=<new@b.example>, relay=none", b"(421 4.3.2 bye)")) == 1
    bench.run(1100, 1)
    assert len(sink.acknowledged()) == 51


def test_a_job_waits_for_a_host_at_fault_with_which_sessions_stand() -> None:
    def mail(sink: Sink) -> Action:
        return b"250 ok\r\n" if sink.number == 0 else BYE

    bench = hosts_of(FIRST, maxmessages=0)
    bench.network.latency_s = 0.3
    sink = bench.sink({"MAIL": mail})
    for number in range(100):
        bench.put(b"r%d@b.example" % number)
    bench.run(60)
    assert len(sink.connections) > 1
    sink.script = {}
    bench.run(120, 0.5)
    assert len(sink.acknowledged()) == 100
    assert bench.statuses() == {"sent": 100}


def test_a_host_that_is_alive_and_at_fault_keeps_no_job_for_ever() -> None:
    def mail(sink: Sink) -> Action:
        return Act.SILENCE if sink.number == 0 else BYE

    bench = hosts_of(FIRST, client_timeout_s=3000.0)
    bench.names.mx("c.example", (10, "mx1.b.example", FIRST))
    sink = bench.sink({"MAIL": mail})
    bench.put(b"r@c.example")
    bench.run(1)
    bench.put(b"r@b.example")
    bench.run(PAUSE_S + 5, 0.5)
    assert bench.lines() == []
    bench.run(4 * PAUSE_S, 0.5)
    assert len(bench.lines(b"to=<r@b.example>", b"status=deferred (421 4.3.2 bye)")) == 1
    assert len(sink.connections) == 1 + 1 + MAX_PUT_BACKS
    assert not sink.connections[0].is_closed


def test_entries_that_may_have_been_sent_are_counted() -> None:
    bench = hosts_of(FIRST)
    bench.sink(
        {"dot": Act.CLOSE, "RCPT": lambda sink: b"550 5.1.1 no\r\n" if b"bad" in sink.commands[-1] else b"250 ok\r\n"}
    )
    bench.put(b"a@b.example", b"bad@b.example", b"c@b.example")
    bench.run(2)
    assert bench.task.counters.in_doubt == 2


def test_a_later_transaction_that_a_host_ends_goes_to_a_fresh_session() -> None:
    def rcpt(sink: Sink) -> Action:
        return b"250 ok\r\n" if sink.messages < 2 else b"421 4.7.0 enough for one session\r\n"

    bench = hosts_of(FIRST, maxserverconnections=1)
    sink = bench.sink({"RCPT": rcpt})
    for number in range(10):
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert bench.statuses() == {"sent": 10}
    assert len(sink.connections) == 5
    assert bench.task.hosts.remembered == 0


def test_a_421_to_the_final_dot_is_the_messages_and_asks_no_other_host() -> None:
    bench = hosts_of(FIRST, SECOND)
    bench.sink({"dot": b"421 4.7.28 unusual rate of mail with your domain\r\n"})
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(2)
    assert second.connections == []
    assert bench.statuses() == {"deferred": 1}
    assert bench.task.hosts.remembered == 0


def test_recipients_that_were_refused_before_the_fault_are_settled_once() -> None:
    def rcpt(sink: Sink) -> Action:
        return b"550 5.1.1 no\r\n" if b"bad" in sink.commands[-1] else b"250 ok\r\n"

    bench = hosts_of(FIRST, SECOND)
    bench.sink({"RCPT": rcpt, "DATA": BYE})
    second = bench.sink(host=SECOND)
    bench.put(b"a@b.example", b"bad@b.example", b"c@b.example")
    bench.run(2)
    assert second.acknowledged() == [b"a@b.example", b"c@b.example"]
    assert bench.statuses() == {"bounced": 1, "sent": 2}


# a full transaction


def takes(most: int, words: bytes = FULL) -> Script:
    """A host that takes so many recipients a transaction."""

    def rcpt(sink: Sink) -> Action:
        since = len(sink.commands) - next(
            place for place, command in enumerate(reversed(sink.commands)) if command.startswith(b"MAIL")
        )
        count = sum(command.startswith(b"RCPT") for command in sink.commands[since:])
        return b"250 ok\r\n" if count <= most else words

    return {"RCPT": rcpt}


def many(count: int) -> list[bytes]:
    return [b"r%02d@b.example" % number for number in range(count)]


@pytest.mark.parametrize("words", [FULL, b"452 too many\r\n", b"552 too many\r\n"])
@pytest.mark.parametrize("pipeline", [1, 3, 25])
def test_recipients_beyond_what_a_transaction_takes_go_in_the_next_ones(words: bytes, pipeline: int) -> None:
    bench = hosts_of(FIRST, client_maxpipeline=pipeline)
    sink = bench.sink(takes(7, words) | {"EHLO": b"250-sink\r\n250 PIPELINING\r\n"})
    bench.put(*many(45))
    bench.run(3)
    assert sorted(sink.acknowledged()) == many(45)
    assert bench.statuses() == {"sent": 45}
    assert sorted(len(message.recipients) for message in sink.received) == [3, 7, 7, 7, 7, 7, 7]
    assert sum(command.startswith(b"RCPT") for sink in sink.connections for command in sink.commands) <= 45 + 38
    assert bench.task.held == 0


def test_a_host_that_takes_not_even_one_recipient_costs_an_attempt_and_is_no_loop() -> None:
    bench = hosts_of(FIRST)
    sink = bench.sink(takes(0))
    bench.put(*many(5))
    bench.run(3)
    assert bench.statuses() == {"deferred": 5}
    assert len(sink.connections[0].commands) <= 10
    assert [entry.attempts for entry in deferred(bench)] == [1] * 5


def test_what_has_no_room_is_tried_though_the_others_fail() -> None:
    bench = hosts_of(FIRST)
    bench.sink(takes(2) | {"dot": b"554 5.7.1 no\r\n"})
    bench.put(*many(6))
    bench.run(3)
    assert bench.statuses() == {"bounced": 6}
    assert bench.task.held == 0


@pytest.mark.parametrize("step", ["DATA", "dot"])
@pytest.mark.parametrize("action", [Act.CLOSE, BYE])
def test_what_has_no_room_survives_the_end_of_the_session(step: str, action: Action) -> None:
    bench = hosts_of(FIRST, SECOND)
    first, second = bench.sink(takes(2) | {step: action}), bench.sink(host=SECOND)
    bench.put(*many(6))
    bench.run(3)
    first.script = {}
    bench.run(1100, 1)
    assert sorted({*first.acknowledged(), *second.acknowledged()}) == many(6)
    assert bench.task.held == 0
    assert bench.count(Area.DEFERRED) == bench.count(Area.INCOMING) == 0
    if step == "DATA":
        assert bench.statuses() == {"sent": 6}


@pytest.mark.parametrize("step", ["DATA", "dot"])
def test_a_stop_gives_back_what_has_no_room(step: str) -> None:
    bench = hosts_of(FIRST)
    bench.sink(takes(2) | {step: Act.SILENCE})
    bench.put(*many(6))
    bench.run(1)
    over = stopped(bench, 5)
    bench.run(10)
    assert len(over) == 1
    assert bench.task.held == 0
    assert bench.count(Area.INCOMING) == (6 if step == "DATA" else 4)
    assert bench.statuses() == ({} if step == "DATA" else {"deferred": 2})


# greylisting, and full mailboxes


def attempts_at(reply: bytes, hours: float, step: str = "RCPT") -> list[float]:
    """When attempts are made, in minutes, if each gets this reply."""
    bench = hosts_of(FIRST)
    made: list[float] = []

    def answer(_: Sink) -> Action:
        made.append(bench.clock.seconds())
        return reply

    bench.sink({step: answer})
    bench.put(b"r@b.example")
    bench.run(1)
    bench.run(hours * 3600, 20)
    return [(at - made[0]) / 60 for at in made]


@pytest.mark.parametrize("code", [b"450", b"451"])
@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
def test_greylisting_takes_the_first_delay_three_times_and_then_follows_the_rule(code: bytes, step: str) -> None:
    made = attempts_at(code + b" 4.7.1 come back later\r\n", 6, step)
    waits = [later - sooner for sooner, later in itertools.pairwise(made)]
    assert len(made) == 5
    for wait, usual in zip(waits, (15, 15, 15, 240), strict=True):
        assert usual <= wait <= usual * 1.1 + 1


@pytest.mark.parametrize(
    ("reply", "step"),
    [
        (b"450 4.7.1 later\r\n", "dot"),
        (b"451 4.7.0 later\r\n", "RCPT"),
        (b"452 4.7.1 later\r\n", "RCPT"),
        (b"450 4.2.0 Greylisted\r\n", "RCPT"),
        (b"451 4.7.10 later\r\n", "RCPT"),
    ],
)
def test_what_is_not_greylisting_follows_the_rule(reply: bytes, step: str) -> None:
    made = attempts_at(reply, 3.2, step)
    waits = [later - sooner for sooner, later in itertools.pairwise(made)]
    for wait, usual in zip(waits, (15, 30, 120), strict=True):
        assert usual <= wait <= usual * 1.1 + 1


def test_greylisted_mail_arrives_when_the_server_knows_it() -> None:
    bench = hosts_of(FIRST)
    known_at = bench.clock.seconds() + 40 * 60
    sink = bench.sink()
    sink.script = {"RCPT": lambda _: b"250 ok\r\n" if bench.clock.seconds() >= known_at else b"451 4.7.1 greylisted\r\n"}
    bench.put(b"r@b.example", b"s@b.example")
    bench.run(1)
    bench.run(52 * 60, 20)
    assert sorted(sink.acknowledged()) == [b"r@b.example", b"s@b.example"]
    assert bench.statuses() == {"deferred": 6, "sent": 2}


def test_one_greylisted_recipient_comes_back_before_one_that_failed_otherwise() -> None:
    def rcpt(sink: Sink) -> Action:
        return b"451 4.7.1 later\r\n" if b"grey" in sink.commands[-1] else b"451 4.3.0 later\r\n"

    bench = hosts_of(FIRST)
    bench.sink({"RCPT": rcpt})
    bench.put(b"grey@b.example", b"other@b.example")
    bench.run(1)
    bench.run(18 * 60, 20)
    due = {entry.recipient: entry.due_at - bench.clock.seconds() for entry in deferred(bench)}
    assert {entry.attempts for entry in deferred(bench)} == {2}
    assert due[b"grey@b.example"] < 15 * 60 * 1.1
    assert due[b"other@b.example"] > 20 * 60


@pytest.mark.parametrize(("reply", "step"), [(b"452 4.2.2 full\r\n", "RCPT"), (b"422 4.2.2 full\r\n", "dot")])
def test_a_full_mailbox_takes_the_last_delay(reply: bytes, step: str) -> None:
    made = attempts_at(reply, 9, step)
    assert len(made) == 3
    assert 240 <= made[1] <= 265
    assert 240 <= made[2] - made[1] <= 265


def test_a_user_beyond_the_quota_takes_the_last_delay(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(122, "quota")

    monkeypatch.setattr("mailismus.disk.posix.os.fdatasync", fail)
    bench = Bench(store=str(tmp_path))
    bench.task.start()
    bench.put(b"joe@home.example")
    bench.run()
    (entry,) = deferred(bench)
    assert 239 * 60 <= entry.due_at - bench.clock.seconds() <= 264 * 60
