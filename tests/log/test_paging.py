"""A search in pages reads the log about once, and finds each entry once, whatever is loaded meanwhile."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.control import piece_reading
from tests.log.story import Story

COUNT, PAGE = 60, 7
LONG_S = 36_000.0


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue with `COUNT` messages at rest, in several segments of many pieces."""
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 4096)
    story = Story()
    for number in range(COUNT):
        story.bench.put(content=b"x" * 60_000)
        story.bench.defer(story.bench.take_ids(), story.bench.now() + LONG_S + number)
    story.harness.wait(story.queue.parts.learning.learn())
    found = _pages(story, 1000)
    assert len(found[0]) == COUNT  # and every piece is as short as it gets
    return story


def _pages(story: Story, limit: int, between: list[float] | None = None) -> list[list[QueueId]]:
    """Pages of a search. `between`: how far the clock goes on, behind each of the first pages."""
    pages: list[list[QueueId]] = []
    cursor: object | None = None
    while True:
        page = story.bench.wait(story.queue.search(Filter(area=Area.DEFERRED), cursor, limit))
        pages.append([QueueId(message.spool_id, entry.number) for message in page.messages for entry in message.entries])
        assert page.gaps == ()
        cursor = page.cursor
        if cursor is None:
            return pages
        if between:
            story.harness.clock.rightNow += between.pop(0)


def test_each_entry_is_found_once(story: Story) -> None:
    pages = _pages(story, PAGE)
    assert all(len(page) == PAGE for page in pages[:-1])
    found = [queue_id for page in pages for queue_id in page]
    assert len(found) == len(set(found)) == COUNT


def test_a_page_reads_what_it_needs(story: Story) -> None:
    parts = story.queue.parts
    count, before = len(list(parts.resting.all())), parts.reading.pieces_read
    pages = _pages(story, PAGE)
    read = parts.reading.pieces_read - before
    assert read <= 2 * (count + len(pages))  # each piece, and what it is split into
    assert count > 3 * len(pages)


@pytest.mark.parametrize("limit", range(1, 4))
def test_what_is_loaded_from_pieces_to_come_hides_none_before_them(story: Story, limit: int) -> None:
    """An entry is flushed, and loaded, while the first page is being made: that page may end with it."""
    newest = story.bench.search()[-1][0].spool_id
    story.bench.wait(story.queue.visit_all(Filter(spool_id=newest), story.bench.now()))
    page = story.queue.search(Filter(area=Area.DEFERRED), None, limit)
    taking = story.queue.take(Area.DEFERRED, 1, story.bench.now(), None)
    found: list[QueueId] = []
    while True:
        result = story.bench.wait(page)
        found += [QueueId(message.spool_id, entry.number) for message in result.messages for entry in message.entries]
        if result.cursor is None:
            break
        page = story.queue.search(Filter(area=Area.DEFERRED), result.cursor, limit)
    assert len(story.bench.wait(taking)) == 1
    assert len(found) == len(set(found))
    assert len(set(found) | {QueueId(newest, 1)}) == COUNT
