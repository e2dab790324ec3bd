"""The last batch has marks: the next segment was begun, and a crash took its first batch. A start writes it again."""

from __future__ import annotations

from mailismus.queue.providers.log.format.record import ENVELOPES, GARBAGE, mark_offset, read_records
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from tests.log.story import Story


def mark_the_last_batch(story: Story) -> None:
    """Mark its envelopes, as a round does that passes them."""
    (segment,) = story.queue.parts.segments.in_use().values()
    assert segment.header is not None
    reader = BatchReader(Stretch(segment.file, segment.header, 4096, segment.size_bytes, 0, segment.last_sequence))
    *_, last = iter(reader.next, None)
    for record in read_records(last.records):
        if record.kind in ENVELOPES:
            segment.file.write_at(mark_offset(last.records_offset + record.offset), [GARBAGE])
    segment.file.sync()


def test_its_copy_checks_and_keeps_the_marks() -> None:
    story = Story()
    story.bench.put()
    mark_the_last_batch(story)
    story.crash()
    assert story.bench.take_ids() == []
    assert story.marked() == [True]
    story.bench.put()
    story.crash()
    assert len(story.bench.take_ids()) == 1
    assert story.harness.disk.list_directory("/q/corrupt") == []
