"""An entry whose old envelope lives again, because a mark is damaged: the later state is true."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.record import LogRecordKind, mark_offset, read_records
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from tests.contracts.bench import addresses
from tests.log.story import Story


@pytest.fixture
def story() -> Story:
    return Story()


def clear_first_mark(story: Story) -> None:
    """Of the first message's envelope, while no server runs."""
    segment = story.queue.parts.segments.in_use()[1]
    assert segment.header is not None
    reader = BatchReader(Stretch(segment.file, segment.header, 4096, segment.size_bytes, 0, segment.last_sequence))
    first = next(one for one in story.records() if one.kind is LogRecordKind.MESSAGE)
    while (batch := reader.next()) is not None:
        if batch.records.startswith(b"M"):
            at = mark_offset(batch.records_offset + first.offset)
            assert segment.file.read_at(at, 1) == b"x"
            story.harness.disk.damage(segment.path, at, b"\0")
            return
    raise AssertionError("no message")


@pytest.mark.parametrize("recipients", [1, 2])
def test_the_later_state_of_an_entry_is_true_and_the_earlier_envelope_ends(story: Story, recipients: int) -> None:
    spool_id = story.bench.put(addresses(recipients))
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 30)
    story.complete_segment()
    story.rounds()
    clear_first_mark(story)
    story.crash()
    story.harness.settle_down()
    assert story.bench.take_ids(Area.INCOMING) in ([], [QueueId(spool_id, n + 1) for n in range(recipients)])
    story.crash()
    story.harness.advance(60)
    taken = story.bench.take_ids(Area.DEFERRED)
    assert taken == [QueueId(spool_id, n + 1) for n in range(recipients)]
    assert story.bench.take_ids(Area.INCOMING) == []
    story.bench.remove(taken)
    for _ in range(2):
        story.complete_segment()
        story.rounds()
    assert not story.queue.parts.working_set.messages
    assert 1 not in story.queue.parts.segments.in_use()
    story.crash()
    assert story.bench.take_ids() == []


@pytest.mark.parametrize("recipients", [1, 2])
def test_an_earlier_state_that_is_found_behind_the_later_one_does_not_count(story: Story, recipients: int) -> None:
    spool_id = story.bench.put(addresses(recipients))
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 30)
    story.complete_segment()
    story.rounds()
    clear_first_mark(story)
    story.crash()
    story.harness.clock.rightNow += 60
    wanted = [QueueId(spool_id, n + 1) for n in range(recipients)]
    assert story.bench.take_ids(Area.DEFERRED) == wanted
    story.harness.settle_down()
    assert story.bench.take_ids(Area.INCOMING) == []
    story.queue.give_back(wanted, 0.0)
    assert story.bench.take_ids(Area.DEFERRED) == wanted


def test_an_earlier_state_that_is_read_behind_the_later_one_is_over(story: Story) -> None:
    """They are in different segments, the positions lead to the later one, and other mail keeps the earlier one unread."""
    spool_id = story.bench.put()
    taken = story.bench.take_ids()
    story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 36_000)
    story.complete_segment()
    story.bench.defer(taken, story.bench.now() + 3600)
    story.complete_segment()
    story.rounds()
    clear_first_mark(story)
    story.crash()
    story.harness.clock.rightNow += 3600
    assert story.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 1)]
    story.queue.give_back(taken, 0.0)
    assert story.bench.take_ids(Area.INCOMING) == []
    assert story.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 1)]


def test_what_was_worked_on_is_found_by_its_mark_where_its_start_record_is_damaged(story: Story) -> None:
    story.bench.put()
    (taken,) = story.bench.take_ids()
    story.complete_segment()
    story.rounds()
    story.bench.put()
    story.bench.remove(story.bench.take_ids())  # the start record goes along
    story.rounds()
    assert story.marked()[0]
    damaged = 0
    for segment in story.queue.parts.segments.in_use().values():
        assert segment.header is not None
        reader = BatchReader(Stretch(segment.file, segment.header, 4096, segment.size_bytes, 0, segment.last_sequence))
        while (batch := reader.next()) is not None:
            if any(record.kind is LogRecordKind.START for record in read_records(batch.records)):
                story.harness.disk.damage(segment.path, batch.records_offset, b"?")
                damaged += 1
    assert damaged
    story.crash()
    story.harness.settle_down()
    assert taken in story.bench.take_ids()
