"""Work on an envelope begins while it is moved: until a record of that is durable, it waits where it was moved to."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.log.control.compaction import Compaction
from tests.contracts.bench import addresses
from tests.fakes.worker import ACT_S
from tests.log.story import Story
from tests.log.test_denied import no_turn

GATHERED_S = 0.011
"""Seconds after which a batch without mail is written."""


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue that is not compacted."""
    monkeypatch.setattr(Compaction, "turn", no_turn)
    return Story()


def take_and_move(story: Story, count: int = 1) -> list[QueueId]:
    """Entries of one message are out, and its envelope is on its way to another place: no record says anything of work."""
    story.bench.put(addresses(count))
    queue_ids = story.bench.take_ids()
    story.complete_segment()  # and a round finds that they are out
    moves = story.queue.parts.moves
    assert story.harness.wait(Deferred.fromCoroutine(moves.prepare([1], 1 << 20, 10))) == 1
    moves.push()
    story.harness.advance(GATHERED_S)
    return queue_ids


def rounds(story: Story) -> None:
    for _ in range(2):
        story.harness.round(story.queue)


def test_a_start_finds_it_before_its_start_record_is_durable(story: Story) -> None:
    queue_ids = take_and_move(story)
    rounds(story)  # the first one asks for the record, which goes with the next batch: there is none
    assert story.kinds().endswith("VM")
    story.crash()
    assert story.bench.take_ids() == queue_ids


def test_a_start_finds_it_before_its_mark_can_be_durable(story: Story) -> None:
    queue_ids = take_and_move(story)
    story.harness.round(story.queue)
    envelope = next(iter(story.queue.parts.ledger.working))
    assert not envelope.may_be_marked
    story.crash()
    assert story.bench.take_ids() == queue_ids


@pytest.mark.parametrize("starts", [1, 2, 3])
def test_starts_find_it_by_its_start_record_and_its_move(story: Story, starts: int) -> None:
    queue_ids = take_and_move(story)
    story.harness.round(story.queue)
    story.bench.put([b"filler@d.example"])  # its batch takes the start record along
    story.bench.remove(story.bench.take_ids())
    rounds(story)
    for _ in range(starts):
        story.complete_segment()
        rounds(story)
        story.crash()
        assert story.bench.take_ids() == queue_ids


@pytest.mark.parametrize("starts", [1, 2, 3])
def test_starts_find_what_an_outcome_has_left_of_it(story: Story, starts: int) -> None:
    first, second = take_and_move(story, 2)
    story.bench.remove([first])
    for _ in range(starts):
        rounds(story)
        story.complete_segment()
        rounds(story)
        story.crash()
        assert story.bench.take_ids() == [second]


def test_the_content_of_its_replacement_is_where_that_refers_to(story: Story) -> None:
    """It was asked for before the copy was durable, and refers to the former place of the content. The copy is over with its
    envelope, and its segment is used again while the entry waits in memory."""
    story.bench.put(content=b"x" * 5000)
    (queue_id,) = story.bench.take_ids()
    story.complete_segment()
    parts = story.queue.parts
    while parts.opened.writer.segments[2].room > 130_000:
        story.bench.put([b"filler@d.example"], b"y" * 60_000)
        story.bench.remove(story.bench.take_ids())
    assert story.harness.wait(Deferred.fromCoroutine(parts.moves.prepare([1], 1 << 20, 10))) == 1
    parts.moves.push()
    while parts.opened.writer.sequence == parts.commits.applied_sequence:
        story.harness.advance(ACT_S)
    later = Settlement(queue_id, Area.DEFERRED, story.bench.now() + 30, 1)
    story.bench.commit([story.bench.submission(content=b"z" * 130_000)], [later])  # in the next segment
    story.complete_segment()
    rounds(story)
    assert 2 not in parts.segments.in_use()
    assert story.bench.read(queue_id.spool_id) == b"x" * 5000
