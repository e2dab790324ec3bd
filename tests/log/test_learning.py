"""A start over much mail at rest: new mail and what is due wait for nothing that is only learnt."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.log.control import loading
from mailismus.queue.providers.log.read.envelopes import Stretch
from tests.contracts.bench import ids
from tests.log.test_resting import Rest

SHORT_S, LONG_S = 1.0, 36_000.0


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Rest:
    """A queue with 60 messages that wait for hours, in small pieces; what was written last is not in the positions."""
    monkeypatch.setattr(loading, "PIECE_BYTES", 4096)
    rest = Rest()
    due_at = rest.bench.now() + LONG_S
    for _ in range(60):
        rest.bench.put(content=b"x" * 40_000)
        rest.bench.defer(rest.bench.take_ids(), due_at)
    rest.harness.round(rest.queue)
    return rest


def _fired(rest: Rest, taking: Deferred[list[Message]]) -> list[Message]:
    """What is taken. It must come before all of the log is known."""
    taken = rest.bench.wait(taking)
    assert not rest.queue.parts.resting.is_known
    return taken


def test_new_mail_does_not_wait_for_what_is_learnt(rest: Rest) -> None:
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    taking = rest.queue.take(Area.INCOMING, 100, rest.bench.now() + 1, None)
    rest.harness.advance(0.001)
    assert not taking.called
    spool_id = rest.bench.put()
    assert ids(_fired(rest, taking)) == [QueueId(spool_id, 1)]


def _deferred(rest: Rest) -> SpoolId:
    """A message that is due soon, in the last segment."""
    spool_id = rest.bench.put()
    rest.bench.defer(rest.bench.take_ids(), rest.bench.now() + SHORT_S + 61)
    return spool_id


def test_the_positions_lead_to_what_is_due(rest: Rest) -> None:
    spool_id = _deferred(rest)
    rest.fill_segment()
    rest.harness.round(rest.queue)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.harness.clock.rightNow += 70.0
    assert ids(_fired(rest, rest.queue.take(Area.DEFERRED, 100, rest.bench.now(), None))) == [QueueId(spool_id, 1)]


def test_what_came_since_the_positions_were_written_is_read_first(rest: Rest) -> None:
    spool_id = _deferred(rest)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.harness.clock.rightNow += 70.0
    assert ids(_fired(rest, rest.queue.take(Area.DEFERRED, 100, rest.bench.now(), None))) == [QueueId(spool_id, 1)]


def test_a_take_with_nothing_due_ends_when_another_area_has_mail(rest: Rest) -> None:
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    rest.bench.put()
    taking = rest.queue.take(Area.BOUNCES, 100, rest.bench.now(), None)
    rest.harness.advance(loading.WAIT_S)
    assert _fired(rest, taking) == []


def test_a_stop_ends_takes_that_wait(rest: Rest) -> None:
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    taking = rest.queue.take(Area.INCOMING, 100, rest.bench.now(), None)
    closed = rest.queue.close()
    assert _fired(rest, taking) == []
    rest.bench.wait(closed)


def test_entries_are_counted_when_all_is_known_and_give_way(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[int] = []
    read = loading.read_piece

    def read_whole(stretch: Stretch, segment: int, most_bytes: int, *, is_last_piece: bool) -> loading.ReadPiece:
        whole.append(segment)
        return read(stretch, segment, most_bytes, is_last_piece=is_last_piece)

    monkeypatch.setattr(loading, "read_piece", read_whole)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    while not rest.queue.parts.resting.is_known:
        assert not whole
        rest.harness.advance(0.0001)
    for _ in range(10):
        rest.harness.settle_down()
    assert rest.queue.parts.release.scan.has_run
    assert whole
