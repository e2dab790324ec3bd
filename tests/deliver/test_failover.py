"""By MX: from host to host, and what happens when none is left."""

from __future__ import annotations

import gc

import pytest
from twisted.internet.defer import Deferred

from mailismus.deliver.schedule.host import Host
from mailismus.dns.mx import MxHost
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.filter import parse_filter
from mailismus.queue.interface import Area
from tests.deliver.harness import DIRECTORY, Bench, deliver_settings, relay, stopped
from tests.fakes.sink import Act, Action, Script, Sink

NULL_MX = Outcome(OutcomeKind.FAILED, Reply(556, b"5.1.10", b"b.example takes no mail"), b"none")
SERVFAIL = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.3", b"no MX record now"), b"none")
FIRST, SECOND, THIRD = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def three_hosts(**changes: object) -> Bench:
    """b.example has three MX hosts, one better than the other."""
    bench = Bench(has_relay=False, **changes)  # type: ignore[arg-type]  # by name
    bench.names.mx("b.example", (10, "mx1.b.example", FIRST), (20, "mx2.b.example", SECOND), (30, "mx3.b.example", THIRD))
    bench.task.start()
    return bench


FAILURES: dict[str, Script | None] = {
    "refused connection": None,
    "greeting 4xx": {"greeting": b"450 busy\r\n"},
    "greeting 5xx": {"greeting": b"554 5.7.1 no\r\n"},
    "greeting 421": {"greeting": b"421 4.3.2 bye\r\n"},
    "greeting garbage": {"greeting": b"SSH-2.0-OpenSSH\r\n"},
    "greeting closes": {"greeting": Act.CLOSE},
    "greeting silence": {"greeting": Act.SILENCE},
    "EHLO and HELO refused": {"EHLO": b"550 no\r\n", "HELO": b"550 no\r\n"},
    "EHLO closes": {"EHLO": Act.CLOSE},
    "EHLO silence": {"EHLO": Act.SILENCE},
    "MAIL closes": {"MAIL": Act.CLOSE},
    "MAIL resets": {"MAIL": Act.ABORT},
    "MAIL silence": {"MAIL": Act.SILENCE},
    "MAIL 421": {"MAIL": b"421 4.3.2 bye\r\n"},
}


@pytest.mark.parametrize("name", FAILURES)
def test_after_a_host_that_gives_no_session_comes_the_next(name: str) -> None:
    script = FAILURES[name]
    bench = three_hosts()
    if script is not None:
        bench.sink(script)
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(1500 if "silence" in name else 2, 0.5)
    assert second.acknowledged() == [b"r@b.example"]
    (line,) = bench.lines()
    assert b"relay=mx2.b.example[192.0.2.2]:25, " in line
    assert b"status=sent" in line
    assert (THIRD, 25) not in bench.network.attempts
    assert bench.task.held == 0


def test_mail_arrives_over_two_failing_hosts() -> None:
    bench = three_hosts()
    bench.sink({"greeting": b"450 4.3.2 busy\r\n"}, host=SECOND)
    third = bench.sink(host=THIRD)
    bench.put(b"r@b.example")
    bench.run(1)
    assert bench.network.attempts == [(FIRST, 25), (SECOND, 25), (THIRD, 25)]
    assert third.acknowledged() == [b"r@b.example"]
    assert bench.statuses() == {"sent": 1}


def test_when_every_host_has_failed_that_is_one_attempt_and_the_last_reply_is_told() -> None:
    bench = three_hosts()
    bench.sink({"greeting": b"554 5.7.1 go away\r\n"}, host=THIRD)
    bench.put(b"r@b.example")
    bench.run(2)
    assert bench.network.attempts == [(FIRST, 25), (SECOND, 25), (THIRD, 25)]
    (line,) = bench.lines(b"status=deferred", b"dsn=4.7.1")
    assert b"relay=mx3.b.example[192.0.2.3]:25" in line
    assert b"(451 4.7.1 host refused the session: 554 5.7.1 go away)" in line
    assert bench.count(Area.DEFERRED) == 1


