"""The attempts of an entry over every provider: the manager writes them, and stops, rests, acts and reports keep them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mailismus.mail.attempts import LAST, attempts_of
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.acts.act import ActKind
from mailismus.queue.interface import Area, Entry
from tests.contracts.acting import ActBench
from tests.contracts.harness import DurableHarness
from tests.contracts.samples import Contract
from tests.fakes.disk import MemoryDisk

HOSTS = (b"mx1.d.example[192.0.2.1]:25", b"mx2.d.example[192.0.2.2]:25", b"none")


def fail(bench: ActBench, number: int, kind: OutcomeKind = OutcomeKind.DEFERRED) -> None:
    """The entry of the only message comes out for its attempt of this number, which fails."""
    area = Area.INCOMING if number == 1 else Area.DEFERRED
    bench.harness.advance(0.1 if number == 1 else 1000)
    for _ in range(100):
        if messages := bench.wait(bench.manager.take(area, 10)):
            break
        bench.harness.advance(0.1)
    (message,) = messages
    reply = Reply(451 if kind is OutcomeKind.DEFERRED else 550, b"4.7.1", b"reply %d \xff, |%%+" % number)
    outcome = Outcome(kind, reply, HOSTS[number % 3], tls=b"encrypt" if number % 3 else b"")
    bench.manager.settle([(message, message.entries, outcome)])
    bench.pass_seconds(1)


def told(entry: Entry) -> list[tuple[int, bytes, bytes, str]]:
    return [(one.number, one.host, one.reply, one.decided) for one in attempts_of(entry.words)]


def wanted(count: int, decided: str = "deferred") -> list[tuple[int, bytes, bytes, str]]:
    """The first attempt and the last ones, of so many."""
    numbers = [1, *range(max(2, count - LAST + 1), count + 1)]
    last = {count: decided}
    return [(n, HOSTS[n % 3], b"451 4.7.1 reply %d \xff, |%%+" % n, last.get(n, "deferred")) for n in numbers]


class DurableHistoryContract(Contract):
    """Over a stop after each attempt, clean or not."""

    @pytest.fixture
    def harness(self) -> Iterator[DurableHarness]:
        raise NotImplementedError("a provider's test module brings it")

    @pytest.mark.parametrize("has_rested", [False, True], ids=["at once", "after a while"])
    def test_attempts_are_kept_over_stops_an_act_and_its_undoing(self, harness: DurableHarness, *, has_rested: bool) -> None:
        bench = ActBench(harness, harness.make(), MemoryDisk())
        bench.put()
        for number in range(1, 11):
            fail(bench, number)
            if has_rested:
                bench.pass_seconds(20)
            bench.wait(bench.acts.stop())
            bench = ActBench(harness, (harness.crash if number % 2 else harness.restart)(bench.queue), bench.disk)
            ((_, entry),) = bench.search()
            assert (told(entry), entry.attempts) == (wanted(number), number)
        for kind in (ActKind.HOLD, ActKind.REDIRECT, ActKind.DELETE, ActKind.BOUNCE):
            act = bench.order(kind)
            assert [told(entry) for _, entry in bench.search()] == [wanted(10)]
            bench.undo(act)
            assert [(told(entry), entry.area) for _, entry in bench.search()] == [(wanted(10), Area.DEFERRED)]
        fail(bench, 11, OutcomeKind.FAILED)
        ((_, entry),) = bench.search()
        assert entry.area is Area.BOUNCES
        *before, last = told(entry)
        assert [number for number, *_ in before] == [1, 7, 8, 9, 10]
        assert (last[0], last[2][:3], last[3]) == (11, b"550", "bounced")
        harness.close()
