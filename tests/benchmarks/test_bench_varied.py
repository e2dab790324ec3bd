"""The facts of built entries are those by which `benchmarks.acts` counts what a FILTER selects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from benchmarks.queue_builder import SIZE_BYTES, varied_submission
from benchmarks.results.varied import EVERYTHING, LARGE_BYTES, SELECTIONS, Selection, is_large
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IDraft
from mailismus.queue.filter import parse_filter
from mailismus.queue.interface import Area, Entry, Message

MESSAGES, RECIPIENTS = 200, 4
NO_DRAFT = cast(IDraft, None)


def built() -> Iterator[Message]:
    """The messages as they are in the queue."""
    for number in range(MESSAGES):
        one = varied_submission(NO_DRAFT, number, RECIPIENTS, Area.DEFERRED, 3600.0)
        assert one.placements is not None
        entries = [
            Entry(placement.number, recipient, placement.area, placement.due_at, 1, placement.reply, placement.host)
            for placement, recipient in zip(one.placements, one.envelope.recipients, strict=True)
        ]
        size = LARGE_BYTES if is_large(number) else SIZE_BYTES
        yield Message(SpoolId(number + 1), one.envelope.sender, b"", False, one.received_at, size, RECIPIENTS, entries)


@pytest.mark.parametrize("selection", [*SELECTIONS, EVERYTHING], ids=lambda one: one.kind)
def test_a_filter_selects_as_many_as_are_counted(selection: Selection) -> None:
    messages = list(built())
    wanted = parse_filter(selection.words, max(message.received_at for message in messages))
    found = sum(wanted.matches(message, entry) for message in messages for entry in message.entries)
    limit = found if selection.limit is None else selection.limit
    assert 0 < min(found, limit) == selection.count(MESSAGES, RECIPIENTS)
