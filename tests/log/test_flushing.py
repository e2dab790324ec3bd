"""Flushes of what rests in the log: deliveries do not wait for their end, and each entry is told once."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Flushed
from mailismus.queue.providers.log.index.piece import PieceRest
from tests.contracts.bench import addresses
from tests.log.story import Story, story_at_rest

COUNT = 60
LONG_S = 36_000.0
EVERYTHING = Filter()
OURS = Filter(matches=lambda message, entry: message.sender == b"a@b.example")


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue with `COUNT` messages at rest, in several segments of many pieces."""
    return story_at_rest(monkeypatch, [LONG_S] * COUNT, content_bytes=40_000)


def _taken(story: Story) -> list[QueueId]:
    """All that is due, taken in small steps."""
    taken: list[QueueId] = []
    while found := story.bench.take_ids(Area.DEFERRED, limit=7):
        taken += found
    return taken


def test_a_flush_of_everything_reads_nothing(story: Story) -> None:
    reading = story.queue.parts.reading
    before = reading.pieces_read, reading.slices_read
    assert story.bench.wait(story.queue.visit_all(EVERYTHING, story.bench.now())) == Flushed(COUNT)
    assert (reading.pieces_read, reading.slices_read) == before
    taken = _taken(story)
    assert len(taken) == len(set(taken)) == COUNT


def test_of_a_message_with_several_recipients_each_is_told(story: Story) -> None:
    story.bench.put(addresses(5))
    story.bench.defer(story.bench.take_ids(), story.bench.now() + LONG_S)
    assert story.bench.wait(story.queue.visit_all(EVERYTHING, story.bench.now())).entries == COUNT + 5
    assert len(_taken(story)) == COUNT + 5


@pytest.mark.parametrize("wanted", [EVERYTHING, OURS], ids=["everything", "some"])
def test_what_a_start_has_not_learnt_is_flushed(story: Story, wanted: Filter) -> None:
    story.harness.round(story.queue)
    story.crash()
    assert not story.queue.parts.resting.is_known
    assert story.bench.wait(story.queue.visit_all(wanted, story.bench.now())).entries == COUNT
    taken = _taken(story)
    assert len(taken) == len(set(taken)) == COUNT


def test_deliveries_begin_before_a_flush_of_some_has_ended(story: Story) -> None:
    flushed: list[Flushed] = []
    story.queue.visit_all(OURS, story.bench.now()).addCallback(flushed.append)
    story.bench.wait(story.queue.ready(Area.DEFERRED))
    taken = story.bench.take_ids(Area.DEFERRED, limit=7)
    assert taken
    assert not flushed
    for _ in range(10):
        story.harness.settle_down()
    assert [one.entries for one in flushed] == [COUNT]
    taken += _taken(story)
    assert len(taken) == len(set(taken)) == COUNT


def test_what_is_loaded_by_others_before_a_flush_comes_to_it_is_due_too(story: Story) -> None:
    newest = story.bench.search()[-1][0].spool_id
    flushing = story.queue.visit_all(OURS, story.bench.now())
    assert story.bench.read(newest).startswith(b"x")
    assert story.bench.wait(flushing).entries == COUNT
    taken = _taken(story)
    assert len(taken) == len(set(taken)) == COUNT


def test_what_was_deferred_while_its_piece_was_read_is_flushed() -> None:
    """The read began before it was there, and ends behind the flush."""
    story = Story()
    first, second = story.bench.put(), story.bench.put()
    taken = story.bench.take_ids()
    story.bench.defer(taken[:1], story.bench.now() + LONG_S)
    (piece,) = story.queue.parts.resting.all()
    story.queue.parts.resting.begin_reading(piece)
    story.bench.defer(taken[1:], story.bench.now() + LONG_S)
    assert list(story.queue.parts.resting.all()) == [piece]
    assert story.bench.wait(story.queue.visit_all(EVERYTHING, story.bench.now())).entries == 2
    story.queue.parts.resting.replace(piece, PieceRest({}, refers=set(piece.refers)))
    assert story.queue.next_due(Area.DEFERRED) == 0.0
    assert QueueId(second, 1) in story.bench.take_ids(Area.DEFERRED)
    assert first != second
