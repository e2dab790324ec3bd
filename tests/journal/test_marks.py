"""Batches whose records have marks: they are written again with them."""

from __future__ import annotations

from mailismus.journal.batch import Batch
from mailismus.journal.frame import FRAME, MARK_AT
from mailismus.journal.replay import replay, survey
from tests.journal.world import World

RECORD = FRAME.pack(b"M", b"i", 0, 0, 1, 4, 0) + b"text"
MARKED = RECORD[:MARK_AT] + b"x" + RECORD[MARK_AT + 1 :]


def batches(world: World) -> list[tuple[str, Batch]]:
    """Of those that count the file and the batch."""
    return [(segment.path, batch) for segment, batch in replay(survey(world.disk, "/j"))]


def test_the_copy_of_a_marked_batch_checks_and_is_marked() -> None:
    world = World(has_marks=True)
    world.writer.append([RECORD, RECORD], 2 * len(RECORD))
    segment = world.writer.current
    assert segment is not None
    ((path, batch),) = batches(world)
    segment.file.write_at(batch.records_offset + MARK_AT, [b"x"])
    ((_, batch),) = batches(world)
    assert batch.records == MARKED + RECORD
    world.writer.say_again(batch.sequence, [batch.records], len(batch.records))
    ((new_path, copy),) = batches(world)
    assert copy == batch
    assert new_path != path  # the former one is denied
