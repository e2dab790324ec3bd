"""A share is read from its rows as it was written; damaged rows are told and do no harm to others."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.distributed.format.share import (
    Blob,
    Share,
    ShareName,
    SharePlace,
    pieces_of,
    read_shares,
    writes_of,
)
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from mailismus.queue.providers.distributed.stores.rows import Row

PLACE = SharePlace("deferred", 1_789_999_200.0, 2)
times = st.integers(0, 10**13).map(lambda ms: ms / 1000)
replies = st.none() | st.builds(Reply, st.integers(200, 599), st.binary(max_size=10), st.binary(max_size=40))


@st.composite
def shares(draw: st.DrawFn) -> Share:
    due_at = draw(times)
    numbers = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=6, unique=True))
    entries = [
        Entry(
            number,
            draw(st.binary(max_size=30)),
            Area.DEFERRED,
            due_at,
            draw(st.integers(0, 99)),
            draw(replies),
            draw(st.binary(min_size=1, max_size=9)),
            draw(st.none() | st.binary(max_size=9)),
        )
        for number in sorted(numbers)
    ]
    message = Message(
        SpoolId(draw(st.integers(0, 2**64 - 1))),
        draw(st.binary(max_size=20)),
        draw(st.binary(max_size=20)),
        draw(st.booleans()),
        draw(times),
        draw(st.integers(0, 2**40)),
        1000,
        entries,
        draw(st.integers(0, 100)),
        draw(st.none() | st.binary(max_size=9)),
    )
    origin = draw(st.none() | st.builds(ShareName, st.just(PLACE), st.uuids()))
    return Share(ShareName(PLACE, draw(st.uuids())), message, Blob("mail/1", bytes(32)), draw(times), due_at, origin)


def rows_of(share: Share) -> list[Row]:
    """The rows as a read gives them."""
    empty = {column.name: None for column in ENQUEUED.columns}
    names = [column.name for column in ENQUEUED.key]
    return [{**empty, **dict(zip(names, put.key, strict=True)), **put.cells} for put in writes_of(share, 1.0)]


@given(st.lists(shares(), max_size=3, unique_by=lambda share: share.name.enqueue_id))
def test_shares_are_read_as_they_were_written(written: list[Share]) -> None:
    rows = [row for share in written for row in rows_of(share)]
    found = read_shares(PLACE, rows)
    assert list(found.shares) == written
    assert found.damaged == ()


@given(shares())
def test_all_rows_of_a_share_are_of_one_partition_and_one_time(share: Share) -> None:
    writes = writes_of(share, 7.0)
    assert {(write.key[:4], write.at) for write in writes} == {((*PLACE.key, share.name.enqueue_id), 7.0)}
    assert [write.key[4] for write in writes] == [0, *(entry.number for entry in share.message.entries)]


@given(shares(), shares())
def test_a_damaged_share_is_told_and_harms_no_other(damaged: Share, good: Share) -> None:
    if damaged.name == good.name:
        return
    head, *entries = rows_of(damaged)
    optional = {"message_words", "origin_queue", "origin_slice", "origin_bucket"}
    key = {column.name for column in ENQUEUED.key}
    for name in head.keys() - key - optional:
        if head[name] is None:
            continue
        found = read_shares(PLACE, [{**head, name: None}, *entries, *rows_of(good)])
        assert (found.shares, found.damaged) == ((good,), (damaged.name.enqueue_id,))
    found = read_shares(PLACE, [*entries, *rows_of(good)])
    assert (found.shares, found.damaged) == ((good,), (damaged.name.enqueue_id,))


@pytest.mark.parametrize("name", ["recipient", "attempts", "host"])
def test_an_entry_without_what_all_have_is_damage(name: str) -> None:
    entry = Entry(1, b"a@example.net", Area.DEFERRED, 5.0)
    message = Message(SpoolId(1), b"", b"-", False, 1.0, 10, 1, [entry])
    share = Share(ShareName(PLACE, UUID(int=1)), message, Blob("mail/1", bytes(32)), 2.0, 5.0)
    head, row = rows_of(share)
    assert read_shares(PLACE, [head, {**row, name: None}]).damaged == (UUID(int=1),)


def test_a_large_envelope_is_several_shares() -> None:
    entries = [Entry(number, b"a", Area.INCOMING, 0.0) for number in range(1, 1202)]
    assert [len(piece) for piece in pieces_of(entries)] == [500, 500, 201]
    assert [entry for piece in pieces_of(entries) for entry in piece] == entries