def test_addresses_of_one_host_are_tried_too() -> None:
    bench = Bench(has_relay=False)
    bench.names.mx("b.example", (10, "mx1.b.example", f"{FIRST} 2001:db8::1"))
    sink = bench.sink(host="2001:db8::1")
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    assert sink.acknowledged() == [b"r@b.example"]
    assert len(bench.lines(b"relay=mx1.b.example[2001:db8::1]:25")) == 1


def test_what_comes_due_while_all_hosts_are_dead_uses_up_an_attempt_without_a_connection() -> None:
    bench = three_hosts()
    bench.put(b"r1@b.example")
    bench.run(2)
    bench.put(b"r2@b.example")
    bench.run(2)
    assert len(bench.network.attempts) == 3
    (line,) = bench.lines(b"to=<r2@b.example>", b"relay=none", b"status=deferred")
    assert b"connect to mx3.b.example[192.0.2.3]:25 failed: " in line


def test_a_dead_host_is_tried_once_when_its_time_is_over_and_everything_goes_there_when_it_lives() -> None:
    bench = three_hosts()
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(290, 1)
    for number in range(20):
        bench.put(b"early%d@b.example" % number)
    bench.run(5)
    assert bench.network.attempts.count((FIRST, 25)) == 1
    bench.network.black_holes.add(FIRST)
    bench.run(10, 1)
    for number in range(50):
        bench.put(b"late%d@b.example" % number)
    bench.run(20, 1)
    assert bench.network.attempts.count((FIRST, 25)) == 2
    assert len(second.acknowledged()) == 70  # the job of the trial waits for its end
    bench.network.black_holes.clear()
    first = bench.sink()
    bench.run(700, 1)
    assert len(second.acknowledged()) == 71
    bench.put(b"r@b.example")
    bench.run(2)
    assert first.acknowledged() == [b"r@b.example"]
    assert bench.network.attempts.count((FIRST, 25)) == 3


def test_a_limit_of_the_better_host_is_waited_for_and_costs_no_attempt() -> None:
    bench = three_hosts(maxserverconnections=1, maxmessages=1)
    bench.network.latency_s = 0.02
    first, second = bench.sink(), bench.sink(host=SECOND)
    for number in range(30):
        bench.put(b"r%d@b.example" % number)
    bench.run(30)
    assert (len(first.acknowledged()), second.acknowledged()) == (30, [])
    assert first.most_open == 1
    assert not bench.task.sessions.schedule.has_work
    assert bench.statuses() == {"sent": 30}


def test_what_a_host_refuses_by_its_reply_goes_to_no_other() -> None:
    bench = three_hosts()
    bench.sink({"MAIL": b"451 4.7.1 greylisted\r\n"})
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(2)
    assert second.received == []
    assert len(bench.lines(b"status=deferred (451 4.7.1 greylisted)")) == 1


def test_a_message_that_may_have_been_sent_goes_to_no_other_host() -> None:
    bench = three_hosts()
    bench.sink({"dot": Act.CLOSE})
    second = bench.sink(host=SECOND)
    bench.put(b"r@b.example")
    bench.run(2)
    assert second.received == []
    assert len(bench.lines(b"may have been sent", b"status=deferred")) == 1


def test_hosts_that_all_lose_sessions_at_mail_are_no_endless_loop() -> None:
    bench = three_hosts()
    sinks = [bench.sink({"MAIL": Act.CLOSE}, host) for host in (FIRST, SECOND, THIRD)]
    bench.put(b"r@b.example")
    bench.run(5)
    assert sum(len(sink.connections) for sink in sinks) <= 8
    (line,) = bench.lines(b"status=deferred")
    assert b"before the reply to MAIL" in line


def test_a_flush_forgets_that_hosts_are_dead() -> None:
    bench = three_hosts()
    bench.put(b"r@b.example")
    bench.run(2)
    sink = bench.sink()
    bench.queue.visit_all(parse_filter(["domain=b.example"], 0.0))
    bench.run(1)
    assert sink.acknowledged() == [b"r@b.example"]
    assert bench.statuses() == {"deferred": 1, "sent": 1}


