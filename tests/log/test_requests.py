"""Requests about the same entries, one behind the other, and what a failed one leaves."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from tests.log.story import Story


@pytest.fixture
def story() -> Story:
    return Story()


def fail_next_sync(story: Story) -> None:
    faults = [OSError(5, "bad disk")]
    story.harness.disk.fault = lambda act, path: faults.pop() if faults and act == "sync" and "/q/log/" in path else None


def begin_again(story: Story) -> None:
    """Wait until the log can be written again."""
    while story.queue.commits.trouble is not None:
        story.harness.advance(0.001)


def one_taken(story: Story) -> QueueId:
    story.bench.put()
    (taken,) = story.bench.take_ids()
    return taken


def test_what_is_asked_for_while_an_entry_is_being_settled_is_done_behind_it(story: Story) -> None:
    taken = one_taken(story)
    deferred = story.queue.commit([], [Settlement(taken, Area.DEFERRED, story.bench.now() + 3600, 1)])
    removed = story.queue.commit([], [Settlement(taken, None)])
    story.bench.wait(deferred)
    story.bench.wait(removed)
    story.crash()
    story.harness.advance(4000)
    assert story.bench.take_ids(Area.DEFERRED) == []


def test_an_entry_whose_settlement_failed_is_moved_out_of_a_failed_segment(story: Story) -> None:
    taken = one_taken(story)
    fail_next_sync(story)
    with pytest.raises(Unavailable):
        story.bench.wait(story.queue.commit([story.bench.submission()], [Settlement(taken, None)]))
    begin_again(story)
    for _ in range(3):
        story.bench.put()
        story.rounds()
    assert story.queue.parts.segments.failed == set()
    story.crash()
    assert taken in story.bench.take_ids()


def test_what_lives_in_a_failed_segment_is_written_again_at_once(story: Story) -> None:
    """Before any mail is accepted again. No round of marks is needed, which would see to it later."""
    taken = one_taken(story)
    story.queue.rounds.stop()
    fail_next_sync(story)
    with pytest.raises(Unavailable):
        story.bench.wait(story.queue.commit([story.bench.submission()], []))
    begin_again(story)
    (failed,) = story.queue.parts.segments.failed
    (envelope,) = story.queue.parts.working_set.messages[taken.spool_id].envelopes()
    assert failed < envelope.segment == envelope.content_segment


def test_mail_that_was_refused_stays_away_though_nothing_else_is_written_before_a_kill(story: Story) -> None:
    story.bench.remove([one_taken(story)])
    fail_next_sync(story)
    with pytest.raises(Unavailable):
        story.bench.wait(story.queue.commit([story.bench.submission()], []))
    begin_again(story)
    story.harness.clock.calls.clear()
    story.harness.disk.kill()
    story.bench.queue = story.harness.open()
    assert story.bench.take_ids() == []
