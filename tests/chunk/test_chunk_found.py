"""What names tell: which numbers there are, which names are none of the queue, which messages are over."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.chunk.format.states import ChunkState
from mailismus.queue.providers.chunk.recovery.found import ChunkProblem, FoundChunk, find_names
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from tests.chunk.harness import SPLIT, ChunkHarness


def test_a_name_that_is_no_number_and_one_in_the_wrong_part_are_foreign(harness: ChunkHarness) -> None:
    harness.open()
    directories = ChunkDirectories(harness.disk, "/q", SPLIT)
    for path in ("/q/todo/x", "/q/todo/7", "/q/mess/0/x", "/q/mess/0/7", "/q/mess/1/7"):
        harness.disk.create(path).close()
    found = find_names(directories)
    assert found.directories == {7: {"todo", "mess"}}
    assert sorted(found.foreign) == ["/q/mess/0/7", "/q/mess/0/x", "todo/x"]


@pytest.mark.parametrize("state", [*ChunkState, None])
def test_a_message_is_over_that_is_in_the_queue_and_has_nothing_left(state: ChunkState | None) -> None:
    assert FoundChunk(7, state, None).is_over is (state in (ChunkState.S4, ChunkState.S5))
    assert not FoundChunk(7, state, None, problems=[ChunkProblem("/q/todo/7", "can't be read")]).is_over
