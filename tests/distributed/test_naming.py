"""Whether anything names the content of a message: in doubt something does."""

from __future__ import annotations

from uuid import UUID

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.distributed.enqueue.plan import closed_row, index_row
from mailismus.queue.providers.distributed.format.marks import WHOLE, done_mark, moved_mark
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace, writes_of
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.stores.rows import Write
from mailismus.queue.providers.distributed.sweep.naming import OLD_S, ContentNaming
from tests.distributed.world import START, World

KEY = "mail/1/5"
PLACE = SharePlace("deferred", START, 0)
ENTRY = Entry(1, b"c@d.example", Area.DEFERRED, START)
MESSAGE = Message(SpoolId(5), b"a@b.example", b"192.0.2.1", False, START, 9, 1, [ENTRY])
SHARE = Share(ShareName(PLACE, UUID(int=1)), MESSAGE, Blob(KEY, bytes(32)), START, START)
LATER = ShareName(PLACE, UUID(int=2))
ROWS = writes_of(SHARE, START)
SOON, LONG = START + 60.0, START + OLD_S + 3600.0
DONE, MOVED = done_mark(SHARE.name, WHOLE, START), moved_mark(SHARE.name, WHOLE, LATER, START)


def is_named(writes: list[Write], now: float, key: str = KEY) -> bool:
    world = World()
    rows = world.server().rows
    for write in writes:
        world.wait(rows.write([write]))
    return world.wait(ContentNaming(rows, ShareFinding(rows, lambda: [1])).is_named(SpoolId(5), key, now))


@pytest.mark.parametrize("now", [SOON, LONG])
def test_a_share_that_lives_names_its_own_content(now: float) -> None:
    lives: list[Write] = [*ROWS, index_row(SHARE, START)]
    assert is_named(lives, now)
    assert not is_named(lives, now, "mail/1/6")


def test_rows_may_be_on_their_way_for_a_day() -> None:
    assert is_named([index_row(SHARE, START)], SOON)
    assert not is_named([index_row(SHARE, START)], LONG)


def test_what_follows_a_share_that_was_closed_may_be_on_its_way_for_a_day() -> None:
    closed: list[Write] = [*ROWS, MOVED, closed_row(SHARE, START)]
    assert is_named(closed, SOON)
    assert not is_named(closed, LONG)


@pytest.mark.parametrize("now", [SOON, LONG])
def test_what_follows_a_share_that_moved_may_be_on_its_way_until_the_index_says_so(now: float) -> None:
    assert is_named([*ROWS, MOVED, index_row(SHARE, START)], now)
    assert not is_named([*ROWS, DONE, index_row(SHARE, START)], now)


def test_nothing_names_it_without_rows() -> None:
    assert not is_named([], SOON)
