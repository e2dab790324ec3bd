"""A start over much mail at rest: new mail and what is due wait for nothing that is only learnt."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.log.control import piece_reading
from mailismus.queue.providers.log.read.envelopes import Stretch
from mailismus.queue.providers.log.read.seen import SeenSlice, look_at
from tests.contracts.bench import ids
from tests.log.story import Story

SHORT_S, LONG_S = 1.0, 36_000.0


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue with 60 messages that wait for hours, in small pieces; what was written last is not in the positions."""
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 4096)
    story = Story()
    due_at = story.bench.now() + LONG_S
    for _ in range(60):
        story.bench.put(content=b"x" * 40_000)
        story.bench.defer(story.bench.take_ids(), due_at)
    story.harness.round(story.queue)
    return story


def _fired(story: Story, taking: Deferred[list[Message]]) -> list[Message]:
    """What is taken. It must come before all of the log is known."""
    taken = story.bench.wait(taking)
    assert not story.queue.parts.resting.is_known
    return taken


def test_new_mail_does_not_wait_for_what_is_learnt(story: Story) -> None:
    story.crash()
    taking = story.queue.take(Area.INCOMING, 100, story.bench.now() + 1, None)
    story.harness.advance(0.001)
    assert not taking.called
    spool_id = story.bench.put()
    assert ids(_fired(story, taking)) == [QueueId(spool_id, 1)]


def _deferred(story: Story) -> SpoolId:
    """A message that is due soon, in the last segment."""
    spool_id = story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + SHORT_S + 61)
    return spool_id


def test_the_positions_lead_to_what_is_due(story: Story) -> None:
    spool_id = _deferred(story)
    story.complete_segment()
    story.harness.round(story.queue)
    story.crash()
    story.harness.clock.rightNow += 70.0
    assert ids(_fired(story, story.queue.take(Area.DEFERRED, 100, story.bench.now(), None))) == [QueueId(spool_id, 1)]


def test_what_came_since_the_positions_were_written_is_read_first(story: Story) -> None:
    spool_id = _deferred(story)
    story.crash()
    story.harness.clock.rightNow += 70.0
    assert ids(_fired(story, story.queue.take(Area.DEFERRED, 100, story.bench.now(), None))) == [QueueId(spool_id, 1)]


def test_a_take_that_waits_for_what_is_learnt_holds_up_none_of_another_area(story: Story) -> None:
    story.crash()
    bounces = story.queue.take(Area.BOUNCES, 100, story.bench.now(), None)
    story.harness.advance(0.001)
    spool_id = story.bench.put()
    incoming = story.queue.take(Area.INCOMING, 100, story.bench.now(), None)
    assert ids(_fired(story, incoming)) == [QueueId(spool_id, 1)]
    assert not bounces.called
    assert story.bench.wait(bounces) == []
    assert story.queue.parts.resting.is_known


def test_a_stop_ends_takes_that_wait(story: Story) -> None:
    story.crash()
    taking = story.queue.take(Area.INCOMING, 100, story.bench.now(), None)
    closed = story.queue.close()
    assert _fired(story, taking) == []
    story.bench.wait(closed)


def test_entries_are_counted_when_all_is_known_and_give_way(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def look(stretch: Stretch, segment: int, most_entries: int, *, is_last_piece: bool, only: SpoolId | None) -> SeenSlice:
        looks.append(segment)
        return look_at(stretch, segment, most_entries, is_last_piece=is_last_piece, only=only)

    monkeypatch.setattr(piece_reading, "look_at", look)
    story.crash()
    while not story.queue.parts.resting.is_known:
        assert not looks
        story.harness.advance(0.0001)
    for _ in range(10):
        story.harness.settle_down()
    assert story.queue.parts.release.scan.has_run
    assert looks
    assert story.queue.parts.resting.amounts[Area.DEFERRED].entries == 60


def test_positions_that_are_written_before_all_is_learnt_pass_nothing(story: Story) -> None:
    """The next start too finds what this one had not come to."""
    story.crash()
    before = story.queue.rounds.rounds
    story.queue.rounds.run()
    while story.queue.rounds.rounds == before:
        story.harness.advance(0.001)
    assert not story.queue.parts.resting.is_known
    story.crash()
    story.harness.advance(LONG_S + 1.0)
    found: list[QueueId] = []
    while taken := story.bench.take_ids(Area.DEFERRED):
        found += taken
    assert len(set(found)) == 60
