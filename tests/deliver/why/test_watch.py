"""What begins to hold mail back, and what holds it no more: counters and log records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailismus.deliver.metrics import METRICS
from mailismus.deliver.schedule.destdb import HostFailure
from mailismus.deliver.why import watch
from mailismus.deliver.why.hold import HOLDS, PLACES, Hold, Reason
from mailismus.deliver.why.sentences import Times
from mailismus.deliver.why.watch import HoldWatch
from mailismus.mail.reply import Reply
from tests.deliver.harness import Bench
from tests.deliver.known_hosts import destdb, fail, succeed
from tests.fakes.sink import Act

DOWN = Reply(451, b"4.4.1", b"connect failed: Connection refused")
SLOW = Reason(Hold.SLOW, "mx.example", "waits for mx.example: it has not replied for 2 s")


class Holds:
    """A watch over holds that the test makes."""

    def __init__(self, monkeypatch: Any) -> None:
        self.hosts = destdb()
        self.watch = HoldWatch(self.hosts)
        self.present: list[Reason] = []
        self.now = 5000.0
        monkeypatch.setattr(watch, "find_holds", lambda *_: self.present)

    def look(self, *present: Reason, after_s: float = watch.LOOK_S) -> None:
        self.now += after_s
        self.present = list(present)
        view: Any = None
        self.watch.look(view, Times(1_700_000_000.0 + self.now, self.now, UTC))


def records(events: Sequence[LogEvent]) -> list[str]:
    texts = [str(formatEvent(event)) for event in events]
    return [text for text in texts if "eld back (" in text]


def test_a_hold_counts_when_it_has_lasted_for_a_second(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    with capturedLogs() as events:
        holds.look(SLOW)
        holds.look(SLOW)
        assert records(events) == []
        assert holds.watch.present()[Hold.SLOW] == 0
        holds.look(SLOW)
        assert records(events) == ["Held back (slow), mx.example: waits for mx.example: it has not replied for 2 s"]
        for _ in range(10):
            holds.look(SLOW)
        assert len(records(events)) == 1
        assert holds.watch.begun[Hold.SLOW] == holds.watch.present()[Hold.SLOW] == 1
        holds.look()
        assert holds.watch.is_busy
        holds.look()
        assert records(events)[1:] == ["No longer held back (slow), mx.example: after 6 s"]
        assert (holds.watch.begun[Hold.SLOW], holds.watch.present()[Hold.SLOW]) == (1, 0)
        assert not holds.watch.is_busy


def test_a_hold_that_pauses_for_a_moment_is_one_hold(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    with capturedLogs() as events:
        for number in range(40):
            holds.look(*([SLOW] if number % 2 else []))
    assert len(records(events)) == 1
    assert holds.watch.begun[Hold.SLOW] == 1


def test_a_hold_that_is_over_at_once_is_none(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    with capturedLogs() as events:
        for _ in range(10):
            holds.look(SLOW)
            for _ in range(4):
                holds.look()
    assert records(events) == []
    assert holds.watch.begun[Hold.SLOW] == 0


def test_many_holds_write_few_records_and_the_rest_is_counted(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    many = [Reason(Hold.SLOW, f"mx{number}.example", "waits") for number in range(100)]
    with capturedLogs() as events:
        for _ in range(4):
            holds.look(*many)
        assert len(records(events)) == watch.BURST
        assert holds.watch.begun[Hold.SLOW] == 100
        for _ in range(4):
            holds.look()
        assert len(records(events)) == 2 * watch.BURST
    (record,) = [record for record in records(events) if "left out" in record]
    assert record.endswith(" (and 80 records of other holds were left out)")


def test_the_holds_that_are_known_are_bounded(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    for _ in range(4):
        holds.look(*(Reason(Hold.SLOW, f"mx{number}.example", "waits") for number in range(3 * watch.MAX_OPEN)))
    assert holds.watch.present()[Hold.SLOW] == watch.MAX_OPEN


def test_hostile_words_do_not_reach_the_log(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    with capturedLogs() as events:
        for _ in range(4):
            holds.look(Reason(Hold.SLOW, "mx\x1b.example\n", "waits {hold} for \x9b2J\r\n\u202e"))
    (record,) = records(events)
    assert record.isprintable()
    assert record.isascii()
    assert "waits {hold} for" in record


def test_the_death_of_a_host_begins_and_ends_at_once(monkeypatch: Any) -> None:
    holds = Holds(monkeypatch)
    with capturedLogs() as events:
        fail(holds.hosts, "192.0.2.1", DOWN, HostFailure.NO_CONNECTION, holds.now)
        assert holds.watch.is_busy
        holds.look()
        (record,) = records(events)
        assert record.startswith("Held back (dead), 192.0.2.1:25: waits for 192.0.2.1:25: no session since ")
        assert record.endswith("; 451 4.4.1 connect failed: Connection refused")
        assert holds.watch.present()[Hold.DEAD] == 1
        succeed(holds.hosts, "192.0.2.1", holds.now + 10)
        holds.look(after_s=10)
        assert records(events)[1:] == ["No longer held back (dead), 192.0.2.1:25: after 10 s"]
        assert holds.watch.present()[Hold.DEAD] == 0
        fail(holds.hosts, "2001:db8::1", DOWN, HostFailure.NO_CONNECTION, holds.now)
        holds.look()
        holds.hosts.forget_deaths()
        holds.look()
    assert records(events)[2].startswith("Held back (dead), [2001:db8::1]:25: ")
    assert holds.watch.begun[Hold.DEAD] == 2


def test_every_hold_has_a_counter_and_a_gauge() -> None:
    bench = Bench()
    tables = {metric.name: metric.read(bench.task) for metric in METRICS}
    for name in ("mailismus_deliver_holds_total", "mailismus_deliver_holds"):
        reading = tables[name]
        assert isinstance(reading, dict)
        assert set(reading) == {(hold.value,) for hold in HOLDS}
    assert set(HOLDS) | PLACES == set(Hold)
    assert not set(HOLDS) & PLACES


def test_mail_that_goes_at_once_makes_no_record() -> None:
    bench = Bench()
    bench.sink()
    bench.task.start()
    with capturedLogs() as events:
        for number in range(500):
            bench.put(b"r%d@b.example" % number)
        bench.run(10)
    assert bench.statuses() == {"sent": 500}
    assert records(events) == []
    assert not bench.task.holds.is_busy
    assert bench.task._next_look is None


def test_a_silent_host_is_told_of_once_until_it_replies() -> None:
    bench = Bench(maxserverconnections=1)
    sink = bench.sink({"dot": Act.SILENCE})
    bench.task.start()
    with capturedLogs() as events:
        for number in range(8):
            bench.put(b"r%d@b.example" % number)
        bench.run(10)
        (record,) = records(events)
        assert record == "Held back (connections), 192.0.2.1: waits for 192.0.2.1: 1 of 1 connections busy"
        sink.script.clear()
        for connection in sink.connections:
            connection.transport.abortConnection()  # type: ignore[union-attr]  # it is connected
        bench.run(10)
        assert records(events)[1].startswith("No longer held back (connections), 192.0.2.1: after ")
    assert bench.task.holds.begun[Hold.CONNECTIONS] == 1
