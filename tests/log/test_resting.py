"""Entries that rest in the log alone, and envelopes that are written again."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.control import ledger, loading, rounds
from mailismus.queue.providers.log.provider import LogQueue
from tests.contracts.bench import Bench, addresses
from tests.fakes.shares import Most
from tests.log.harness import LogHarness


class Rest:
    """A queue on a bench."""

    def __init__(self) -> None:
        self.harness = LogHarness()
        self.bench = Bench(self.harness, self.harness.open())

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    @property
    def loaded(self) -> int:
        """Entries in memory."""
        return self.queue.parts.working_set.entry_count

    def fill_segment(self) -> None:
        """Mail that comes and goes until the present segment is complete."""
        writer = self.queue.parts.opened.writer
        first = writer.current
        while writer.current is first:
            self.bench.put([b"filler@d.example"], b"x" * 100_000)
            self.bench.remove(self.bench.take_ids())


@pytest.fixture
def rest() -> Rest:
    return Rest()


def test_what_is_deferred_for_long_is_not_in_memory_and_comes_in_time(rest: Rest) -> None:
    spool_id = rest.bench.put()
    rest.bench.defer(rest.bench.take_ids(), rest.bench.now() + 3600)
    assert rest.loaded == 0
    assert rest.queue.next_due(Area.DEFERRED) == pytest.approx(rest.bench.now() + 3600, abs=5)
    assert rest.bench.take_ids(Area.DEFERRED) == []
    rest.harness.advance(3601)
    assert rest.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 1)]


def test_a_flush_does_not_hold_for_what_is_deferred_behind_it(rest: Rest) -> None:
    spool_id = rest.bench.put()
    rest.bench.defer(rest.bench.take_ids(), rest.bench.now() + 3600)
    assert rest.bench.wait(rest.queue.visit_all(Filter(), rest.bench.now())).entries == 1
    taken = rest.bench.take_ids(Area.DEFERRED)
    assert taken == [QueueId(spool_id, 1)]
    rest.bench.defer(taken, rest.bench.now() + 3600, attempts=2)
    assert rest.bench.take_ids(Area.DEFERRED) == []
    assert rest.loaded == 0


def test_new_mail_rests_when_memory_is_full_and_goes_out_all_the_same(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_NEW", 2)
    spool_ids = [rest.bench.put() for _ in range(10)]
    assert rest.loaded == 2
    taken = [queue_id for _ in range(5) for queue_id in rest.bench.take_ids()]
    assert sorted(taken) == [QueueId(spool_id, 1) for spool_id in spool_ids]
    assert rest.bench.remove(taken) == spool_ids


def test_memory_is_bounded_while_much_is_due(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_LOADED", 10)
    monkeypatch.setattr(loading, "MOST_NEAR", 5)
    due_at = rest.bench.now() + 100
    for _ in range(40):
        rest.bench.put()
        rest.bench.defer(rest.bench.take_ids(), due_at)
    rest.harness.advance(101)
    seen = 0
    for _ in range(200):
        taken = rest.bench.take_ids(Area.DEFERRED, limit=3)
        assert rest.loaded <= 13
        rest.bench.remove(taken)
        seen += len(taken)
        rest.harness.advance(0.1)
    assert seen == 40


def test_an_envelope_that_hangs_is_written_again_and_the_suffix_goes_on(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SUFFIX_BYTES", 2 << 20)
    spool_id = rest.bench.put(addresses(3))
    taken = rest.bench.take_ids()
    rest.bench.remove(taken[:1])
    (envelope,) = rest.queue.ledger.working
    pin = envelope.pin
    for _ in range(5):
        rest.fill_segment()
        rest.harness.settle_down()
        rest.harness.round(rest.queue)
    assert envelope.pin > pin
    rest.bench.remove(taken[1:2])
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert rest.bench.take_ids() == [QueueId(spool_id, 3)]
    assert rest.bench.read(spool_id).startswith(b"Received")


def test_a_message_with_several_envelopes_survives_failed_segments(rest: Rest) -> None:
    spool_id = rest.bench.put(addresses(3))
    first, second, third = rest.bench.take_ids()
    rest.bench.defer([second], rest.bench.now() + 10)
    rest.harness.disk.fault = lambda act, path: OSError(5, "bad disk") if act == "sync" and "/q/log/" in path else None
    done = rest.queue.commit([rest.bench.submission()], [])
    done.addErrback(lambda failure: None)
    rest.harness.settle_down()
    rest.harness.mend(rest.queue)
    rest.harness.advance(20)
    rest.bench.remove([first])
    for _ in range(3):
        rest.harness.round(rest.queue)
    assert rest.bench.read(spool_id).startswith(b"Received")
    rest.bench.defer([third], rest.bench.now() + 10, attempts=2)
    assert not rest.queue.parts.segments.failed
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.harness.advance(30)
    assert rest.bench.take_ids(Area.DEFERRED) == [second, third]
    assert rest.bench.read(spool_id).startswith(b"Received")


def test_what_was_held_back_for_its_sender_is_read_as_soon_as_there_is_room(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PIECE_BYTES", 4096)
    monkeypatch.setattr(loading, "MOST_LOADED", 20)
    monkeypatch.setattr(loading, "MOST_NEAR", 10)
    due_at = rest.bench.now() + 100
    for _ in range(100):
        rest.bench.put()
        rest.bench.defer(rest.bench.take_ids(), due_at)
    rest.harness.advance(101)
    began_s, seen = rest.bench.now(), 0
    for _ in range(200):
        taken = rest.bench.take_ids(Area.DEFERRED, limit=10, shares=Most(2))
        assert rest.loaded <= 23
        rest.bench.remove(taken)
        seen += len(taken)
        rest.queue.room_again()
        if seen == 100:
            break
    assert seen == 100
    assert rest.bench.now() - began_s < 2
    assert rest.queue.parts.loading.pieces_read <= 500  # of 100
