"""Outlines: a start that reads them alone knows what one that reads all lines knows."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.log.control import piece_reading
from tests.contracts.bench import addresses
from tests.log.story import Story


def _known(story: Story) -> tuple[list[int], list[tuple[dict[int, float], set[int]]]]:
    story.harness.wait(story.queue.parts.learning.learn())
    segments = story.queue.parts.opened.writer.segments
    holds = story.queue.ledger.holds
    sizes = sorted(size for number in segments if (size := holds.live_bytes(number)))
    return sizes, [(piece.dues, piece.refers) for piece in story.queue.parts.resting.all()]


def test_outlines_tell_what_all_lines_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    due_at = story.bench.now() + 36_000
    for at in range(12):
        story.bench.put(addresses(3), (b"x" * 200_000) if at % 4 == 0 else b"y" * 3000)
        taken = story.bench.take_ids()
        story.bench.remove(taken[:1])
        story.bench.defer(taken[1:2], due_at + 1000 * at)
        story.bench.defer(taken[2:], due_at, attempts=2)
    story.complete_segment()
    story.harness.round(story.queue)
    story.crash()
    by_outlines = _known(story)
    assert story.loaded == 0
    monkeypatch.setattr(piece_reading, "outline_piece", lambda *_, **__: None)
    story.crash()
    assert _known(story) == by_outlines
    assert story.queue.next_due(Area.DEFERRED) == pytest.approx(due_at, abs=1)


def test_outlines_are_enough_when_the_clock_may_have_been_set(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    now = story.bench.now()
    for at in range(4):
        story.bench.put()
        story.bench.defer(story.bench.take_ids(), now + 36_000 + 1000 * at, attempts=at + 1)
    story.complete_segment()
    story.bench.queue = story.harness.restart(story.bench.queue)
    monkeypatch.setattr(piece_reading, "read_piece", lambda *_, **__: pytest.fail("all lines are read"))
    story.queue.hasten(lambda area, attempts, due_at: min(due_at, now + 30_000 + (attempts or 100) * 1000), now)
    story.harness.wait(story.queue.parts.learning.learn())
    assert story.queue.next_due(Area.DEFERRED) == pytest.approx(now + 31_000, abs=1)
