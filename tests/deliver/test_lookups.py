"""The pool of look-ups: names that are slow to find do not delay the others, and waiting costs a job nothing."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailismus.deliver import lookups
from mailismus.deliver.lookups import KEPT, LIMIT, MOST_SLOW
from mailismus.dns.mx import MxHost
from mailismus.mail.outcome import Outcome
from mailismus.queue.interface import Area
from tests.deliver.harness import UNKNOWN, Bench, stopped

SILENT_S = 30.0
ANSWER_S = 0.1
HOST = (MxHost("mx.example", 10, ("192.0.2.1",)),)


class Resolver:
    """Takes the place of a bench's look-ups of domains. Name servers of `*.silent.example` never answer, all others after
    `ANSWER_S`."""

    def __init__(self, bench: Bench) -> None:
        self._clock = bench.clock
        self.underway = self.most = 0
        self.silent = ".silent.example"
        self.asked: list[str] = []
        self.pressed: list[bool] = []
        self.first_asked_at: dict[str, float] = {}
        bench.names.locate = self.locate  # type: ignore[method-assign]  # in its place
        bench.task.sessions.lookups._locator.press = self.pressed.append

    def locate(self, domain: str) -> Deferred[Any]:
        self.asked.append(domain)
        self.underway += 1
        self.most = max(self.most, self.underway)
        found: Deferred[Any] = Deferred(self._cancelled)
        is_silent = domain.endswith(self.silent)
        self._clock.callLater(SILENT_S if is_silent else ANSWER_S, self._answer, found, UNKNOWN if is_silent else HOST)
        return found

    def _cancelled(self, _: Deferred[Any]) -> None:
        self.underway -= 1

    def _answer(self, found: Deferred[Any], answer: tuple[MxHost, ...] | Outcome) -> None:
        if not found.called:
            self.underway -= 1
            found.callback(answer)


def made(**changes: Any) -> tuple[Bench, Resolver]:
    bench = Bench(has_relay=False, **changes)
    resolver = Resolver(bench)
    bench.sink()
    bench.task.start()
    bench.run(0.1)
    return bench, resolver


def silent(count: int, series: int = 0) -> tuple[bytes, ...]:
    """Recipients in so many silent domains."""
    return tuple(b"r@d%d-%d.silent.example" % (series, number) for number in range(count))


def delays_of_small_mail(bench: Bench, count: int = 100) -> list[float]:
    """Seconds until each of some messages of different senders to different domains is delivered, in order."""
    put_at: dict[int, float] = {}
    delays: list[float] = []
    number = 0
    while len(delays) < count:
        assert bench.clock.seconds() - (put_at.get(0) or bench.clock.seconds()) < 100
        if number < count:
            put_at[number] = bench.clock.seconds()
            bench.put(b"r@small%d.example" % number, sender=b"s%d@b.example" % number)
            number += 1
        bench.run(0.05, 0.05)
        for one in [one for one in put_at if bench.lines(b"@small%d.example>" % one, b"status=")]:
            assert bench.lines(b"@small%d.example>" % one, b"status=sent"), "an attempt was used"
            delays.append(bench.clock.seconds() - put_at.pop(one))
    return sorted(delays)


def p95(delays: list[float]) -> float:
    return delays[len(delays) * 95 // 100]


@pytest.fixture(scope="module")
def alone_s() -> float:
    """p95 of small mail without anything else."""
    return p95(delays_of_small_mail(made()[0]))


def test_one_message_to_2000_silent_domains_delays_no_other(alone_s: float) -> None:
    bench, resolver = made()
    bench.put(*silent(2000))
    bench.run(1)
    assert resolver.underway == 91
    assert p95(delays_of_small_mail(bench)) <= 2 * alone_s
    assert resolver.most <= LIMIT


def test_2000_messages_of_one_sender_to_silent_domains_delay_no_other(alone_s: float) -> None:
    bench, resolver = made()
    for recipient in silent(2000):
        bench.put(recipient)
    bench.run(1)
    assert resolver.underway == 91
    assert p95(delays_of_small_mail(bench)) <= 2 * alone_s


@pytest.mark.parametrize("senders", [5, 20])
def test_senders_of_2000_messages_to_silent_domains_delay_no_other(alone_s: float, senders: int) -> None:
    bench, resolver = made()
    for number, recipient in enumerate(silent(2000)):
        bench.put(recipient, sender=b"big%d@a.example" % (number % senders))
    bench.run(1)
    assert resolver.underway == LIMIT - KEPT
    assert p95(delays_of_small_mail(bench)) <= 2 * alone_s
    assert resolver.most <= LIMIT


def test_domains_that_were_silent_before_leave_most_workers_to_others(alone_s: float) -> None:
    """Also if each has a sender of its own, of whom nothing is known."""
    bench, resolver = made(delays_s=(60.0, 300.0))
    for number, recipient in enumerate(silent(80)):
        bench.put(recipient, sender=b"big%d@a.example" % number)
    bench.run(SILENT_S + 1, 1.0)
    assert len(bench.lines(b"status=deferred")) == 80
    assert resolver.underway == 0
    bench.run(65, 1.0)
    assert resolver.underway == MOST_SLOW
    assert p95(delays_of_small_mail(bench)) <= 2 * alone_s
    assert resolver.underway == MOST_SLOW
    bench.run(5 * SILENT_S, 1.0)
    assert len(bench.lines(b"status=deferred")) == 160
    assert bench.task.sessions.lookups.waiting == 0


def test_a_domain_that_is_found_soon_again_is_not_slow_any_more() -> None:
    bench, resolver = made(delays_s=(60.0,))
    bench.put(*silent(40))
    bench.run(SILENT_S + 1, 1.0)
    pool = bench.task.sessions.lookups
    assert len(pool._slow) == 40
    resolver.silent = ".none.example"
    bench.run(100, 1.0)
    assert len(bench.lines(b"status=sent")) == 40
    assert not pool._slow


@pytest.mark.parametrize("each", [4, 10])
def test_many_senders_of_silent_domains_delay_no_other_for_long(each: int) -> None:
    bench, resolver = made(delays_s=(7200.0,))
    for number in range(50):
        bench.put(*silent(each, number), sender=b"big%d@a.example" % number)
    bench.run(0.2)
    assert resolver.underway == LIMIT
    assert p95(delays_of_small_mail(bench)) <= 1.5
    assert resolver.most <= LIMIT
    bench.run(50 * each / MOST_SLOW * SILENT_S + SILENT_S, 2.0)
    assert len(bench.lines(b"status=deferred")) == 50 * each
    pool = bench.task.sessions.lookups
    assert (pool.waiting, pool.underway, pool._ended, pool._slow_underway) == (0, 0, set(), set())


def test_slow_look_ups_go_on_while_nobody_waits_for_their_workers() -> None:
    bench, resolver = made()
    bench.put(*silent(60), sender=b"big@a.example")
    bench.put(*silent(30, 1), sender=b"big@b.example")
    bench.run(SILENT_S - 1, 1.0)
    assert (resolver.underway, len(resolver.asked)) == (90, 90)


def test_a_few_messages_to_silent_domains_leave_one_turn_to_every_sender() -> None:
    bench, resolver = made()
    for number in range(60):
        bench.put(*silent(30, number), sender=b"big%d@a.example" % number)
    bench.run(1)
    assert resolver.underway == LIMIT
    bench.put(b"r@small.example", sender=b"s@b.example")
    bench.run(SILENT_S)
    assert bench.lines(b"@small.example", b"status=sent")
    assert resolver.asked.index("small.example") <= 2 * LIMIT


def test_waiting_costs_neither_time_nor_an_attempt() -> None:
    bench, resolver = made(queuecache=0)
    bench.put(*silent(300))
    for _ in range(4):
        bench.run(SILENT_S, 1.0)
        ended = len(resolver.asked) - resolver.underway
        assert len(bench.lines(b"status=deferred")) == ended
    bench.run(SILENT_S, 1.0)
    assert len(set(resolver.asked)) == 300
    assert resolver.pressed == [True, False]
    assert bench.task.sessions.lookups.waiting == bench.task.sessions.lookups.underway == 0
    assert bench.task.held == 0


def test_a_domain_that_a_big_message_waits_for_too_is_looked_up_in_the_turn_of_the_small_one() -> None:
    bench, resolver = made()
    bench.put(*silent(150), b"r@shared.example")
    bench.run(1)
    assert "shared.example" not in resolver.asked
    bench.put(b"small@shared.example", sender=b"s@b.example")
    bench.run(1)
    assert len(bench.lines(b"@shared.example", b"status=sent")) == 2
    assert resolver.asked.count("shared.example") == 1


def test_what_the_cache_tells_needs_no_worker() -> None:
    bench, resolver = made()
    for number in range(60):
        bench.put(*silent(30, number), sender=b"big%d@a.example" % number)
    bench.run(1)
    assert resolver.underway == LIMIT
    bench.names.cached["known.example"] = HOST
    bench.names.cached["gone.example"] = UNKNOWN
    bench.put(b"r@known.example", b"r@gone.example", sender=b"big1@a.example")
    bench.run(1)
    assert bench.lines(b"@known.example", b"status=sent")
    assert bench.lines(b"@gone.example", b"status=deferred")
    assert not {"known.example", "gone.example"}.intersection(resolver.asked)


def test_a_session_that_stands_serves_while_its_domain_waits_to_be_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "SLOW_S", 1000.0)  # it waits for long
    bench, resolver = made()
    bench.network.latency_s = 0.3  # there is always one under way
    bench.put(b"r@busy.example")
    bench.run(2)
    for number in range(60):
        bench.put(*silent(30, number), sender=b"big%d@a.example" % number)
    for number in range(80):
        bench.put(b"r%d@busy.example" % number, sender=b"s@b.example")
        bench.run(0.25)
    assert bench.task.sessions.lookups.waiting > 0
    bench.run(2)
    assert len(bench.lines(b"@busy.example", b"status=sent")) == 81
    assert resolver.asked.count("busy.example") == 1


def test_a_domain_whose_mail_was_given_back_is_not_looked_up() -> None:
    bench, resolver = made()
    bench.put(*silent(200))
    bench.run(1)
    assert bench.task.sessions.lookups.waiting == 109
    over = stopped(bench, 5)
    bench.run(1)
    assert len(over) == 1
    assert bench.count(Area.INCOMING) == 200
    bench.run(2 * SILENT_S, 1.0)
    assert len(resolver.asked) == 91


def test_a_reload_gives_waiting_mail_back_and_looks_it_up_again() -> None:
    bench, _ = made()
    bench.put(*silent(150), b"r@shared.example")
    bench.run(1)
    bench.task.sessions.reload(bench.task._settings)
    bench.run(4 * SILENT_S, 0.5)
    assert bench.lines(b"@shared.example", b"status=sent")
    assert len(bench.lines(b"status=deferred")) == 150
    assert bench.task.sessions.lookups.waiting == 0


def test_destinations_are_forgotten_after_they_waited() -> None:
    bench, _ = made()
    bench.put(*silent(300))
    bench.run(5 * SILENT_S, 1.0)
    assert bench.task.sessions.schedule.destinations == {}
