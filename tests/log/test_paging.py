"""A search in pages reads the log about once, and finds each entry once, whatever is loaded meanwhile."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.read import looking
from tests.log.story import Story, story_at_rest

COUNT, PAGE = 60, 7
LONG_S = 36_000.0


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    """A queue with `COUNT` messages at rest, in several segments of many pieces."""
    story = story_at_rest(monkeypatch, [LONG_S + number for number in range(COUNT)], content_bytes=60_000)
    story.harness.wait(story.queue.parts.learning.learn())
    assert sum(map(len, _pages(story, 1000))) == COUNT
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
    reading = story.queue.parts.reading
    before, pieces = reading.slices_read, reading.pieces_read
    pages = _pages(story, PAGE)
    assert reading.slices_read - before <= 2 * (COUNT + len(pages))  # some have nothing that lives
    assert reading.pieces_read == pieces
    assert 3 * len(pages) < COUNT


def test_a_page_in_which_nothing_matches_comes_all_the_same(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "PAGE_SLICES", 5)
    newest = story.bench.search()[-1][0].spool_id
    found: list[list[int]] = []
    cursor: object | None = None
    while not found or cursor is not None:
        page = story.bench.wait(story.queue.search(Filter(matches=lambda message, _: message.spool_id == newest), cursor, 1))
        found.append([message.spool_id for message in page.messages])
        cursor = page.cursor
    assert len(found) > COUNT // 10
    assert [spool_id for page_ids in found for spool_id in page_ids] == [newest]


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