def test_with_short_delays_between_attempts_hosts_are_dead_as_shortly() -> None:
    bench = Bench(delays_s=(1.0,))
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(5)
    assert 3 <= len(bench.network.attempts) <= 6
    assert bench.statuses() == {"deferred": len(bench.network.attempts)}
    sink = bench.sink()
    bench.run(2)
    assert sink.acknowledged() == [b"r@b.example"]


def test_a_host_is_known_to_be_dead_whichever_domain_met_it() -> None:
    bench = three_hosts()
    bench.names.mx("c.example", (5, "mx1.b.example", FIRST), (6, "mx9.c.example", THIRD))
    third = bench.sink(host=THIRD)
    bench.put(b"r@b.example")
    bench.run(1)
    bench.put(b"r@c.example")
    bench.run(1)
    assert third.acknowledged() == [b"r@b.example", b"r@c.example"]
    assert bench.network.attempts.count((FIRST, 25)) == 1
    assert len(bench.lines(b"relay=mx9.c.example[192.0.2.3]:25")) == 1


@pytest.mark.parametrize(("outcome", "status"), [(NULL_MX, "bounced"), (SERVFAIL, "deferred")])
def test_what_the_look_up_says_is_the_outcome_of_all_that_waits(outcome: Outcome, status: str) -> None:
    bench = Bench(has_relay=False)
    looked_up: Deferred[tuple[MxHost, ...] | Outcome] = Deferred()
    bench.names.domains["b.example"] = looked_up
    bench.task.start()
    for number in range(3):
        bench.put(b"r%d@b.example" % number)
    bench.run(1)
    assert bench.names.asked == ["b.example"]
    looked_up.callback(outcome)
    bench.run(1)
    assert bench.statuses() == {status: 3}
    assert len(bench.lines(b"relay=none", b"dsn=" + outcome.reply.enhanced, outcome.reply.text)) == 3
    assert bench.task.held == 0


def test_a_domain_whose_hosts_have_no_address_defers() -> None:
    bench = Bench(has_relay=False)
    bench.names.mx("b.example", (10, "mx1.b.example", ""))
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    assert len(bench.lines(b"status=deferred (451 4.4.4 no mail host has an address)")) == 1


def test_a_look_up_that_breaks_down_defers() -> None:
    bench = Bench(has_relay=False)
    looked_up: Deferred[tuple[MxHost, ...] | Outcome] = Deferred()
    bench.names.domains["b.example"] = looked_up
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    looked_up.errback(ValueError("a bug"))
    bench.run(1)
    assert len(bench.lines(b"status=deferred (451 4.4.3 the hosts can't be looked up now)")) == 1


def test_the_way_is_found_anew_at_each_attempt() -> None:
    bench = Bench(has_relay=False)
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(2)
    assert bench.statuses() == {"deferred": 1}
    bench.names.mx("b.example", (10, "mx1.b.example", FIRST))
    sink = bench.sink()
    bench.run(1000, 1)
    assert sink.acknowledged() == [b"r@b.example"]


def test_a_mended_configuration_frees_what_was_stuck() -> None:
    bench = Bench(relay("192.0.2.9"))
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(2)
    sink = bench.sink(host=SECOND)
    bench.task.reload(deliver_settings(relay(SECOND, 25, b"b.example")), bench.store, DIRECTORY)
    bench.run(1000, 1)
    assert sink.acknowledged() == [b"r@b.example"]


def test_the_addresses_of_a_relay_serve_on_when_its_name_is_not_found_any_more() -> None:
    bench = Bench(relay("relay.example"))
    sink = bench.sink(host=SECOND)
    bench.names.hosts["relay.example"] = (SECOND,)
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(30)
    del bench.names.hosts["relay.example"]
    bench.put(b"r2@b.example")
    bench.run(2)
    assert bench.names.asked == ["relay.example"] * 2
    assert sink.acknowledged() == [b"r1@b.example", b"r2@b.example"]


def test_a_look_up_that_hangs_holds_nobody_else_and_what_waits_leaves_room() -> None:
    bench = Bench(has_relay=False, queuecache=100)
    bench.names.domains["hangs.example"] = Deferred()
    bench.names.mx("b.example", (10, "mx1.b.example", FIRST))
    sink = bench.sink()
    for number in range(500):
        bench.put(b"r%d@hangs.example" % number)
    bench.task.start()
    bench.run(3)
    for number in range(50):
        bench.put(b"r%d@b.example" % number)
    bench.run(15)
    assert len(sink.acknowledged()) == 50
    assert bench.names.asked.count("hangs.example") == 1
    assert bench.statuses() == {"sent": 50}


def test_any_number_of_domains_in_black_holes_leaves_room_for_others() -> None:
    bench = Bench(has_relay=False, queuecache=100)
    for number in range(300):
        address = f"198.51.100.{number}"
        bench.names.mx(f"d{number}.example", (10, "mx.example", address))
        bench.network.black_holes.add(address)
        bench.put(b"r@d%d.example" % number)
    bench.names.mx("b.example", (10, "mx1.b.example", FIRST))
    sink = bench.sink()
    bench.task.start()
    bench.run(3)
    for number in range(20):
        bench.put(b"r%d@b.example" % number)
    bench.run(15)
    assert len(sink.acknowledged()) == 20


def test_any_number_of_domains_takes_no_memory_once_their_mail_is_gone() -> None:
    bench = Bench(has_relay=False)
    sink = bench.sink()
    bench.task.start()
    for number in range(1000):
        domain = f"d{number}.example"
        bench.names.mx(domain, (10, "mx.example", FIRST if number % 2 else f"198.51.100.{number}"))
        bench.put(b"r@" + domain.encode())
        if number % 100 == 99:
            bench.run(2)
    bench.run(20)
    assert len(sink.acknowledged()) == 500
    assert bench.task.sessions.schedule.destinations == {}
    assert bench.task.sessions.open == bench.task.sessions.schedule.pool.open == 0
    gc.collect()
    assert not bench.task.sessions.schedule.has_work
    assert sum(isinstance(one, Host) for one in gc.get_objects()) <= 500 + len(FAILURES)
    assert bench.task._destdb.remembered == 500


def test_domains_that_share_a_host_share_its_connections() -> None:
    bench = Bench(has_relay=False, maxserverconnections=2)
    bench.network.latency_s = 0.05
    sink = bench.sink()
    for number in range(20):
        bench.names.mx(f"d{number}.example", (10, "mx.example", FIRST))
        bench.put(b"r@d%d.example" % number)
    bench.task.start()
    bench.run(20)
    assert len(sink.acknowledged()) == 20
    assert sink.most_open == 2
    assert bench.statuses() == {"sent": 20}


def test_a_stop_gives_back_what_waits_for_a_look_up() -> None:
    bench = Bench(has_relay=False)
    looked_up: Deferred[tuple[MxHost, ...] | Outcome] = Deferred()
    bench.names.domains["b.example"] = looked_up
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    over = stopped(bench, 30)
    bench.run(1)
    assert over == [0.0]
    looked_up.callback((MxHost("mx1.b.example", 10, (FIRST,)),))
    bench.run(1)
    assert bench.network.attempts == []
    assert bench.lines() == []
    assert bench.task.held == 0


def test_a_host_that_ends_sessions_early_costs_no_attempts_though_there_is_another() -> None:
    def answer(sink: Sink) -> Action:
        return b"250 ok\r\n" if sink.messages == 0 else b"421 4.7.0 one is enough\r\n"

    bench = three_hosts()
    first, second = bench.sink({"MAIL": answer}), bench.sink(host=SECOND)
    for number in range(20):
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert (len(first.acknowledged()), second.acknowledged()) == (20, [])
    assert bench.statuses() == {"sent": 20}
